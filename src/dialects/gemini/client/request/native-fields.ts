/** Records the fields of a request that only Gemini upstreams accept. */
import type { ChatRequest } from '../../../../chat/request.js'

/** Other upstreams do not receive the field, and it is reported as lost. */
export function loseNative(request: ChatRequest, path: string): void {
  request.native ??= []
  request.native.push({ path })
}

/** Other upstreams cannot serve the request. The error message is the path followed by `why`. */
export function refuseNative(request: ChatRequest, path: string, why: string): void {
  request.native ??= []
  const refusal = `${path}: ${why}. Leave it out, or use a model that a Gemini upstream serves.`
  request.native.push({ path, refusal })
}
