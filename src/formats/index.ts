/** All dialects by name, and the resolution of a request's method and path to a dialect and operation. */
import { anthropic } from './anthropic/index.js'
import { bedrockEmbeddings } from './converse/embeddings.js'
import { converse } from './converse/index.js'
import { anthropicModels, geminiModels, openaiModels } from './list-models.js'
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
} from './match-endpoint.js'
import { geminiEmbedding, geminiEmbeddings } from './gemini/embeddings.js'
import { gemini } from './gemini/index.js'
import { openaiChat } from './openai-chat/index.js'
import { openaiCompletions, openaiEmbeddings } from './openai-chat/other-endpoints.js'
import { platformEgress, type PlatformTraits } from './platform-egress.js'
import { openaiResponses } from './openai-responses/index.js'
import type { ScalarField } from './wire/scalar-fields.js'

const DIALECTS: Readonly<Record<DialectName, Dialect>> = {
  'openai-chat': openaiChat,
  'openai-responses': openaiResponses,
  anthropic,
  gemini,
  converse,
}

const OTHERS: Readonly<Record<OtherFormat, FormatCodecs>> = {
  'openai-completions': openaiCompletions,
  'openai-embeddings': openaiEmbeddings,
  'gemini-embeddings': geminiEmbeddings,
  'gemini-embedding': geminiEmbedding,
  // Clients use the formats above.
  'bedrock-embeddings': { ingress: openaiEmbeddings.ingress, egress: bedrockEmbeddings },
}

/** The dialects for upstreams, in the order of the table. */
export const EGRESSES: readonly { dialect: DialectName; egress: Egress }[] = Object.values(
  DIALECTS,
).flatMap(({ name, egress }) => (egress === null ? [] : [{ dialect: name, egress }]))

/** The scalar fields of a dialect's requests. */
export function fieldsOf(name: DialectName): readonly ScalarField[] {
  return DIALECTS[name].fields
}

/** The dialect and operation of a method and path. */
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

/** Null if there is no such endpoint. `path` has no query; HEAD counts as GET. */
export function resolveEndpoint(method: string, path: string): ResolvedEndpoint | null {
  const rowMethod = method === 'HEAD' ? 'GET' : method
  const fixed = FIXED.get(`${rowMethod} ${path}`)
  if (fixed !== undefined) return fixed
  const match = matchingRows(path, SERVED).find(({ row }) => row.method === rowMethod)
  return match === undefined ? null : resolvedBy(match)
}

/** The methods of a path; empty if there is no such endpoint. */
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

/** The ingress that encodes errors; OpenAI's if the dialect is unknown or has no ingress. */
export function errorFormatOf(name: DialectName | null): Ingress {
  return (name === null ? null : DIALECTS[name].ingress) ?? ingressOf('openai-chat')
}

/** The model list for clients of the dialect. */
export function modelPagesOf(name: DialectName): ModelPages {
  switch (name) {
    case 'anthropic':
      return anthropicModels
    case 'gemini':
      return geminiModels
    case 'openai-chat':
    case 'openai-responses':
    case 'converse':
      return openaiModels
    default:
      return name satisfies never
  }
}

/** The codec for clients. Throws if the dialect has none. */
export function ingressOf(name: DialectName): Ingress {
  const ingress = DIALECTS[name].ingress
  if (ingress === null) throw new Error(`Clients cannot use the dialect ${name}`)
  return ingress
}

/** The codec for upstreams with these traits (default: of the vendor itself); null if the format has none. */
export function egressOf(wire: WireFormat, traits: PlatformTraits | null = null): Egress | null {
  const egress = isOther(wire) ? OTHERS[wire].egress : DIALECTS[wire].egress
  return egress === null || traits === null ? egress : platformEgress(egress, wire, traits)
}

/** Whether replies of the format contain vectors. */
export function isEmbeddings(wire: WireFormat): boolean {
  return isOther(wire) && OTHERS[wire].egress.readVectors !== undefined
}

function isOther(wire: WireFormat): wire is OtherFormat {
  return wire in OTHERS
}

/**
 * The format for an upstream of a dialect, given the format of the client; null if the dialect does not have
 * the operation. `hasCompletions`: the upstream has OpenAI's legacy completions endpoint.
 */
export function upstreamFormat(
  client: WireFormat,
  dialect: DialectName,
  hasCompletions: boolean,
): WireFormat | null {
  switch (client) {
    case 'openai-embeddings':
    case 'bedrock-embeddings':
    case 'gemini-embeddings':
    case 'gemini-embedding':
      if (dialect === 'anthropic') return null
      if (dialect === 'converse') return 'bedrock-embeddings'
      if (dialect !== 'gemini') return 'openai-embeddings'
      return client === 'gemini-embedding' ? client : 'gemini-embeddings'
    case 'openai-completions':
      return hasCompletions ? client : dialect
    case 'openai-chat':
    case 'openai-responses':
    case 'anthropic':
    case 'gemini':
    case 'converse':
      return dialect
    default:
      return client satisfies never
  }
}
