/**
 * Builds a request of a given shape with placeholder contents, for trial translations. The inverse of
 * `requestShapeOf`, as far as translation needs it.
 */
import type { WhenConfig } from '../../config/config.js'
import type { JsonObject } from '../../base/json.js'
import type { ModelFacts } from '../../formats/chat/model-facts.js'
import type {
  AssistantPart,
  ChatRequest,
  MediaSource,
  Message,
  ReasoningEffort,
  ResponseFormat,
  Tool,
  ToolCall,
  ToolChoice,
  UserPart,
} from '../../formats/chat/request.js'
import type { RequestShape, ShapeSettings, RequestHead } from '../../gateway/report/recent-requests.js'
import type { ComparedConfig } from './targets-and-cost.js'

const TEXT = 'x'
const BASE64 = 'eA=='
const URL = 'https://example.com/x'
const TOOL_NAME = 'tool'
const SCHEMA: JsonObject = {
  type: 'object',
  properties: { x: { type: 'string' } },
  required: ['x'],
  additionalProperties: false,
}

/** The properties of a request outside its sketch. */
interface SampledHead {
  readonly model: string
  readonly stream: boolean
  readonly sketch: RequestShape
}

/** A request with the same kinds of turns, parts, tools and settings. */
export function sampleRequest({ model, stream, sketch }: SampledHead): ChatRequest {
  const { settings, native } = sketch
  const tools = sketch.tools.map(toolOf)
  return {
    model,
    stream,
    messages: messagesOf(sketch),
    tools,
    ...settingsOf(settings, tools),
    rest: { ...sketch.rest } as ChatRequest['rest'],
    native: native.map(({ path, isRefused }) => {
      return isRefused ? { path, refusal: `${path} has no equivalent` } : { path }
    }),
  }
}

/** The turns in a valid order: a tool's result follows its call. */
function messagesOf({ turns, ends: [first, last] }: RequestShape): Message[] {
  const builder = new Turns()
  for (const [role = '', ...kinds] of turns) {
    if (role === 'system' || role === 'developer') builder.instructions(role, kinds)
  }
  if (first !== 'assistant') builder.user(['text'])
  for (const [role = '', ...kinds] of turns) {
    if (role === 'assistant') builder.assistant(kinds)
    else if (role === 'tool') builder.result(kinds)
    else if (role === 'user') builder.user(kinds)
  }
  if (last === 'user') builder.user(['text'])
  else if (last === 'tool') builder.result(['text'])
  else if (last === 'assistant') builder.assistant(['text'])
  return builder.messages
}

/** Builds the turns of a conversation in order. */
class Turns {
  readonly messages: Message[] = []
  private calls = 0

  instructions(role: 'system' | 'developer', kinds: readonly string[]): void {
    const isCached = kinds.some((kind) => kind.includes('cached'))
    const parts = [{ type: 'text' as const, text: TEXT, ...cacheOf(isCached) }]
    this.messages.push({ role, index: this.messages.length, parts })
  }

  user(kinds: readonly string[]): void {
    this.messages.push({
      role: 'user',
      index: this.messages.length,
      parts: kinds.flatMap(userPart),
    })
  }

  /** Adds a turn, with a result for each call. */
  assistant(kinds: readonly string[]): void {
    if (kinds.some(isCall)) this.result(['text'], kinds)
    else this.addAssistant(kinds, [])
  }

  /** Adds a result after its call. */
  result(kinds: readonly string[], kindsOfCalls: readonly string[] = ['call']): void {
    const calls = kindsOfCalls.filter(isCall).map((kind) => callOf(kind, `call_${(this.calls += 1)}`))
    this.addAssistant(kindsOfCalls, calls)
    const isError = kinds.includes('error')
    for (const { id } of calls) {
      const parts = kinds.flatMap(userPart)
      const cache = cacheOf(kinds.includes('cached'))
      const index = this.messages.length
      this.messages.push({ role: 'tool', index, callId: id, parts, isError, ...cache })
    }
  }

  private addAssistant(kinds: readonly string[], toolCalls: ToolCall[]): void {
    const parts = kinds.flatMap(assistantPart)
    this.messages.push({ role: 'assistant', index: this.messages.length, parts, toolCalls })
  }
}

function isCall(kind: string): boolean {
  return kind === 'call' || kind.startsWith('call ')
}

function cacheOf(isCached: boolean): { cache?: { ttl: '5m' } } {
  return isCached ? { cache: { ttl: '5m' } } : {}
}

function userPart(kind: string): UserPart[] {
  const words = kind.split(' ')
  const [type = '', source = '', ...details] = words
  const cache = cacheOf(words.includes('cached'))
  switch (type) {
    case 'text':
      return [{ type, text: TEXT, ...cache }]
    case 'image':
      return [{ type, source: sourceOf(source, details), ...cache }]
    case 'file':
      return [{ type, source: sourceOf(source, details), filename: 'x.pdf', ...cache }]
    case 'audio':
      return [{ type, format: source, data: BASE64 }]
    default:
      return []
  }
}

function sourceOf(kind: string, details: readonly string[]): MediaSource {
  const [detail = ''] = details
  const bucket = details.find((word) => word === 'gs' || word === 's3')
  const address = bucket === undefined ? null : `${bucket}://bucket/x.pdf`
  if (kind === 'url') return { kind, url: address ?? URL }
  if (kind === 'file-id')
    return { kind, id: address ?? TEXT, ...(detail === 'openai' ? {} : { origin: detail }) }
  return { kind: 'base64', mediaType: detail, data: BASE64 }
}

function assistantPart(kind: string): AssistantPart[] {
  const words = kind.split(' ')
  const [type = '', origin = '', kindOfBlock = ''] = words
  const signature = words.includes('signed') ? { signature: BASE64 } : {}
  switch (type) {
    case 'text':
      return [{ type, text: TEXT, ...signature, ...cacheOf(words.includes('cached')) }]
    case 'thinking':
      return [{ type, text: TEXT, ...signature, ...(origin === 'unknown' ? {} : { origin }) }]
    case 'opaque':
      return [{ type, provider: origin, block: { type: kindOfBlock, [kindOfBlock]: {} } }]
    default:
      return []
  }
}

function callOf(kind: string, id: string): ToolCall {
  const words = kind.split(' ')
  const signature = words.includes('signed') ? { signature: BASE64 } : {}
  const custom = words.includes('custom') ? { custom: true } : {}
  return { id, name: TOOL_NAME, arguments: '{}', ...custom, ...signature }
}

function toolOf(kind: string, index: number): Tool {
  const words = kind.split(' ')
  const name = index === 0 ? TOOL_NAME : `${TOOL_NAME}_${index}`
  const syntax = words.find((word) => word.startsWith('format:'))?.slice('format:'.length)
  const format = syntax === undefined ? {} : { format: { type: syntax } }
  return {
    name,
    ...(words.includes('custom') ? { custom: format } : {}),
    ...(words.includes('parameters') ? { parameters: SCHEMA } : {}),
    ...(words.includes('strict') ? { strict: true } : {}),
    ...cacheOf(words.includes('cached')),
  }
}

const EFFORTS: ReadonlySet<string> = new Set<ReasoningEffort>([
  ...(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const),
])

function isEffort(text: string): text is ReasoningEffort {
  return EFFORTS.has(text)
}

function settingsOf(
  settings: ShapeSettings,
  tools: readonly Tool[],
): Partial<ChatRequest> & Pick<ChatRequest, 'includeUsage'> {
  const { includeUsage, stops, hasSeed, hasUserId, toolChoice, format, ...scalars } = settings
  const { reasoningEffort = '', verbosity, ...others } = scalars
  return {
    ...others,
    includeUsage: includeUsage === true,
    ...choiceOf(toolChoice, tools),
    ...(isEffort(reasoningEffort) ? { reasoningEffort } : {}),
    ...(verbosity === 'low' || verbosity === 'medium' || verbosity === 'high' ? { verbosity } : {}),
    ...(stops === undefined ? {} : { stop: Array.from({ length: stops }, (_, index) => `stop ${index}`) }),
    ...(hasSeed === true ? { seed: 1 } : {}),
    ...(hasUserId === true ? { userId: TEXT } : {}),
    ...(format === undefined ? {} : { responseFormat: formatOf(format) }),
  }
}

function formatOf(text: string): ResponseFormat {
  const [type, strict] = text.split(' ')
  if (type === 'json-object') return { type }
  if (type !== 'json-schema') return { type: 'text' }
  return { type, name: TEXT, schema: SCHEMA, ...(strict === 'strict' ? { strict: true } : {}) }
}

/** A forced tool choice needs a tool. */
function choiceOf(text: string | undefined, [first]: readonly Tool[]): { toolChoice?: ToolChoice } {
  const [mode, required] = (text ?? '').split(' ')
  if (mode === 'auto' || mode === 'none' || mode === 'required') return { toolChoice: { mode } }
  if (first === undefined) return {}
  if (mode === 'named') return { toolChoice: { mode, name: first.name } }
  if (mode !== 'allowed') return {}
  return { toolChoice: { mode, required: required === 'required', names: [first.name] } }
}

/** Prompt and reply tokens of each sample, for the comparison of costs. */
export const SAMPLE_TOKENS = 1_000

const PLAIN: WhenConfig = {
  labels: {},
  images: null,
  tools: null,
  minPromptTokens: null,
  plugin: null,
}

/**
 * Sample requests for comparing two files without a running gateway: one for each routed model, and for each
 * condition of its routes.
 */
export function sampleHeads(before: ComparedConfig, after: ComparedConfig): RequestHead[] {
  return modelsOf(before, after).flatMap((facts) => {
    const routes = [...before.router.all(facts.id), ...after.router.all(facts.id)]
    const conditions = new Map<string, WhenConfig>([['', PLAIN]])
    for (const { config } of routes) {
      if (config.when !== null) conditions.set(JSON.stringify(config.when), config.when)
    }
    return [...conditions.values()].map((when) => headFor(facts, when))
  })
}

/** The models of the catalogues and of routes. */
function modelsOf(before: ComparedConfig, after: ComparedConfig): ModelFacts[] {
  const models = new Map<string, ModelFacts>()
  for (const { config, catalogue, router } of [before, after]) {
    const named = config.routes.flatMap(({ match }) => ('model' in match ? [match.model] : []))
    for (const id of [...catalogue.models.map((facts) => facts.id), ...named]) {
      if (router.all(id).length > 0 && !models.has(id)) {
        models.set(id, catalogue.find(id) ?? { id, family: '', createdAtSeconds: 0 })
      }
    }
  }
  return [...models].map(([id, facts]) => ({ ...facts, id }))
}

function headFor({ id, embedding }: ModelFacts, when: WhenConfig): RequestHead {
  const isEmbedding = embedding === true
  const images = when.images === true ? ['image base64 image/png'] : []
  const sketch: RequestShape = {
    turns: [['user', 'text', ...images]],
    ends: ['user', 'user'],
    tools: when.tools === true ? ['function parameters'] : [],
    settings: {},
    rest: {},
    native: [],
  }
  return {
    atMs: 0,
    keyId: '',
    accountId: '',
    labels: when.labels,
    format: isEmbedding ? 'embeddings' : 'chat',
    dialect: 'openai-chat',
    wire: isEmbedding ? 'openai-embeddings' : 'openai-chat',
    model: id,
    stream: false,
    bodyBytes: 0,
    promptTokens: when.minPromptTokens ?? 0,
    usage: { input: SAMPLE_TOKENS, output: isEmbedding ? 0 : SAMPLE_TOKENS },
    tier: null,
    outcome: 'ok',
    sketch,
  }
}
