/**
 * All dialects by name, and the one place that finds out which of them a client speaks.
 * Knows no dialect's inside.
 */
import { anthropic } from './anthropic/index.js'
import { anthropicModels } from './anthropic/client/list-models.js'
import type {
  Dialect,
  DialectName,
  Egress,
  Endpoint,
  Ingress,
  ModelPages,
  OtherFormat,
  FormatCodecs,
  WireFormat,
} from './dialect.js'
import {
  ENDPOINTS,
  matchingRows,
  type ClientFormat,
  type EndpointRow,
  type Match,
} from './endpoints.js'
import { geminiEmbedding, geminiEmbeddings } from './gemini/embeddings/endpoints.js'
import { gemini } from './gemini/index.js'
import { geminiModels } from './gemini/client/list-models.js'
import { openaiChat } from './openai-chat/index.js'
import { openaiCompletions, openaiEmbeddings } from './openai-chat/other-endpoints.js'
import { openaiModels } from './openai-chat/client/list-models.js'
import { openaiResponses } from './openai-responses/index.js'

const DIALECTS: Readonly<Record<DialectName, Dialect>> = {
  'openai-chat': openaiChat,
  'openai-responses': openaiResponses,
  anthropic,
  gemini,
}

const OTHERS: Readonly<Record<OtherFormat, FormatCodecs>> = {
  'openai-completions': openaiCompletions,
  'openai-embeddings': openaiEmbeddings,
  'gemini-embeddings': geminiEmbeddings,
  'gemini-embedding': geminiEmbedding,
}

/** The dialects that upstreams can be spoken to in, in the order of the table. */
export const EGRESSES: readonly { dialect: DialectName; egress: Egress }[] = Object.values(
  DIALECTS,
).flatMap(({ name, egress }) => (egress === null ? [] : [{ dialect: name, egress }]))

/** What a path and method ask for, and in which dialect. */
export interface ResolvedEndpoint {
  readonly dialect: DialectName
  readonly wire: WireFormat
  readonly ingress: Ingress
  readonly format: ClientFormat
  readonly endpoint: Endpoint
}

/** The endpoints whose dialect has an ingress. */
export const SERVED: readonly EndpointRow[] = ENDPOINTS.filter(
  ({ dialect, endpoint }) => endpoint.operation === 'models' || DIALECTS[dialect].ingress !== null,
)

/** Endpoints without a parameter in the path, by method and path. */
const FIXED: ReadonlyMap<string, ResolvedEndpoint> = new Map(
  SERVED.filter(({ path }) => !path.includes('{')).map((row) => [
    `${row.method} ${row.path}`,
    resolvedBy({ row, parameter: null }),
  ]),
)

/** Null if there is no such endpoint. `path` has no query; HEAD is answered like GET. */
export function resolveEndpoint(method: string, path: string): ResolvedEndpoint | null {
  const asked = method === 'HEAD' ? 'GET' : method
  const fixed = FIXED.get(`${asked} ${path}`)
  if (fixed !== undefined) return fixed
  const match = matchingRows(path, SERVED).find(({ row }) => row.method === asked)
  return match === undefined ? null : resolvedBy(match)
}

/** The methods that a path takes; empty if there is no such endpoint. */
export function allowedMethods(path: string): string[] {
  return matchingRows(path, SERVED).flatMap(({ row }) =>
    row.method === 'GET' ? ['GET', 'HEAD'] : [row.method],
  )
}

function resolvedBy({ row, parameter }: Match): ResolvedEndpoint {
  const { dialect, wire, format, endpoint } = row
  return {
    dialect,
    wire,
    ingress: isOther(wire) ? OTHERS[wire].ingress : errorFormatOf(dialect),
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

/** How an upstream is spoken to in this format; null if it cannot be. */
export function egressOf(wire: WireFormat): Egress | null {
  return isOther(wire) ? OTHERS[wire].egress : DIALECTS[wire].egress
}

/** True for the formats whose replies hold vectors. */
export function isEmbeddings(wire: WireFormat): boolean {
  return isOther(wire) && OTHERS[wire].egress.readVectors !== undefined
}

function isOther(wire: WireFormat): wire is OtherFormat {
  return wire in OTHERS
}

/**
 * The format in which an upstream of a dialect is sent what came in another; null if it has no such operation.
 * `hasCompletions`: it has OpenAI's legacy endpoint.
 */
export function upstreamFormat(
  client: WireFormat,
  dialect: DialectName,
  hasCompletions: boolean,
): WireFormat | null {
  switch (client) {
    case 'openai-embeddings':
    case 'gemini-embeddings':
    case 'gemini-embedding':
      if (dialect === 'anthropic') return null
      if (dialect !== 'gemini') return 'openai-embeddings'
      return client === 'gemini-embedding' ? client : 'gemini-embeddings'
    case 'openai-completions':
      return hasCompletions ? client : dialect
    case 'openai-chat':
    case 'openai-responses':
    case 'anthropic':
    case 'gemini':
      return dialect
    default:
      return client satisfies never
  }
}
