/**
 * All dialects by name, and the one place that finds out which of them a client speaks.
 * Knows no dialect's inside.
 */
import { anthropic } from './anthropic/index.js'
import type { Dialect, DialectName, Egress, Endpoint, Ingress } from './dialect.js'
import { gemini } from './gemini/index.js'
import { openaiChat } from './openai-chat/index.js'
import { openaiResponses } from './openai-responses/index.js'

const DIALECTS: Readonly<Record<DialectName, Dialect>> = {
  'openai-chat': openaiChat,
  'openai-responses': openaiResponses,
  anthropic,
  gemini,
}

/** The dialects that clients can speak, in the order in which they are asked. */
export const INGRESSES: readonly { dialect: DialectName; ingress: Ingress }[] = Object.values(
  DIALECTS,
).flatMap(({ name, ingress }) => (ingress === null ? [] : [{ dialect: name, ingress }]))

/** The dialects that upstreams can be spoken to in, in the order of the table. */
export const EGRESSES: readonly { dialect: DialectName; egress: Egress }[] = Object.values(
  DIALECTS,
).flatMap(({ name, egress }) => (egress === null ? [] : [{ dialect: name, egress }]))

/** What a path and method ask for, and in which dialect. */
export interface Addressed {
  readonly dialect: DialectName
  readonly ingress: Ingress
  readonly endpoint: Endpoint
}

/** Null where no dialect has such an endpoint. `path` has no query. */
export function addressed(method: string, path: string): Addressed | null {
  for (const { dialect, ingress } of INGRESSES) {
    const endpoint = ingress.match(method, path)
    if (endpoint !== null) return { dialect, ingress, endpoint }
  }
  return null
}

/** The methods that a path takes; empty where there is no such endpoint. */
export function methodsAt(path: string): string[] {
  return ['GET', 'HEAD', 'POST'].filter((method) => addressed(method, path) !== null)
}

/** How clients speak the dialect. Only for a dialect that `addressed` has named. */
export function ingressOf(name: DialectName): Ingress {
  const ingress = DIALECTS[name].ingress
  if (ingress === null) throw new Error(`no client speaks ${name}`)
  return ingress
}

/** How an upstream of this dialect is spoken to; null where we cannot. */
export function egressOf(name: DialectName): Egress | null {
  return DIALECTS[name].egress
}
