/** All dialects by name, and the resolution of a request's method and path to a dialect and operation. */
import { anthropic } from './anthropic/index.js'
import { bedrockEmbeddings } from './converse/embeddings.js'
import { converse } from './converse/index.js'
import { anthropicModels, geminiModels, openaiModels } from './list-models.js'
import type {
  Dialect,
  DialectName,
  UpstreamCodec,
  Endpoint,
  ClientCodec,
  ModelPages,
  OtherFormat,
  FormatCodecs,
  TaskFormat,
  WireFormat,
} from './dialect.js'
import {
  BARE_ENDPOINTS,
  ENDPOINTS,
  OPENAI_ALIASES,
  matchingRows,
  type EndpointRow,
  type Match,
} from './match-endpoint.js'
import { geminiEmbedding, geminiEmbeddings } from './gemini/embeddings.js'
import { gemini } from './gemini/index.js'
import type { ClientFormat, TaskForms, TaskName } from './chat/operations.js'
import { judgingCodec } from './moderations/chat.js'
import { withToolNames } from './named-tools.js'
import { openaiChat } from './openai-chat/index.js'
import { openaiCompletions, openaiEmbeddings } from './openai-chat/other-endpoints.js'
import { platformCodec, type PlatformTraits } from './platform-codec.js'
import { responsesCompact } from './openai-responses/compact.js'
import { openaiResponses } from './openai-responses/index.js'
import { TASK_CODECS } from './task-codecs.js'
import { TOOL_NAMES } from './vendors.js'
import type { ScalarField } from './wire/scalar-fields.js'
import type { NameRule } from './wire/tool-names.js'

const DIALECTS: Readonly<Record<DialectName, Dialect>> = {
  'openai-chat': named(openaiChat, TOOL_NAMES.openai),
  'openai-responses': named(openaiResponses, TOOL_NAMES.openai),
  anthropic: named(anthropic, TOOL_NAMES.anthropic),
  gemini: named(gemini, TOOL_NAMES.gemini),
  converse: named(converse, TOOL_NAMES.converse),
}

/** The dialect with names of tools that its vendors take. */
function named(dialect: Dialect, rule: NameRule): Dialect {
  const { upstreamCodec } = dialect
  return upstreamCodec === null ? dialect : { ...dialect, upstreamCodec: withToolNames(upstreamCodec, rule) }
}

const OTHERS: Readonly<Record<OtherFormat, FormatCodecs>> = {
  'openai-completions': openaiCompletions,
  'responses-compact': responsesCompact,
  'openai-embeddings': openaiEmbeddings,
  'gemini-embeddings': geminiEmbeddings,
  'gemini-embedding': geminiEmbedding,
  // Clients use the formats above.
  'bedrock-embeddings': {
    clientCodec: openaiEmbeddings.clientCodec,
    upstreamCodec: bedrockEmbeddings,
  },
  ...TASK_CODECS,
}

/** The dialects for upstreams, in the order of the table. */
export const UPSTREAM_CODECS: readonly { dialect: DialectName; upstreamCodec: UpstreamCodec }[] =
  Object.values(DIALECTS).flatMap(({ name, upstreamCodec }) =>
    upstreamCodec === null ? [] : [{ dialect: name, upstreamCodec }],
  )

/** The scalar fields of a dialect's requests. */
export function fieldsOf(name: DialectName): readonly ScalarField[] {
  return DIALECTS[name].fields
}

/** The dialect and operation of a method and path. */
export interface ResolvedEndpoint {
  readonly dialect: DialectName
  readonly wire: WireFormat
  readonly clientCodec: ClientCodec
  readonly format: ClientFormat
  readonly endpoint: Endpoint
}

/** The endpoints whose dialect clients can use. */
export const SERVED: readonly EndpointRow[] = [...ENDPOINTS, ...OPENAI_ALIASES].filter(
  ({ dialect, endpoint }) => endpoint.operation === 'models' || DIALECTS[dialect].clientCodec !== null,
)

/** Endpoints without a parameter in the path, by method and path. */
const FIXED: ReadonlyMap<string, ResolvedEndpoint> = new Map(
  SERVED.filter(({ path }) => !path.includes('{')).map((row) => [
    `${row.method} ${row.path}`,
    resolvedBy({ row, parameter: null }),
  ]),
)

/** Which paths are served: with `bare`, also those of `server.bare_paths`. */
interface ServedPaths {
  readonly bare: boolean
}

/** Null if there is no such endpoint. `path` has no query; HEAD counts as GET. */
export function resolveEndpoint(
  method: string,
  path: string,
  { bare }: ServedPaths = { bare: false },
): ResolvedEndpoint | null {
  const rowMethod = method === 'HEAD' ? 'GET' : method
  const fixed = FIXED.get(`${rowMethod} ${path}`)
  if (fixed !== undefined) return fixed
  const rows = bare ? [...SERVED, ...BARE_ENDPOINTS] : SERVED
  const match = matchingRows(path, rows).find(({ row }) => row.method === rowMethod)
  return match === undefined ? null : resolvedBy(match)
}

/** The methods of a path; empty if there is no such endpoint. */
export function allowedMethods(path: string, { bare }: ServedPaths = { bare: false }): string[] {
  return matchingRows(path, bare ? [...SERVED, ...BARE_ENDPOINTS] : SERVED).flatMap(({ row }) =>
    row.method === 'GET' ? ['GET', 'HEAD'] : [row.method],
  )
}

function resolvedBy({ row, parameter }: Match): ResolvedEndpoint {
  const { dialect, wire, format, endpoint } = row
  return {
    dialect,
    wire,
    clientCodec: isOther(wire) ? OTHERS[wire].clientCodec : errorFormatOf(dialect),
    format,
    endpoint: parameter === null ? endpoint : { ...endpoint, model: parameter },
  }
}

/** The codec that encodes errors for clients of a format; null: the format is not known. */
export function errorCodecOf(wire: WireFormat | null, dialect: DialectName | null): ClientCodec {
  return wire !== null && isOther(wire) ? OTHERS[wire].clientCodec : errorFormatOf(dialect)
}

/** The codec that encodes errors of a dialect; OpenAI's if it is unknown or clients cannot use it. */
export function errorFormatOf(name: DialectName | null): ClientCodec {
  return (name === null ? null : DIALECTS[name].clientCodec) ?? clientCodecOf('openai-chat')
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
export function clientCodecOf(name: DialectName): ClientCodec {
  const clientCodec = DIALECTS[name].clientCodec
  if (clientCodec === null) throw new Error(`Clients cannot use the dialect ${name}`)
  return clientCodec
}

/**
 * The codec for upstreams with these traits (default: of the vendor itself); null if the format has none.
 * `dialect`: that of the upstream's chats, for tasks that chats serve.
 */
export function upstreamCodecOf(
  wire: WireFormat,
  traits: PlatformTraits | null = null,
  dialect: DialectName = 'openai-chat',
): UpstreamCodec | null {
  if (wire === 'chat-moderations') {
    const chats = upstreamCodecOf(dialect, traits)
    return chats === null ? null : judgingCodec(chats)
  }
  const upstreamCodec = isOther(wire) ? OTHERS[wire].upstreamCodec : DIALECTS[wire].upstreamCodec
  return upstreamCodec === null || traits === null
    ? upstreamCodec
    : platformCodec(upstreamCodec, wire, traits)
}

/** Whether replies of the format contain vectors. */
export function isEmbeddings(wire: WireFormat): boolean {
  return isOther(wire) && OTHERS[wire].upstreamCodec.readVectors !== undefined
}

/** Whether requests in the format are chats at an upstream of the dialect. */
export function isSentAsChat({
  wire,
  dialect,
}: {
  readonly wire: WireFormat
  readonly dialect: DialectName
}): boolean {
  return wire === dialect || wire === 'chat-moderations'
}

/** Whether replies of the format are those of a task. */
export function isTaskFormat(wire: WireFormat): wire is TaskFormat {
  return wire in TASK_CODECS
}

function isOther(wire: WireFormat): wire is OtherFormat {
  return wire in OTHERS
}

/** The format of a task in a form of an upstream. */
const TASK_WIRES: { readonly [Task in TaskName]: Readonly<Record<TaskForms[Task], TaskFormat | null>> } = {
  rerank: {
    cohere: 'cohere-rerank',
    'cohere-v1': 'cohere-v1-rerank',
    jina: 'jina-rerank',
    voyage: 'voyage-rerank',
    vllm: 'vllm-rerank',
    tei: 'tei-rerank',
    sglang: 'sglang-rerank',
    deepinfra: 'deepinfra-rerank',
    bedrock: 'bedrock-rerank',
    none: null,
  },
  moderations: {
    openai: 'openai-moderations',
    mistral: 'mistral-moderations',
    chat: 'chat-moderations',
    none: null,
  },
  images: { openai: 'openai-images', gemini: 'gemini-images', none: null },
  image_edits: { openai: 'openai-image-edits', gemini: 'gemini-image-edits', none: null },
  transcriptions: {
    openai: 'openai-transcriptions',
    mistral: 'mistral-transcriptions',
    gemini: 'gemini-transcriptions',
    none: null,
  },
  translations: { openai: 'openai-translations', none: null },
  speech: { openai: 'openai-speech', mistral: 'mistral-speech', gemini: 'gemini-speech', none: null },
}

/** The format of a task at an upstream with these forms; null if the upstream does not serve it. */
export function taskFormat(task: TaskName, forms: TaskForms): TaskFormat | null {
  const wires: Readonly<Partial<Record<string, TaskFormat | null>>> = TASK_WIRES[task]
  return wires[forms[task]] ?? null
}

/**
 * The format for an upstream of a dialect, given the format of the client; null if the dialect does not have
 * the operation. `hasCompletions`: the upstream has OpenAI's legacy completions endpoint; `compacts`: it has
 * OpenAI's endpoint that compacts conversations.
 */
export function upstreamFormat(
  client: Exclude<WireFormat, TaskFormat>,
  dialect: DialectName,
  { hasCompletions, compacts }: { readonly hasCompletions: boolean; readonly compacts: boolean },
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
    case 'responses-compact':
      return compacts && dialect === 'openai-responses' ? client : dialect
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
