/** Notes what of a request only Google's own models understand. */
import type { ChatRequest } from '../../../../chat/request.js'

/** The field changes the reply a little: other upstreams do without it, and it is reported as lost. */
export function loseNative(request: ChatRequest, path: string): void {
  request.native ??= []
  request.native.push({ path })
}

/** Without the field the reply would be wrong: only upstreams of this format get the request. */
export function refuseNative(request: ChatRequest, path: string, why: string): void {
  request.native ??= []
  const refusal = `${path}: ${why}. Leave it out, or use a model that a Gemini upstream serves.`
  request.native.push({ path, refusal })
}
