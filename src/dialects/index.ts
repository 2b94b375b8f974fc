/**
 * All dialects by name, and the one place that finds out which of them a client speaks.
 * Knows no dialect's inside.
 */
import { anthropic } from './anthropic/index.js'
import { anthropicModels } from './anthropic/model-list.js'
import type { Dialect, DialectName, Egress, Endpoint, Ingress, ModelPages } from './dialect.js'
import { ENDPOINTS, rowsAt, type ClientFormat, type EndpointRow, type Match } from './endpoints.js'
import { gemini } from './gemini/index.js'
import { geminiModels } from './gemini/model-list.js'
import { openaiChat } from './openai-chat/index.js'
import { openaiModels } from './openai-chat/model-list.js'
import { openaiResponses } from './openai-responses/index.js'

const DIALECTS: Readonly<Record<DialectName, Dialect>> = {
  'openai-chat': openaiChat,
  'openai-responses': openaiResponses,
  anthropic,
  gemini,
}

/** The dialects that upstreams can be spoken to in, in the order of the table. */
export const EGRESSES: readonly { dialect: DialectName; egress: Egress }[] = Object.values(
  DIALECTS,
).flatMap(({ name, egress }) => (egress === null ? [] : [{ dialect: name, egress }]))

/** What a path and method ask for, and in which dialect. */
export interface Addressed {
  readonly dialect: DialectName
  readonly ingress: Ingress
  readonly format: ClientFormat
  readonly endpoint: Endpoint
}

/** The endpoints whose dialect has an ingress. */
export const SERVED: readonly EndpointRow[] = ENDPOINTS.filter(
  ({ dialect, endpoint }) => endpoint.operation === 'models' || DIALECTS[dialect].ingress !== null,
)

/** Endpoints without a parameter in the path, by method and path. */
const FIXED: ReadonlyMap<string, Addressed> = new Map(
  SERVED.filter(({ path }) => !path.includes('{')).map((row) => [
    `${row.method} ${row.path}`,
    addressedBy({ row, parameter: null }),
  ]),
)

/** Null if there is no such endpoint. `path` has no query; HEAD is answered like GET. */
export function addressed(method: string, path: string): Addressed | null {
  const asked = method === 'HEAD' ? 'GET' : method
  const fixed = FIXED.get(`${asked} ${path}`)
  if (fixed !== undefined) return fixed
  const match = rowsAt(path, SERVED).find(({ row }) => row.method === asked)
  return match === undefined ? null : addressedBy(match)
}

/** The methods that a path takes; empty if there is no such endpoint. */
export function methodsAt(path: string): string[] {
  return rowsAt(path, SERVED).flatMap(({ row }) =>
    row.method === 'GET' ? ['GET', 'HEAD'] : [row.method],
  )
}

function addressedBy({ row, parameter }: Match): Addressed {
  const { dialect, format, endpoint } = row
  return {
    dialect,
    ingress: errorFormatOf(dialect),
    format,
    endpoint: parameter === null ? endpoint : { ...endpoint, model: parameter },
  }
}

/** The ingress in whose format errors are written; OpenAI's if no dialect is known or clients cannot speak it. */
export function errorFormatOf(name: DialectName | null): Ingress {
  return (name === null ? null : DIALECTS[name].ingress) ?? ingressOf('openai-chat')
}

/** How models are listed for clients of the dialect. */
export function modelPagesOf(name: DialectName): ModelPages {
  switch (name) {
    case 'anthropic':
      return anthropicModels
    case 'gemini':
      return geminiModels
    case 'openai-chat':
    case 'openai-responses':
      return openaiModels
    default:
      return name satisfies never
  }
}

/** How clients speak the dialect. Throws for a dialect that clients cannot speak. */
export function ingressOf(name: DialectName): Ingress {
  const ingress = DIALECTS[name].ingress
  if (ingress === null) throw new Error(`no client speaks ${name}`)
  return ingress
}

/** How an upstream of this dialect is spoken to; null where we cannot. */
export function egressOf(name: DialectName): Egress | null {
  return DIALECTS[name].egress
}
