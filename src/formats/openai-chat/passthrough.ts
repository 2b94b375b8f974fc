/** The same format on both sides: edits of the request's bytes, and what the gateway reads of the reply. */
import type { WireError } from '../../errors.js'
import type { FinishReason } from '../chat/event.js'
import {
  arrayOf,
  isObject,
  objectOf,
  stringOf,
  numberOf,
  type JsonObject,
  type JsonValue,
} from '../../base/json.js'
import { CUT_CALL, CUTS } from '../chat/grammar.js'
import { JsonCompletion } from '../chat/json-completion.js'
import { longTextOf } from '../chat/long-text.js'
import type { ModelFacts } from '../chat/model-facts.js'
import { NO_OUTPUT } from '../chat/output-size.js'
import { EFFORTS } from '../chat/request.js'
import { reportsOutput, type Usage } from '../chat/usage.js'
import type { EncodeContext, StreamWatcher, WatchedRequest, ReplyFacts } from '../dialect.js'
import { FrameShapes, parseLatin1 } from '../wire/frames/frame-shapes.js'
import { stringBytes as bytesAfter } from '../wire/frames/sized-text.js'
import { hasNoArguments } from '../wire/json/no-arguments.js'
import { parseExact } from '../wire/json/exact-numbers.js'
import type { Edit } from '../wire/json/splice.js'
import { largeEdit } from '../wire/json/write-json.js'
import { wireCallId, type CallIdRule } from '../wire/openai/tools.js'
import { withheldEdits } from '../wire/openai/withheld-fields.js'
import { stopReasonOf } from '../wire/stop-reasons.js'
import { MALFORMED_REPLY, TRUNCATED_REPLY } from '../wire/upstream-errors.js'
import { UsageMeter, usageIn } from '../wire/usage-meter.js'
import { MAX_CALL_ID, FRAME_SLOTS } from './constants.js'
import { effortFor, isDefaultValue, refusesMaxTokens, SAMPLING, accepts, acceptsStop } from './model-rules.js'
import {
  errorIn,
  errorOfEvent,
  errorOfOther,
  isChunk,
  STOPPED_WITH_ERROR,
  choiceOf,
  citesPages,
  ONE_SEARCH,
} from './upstream/decode-reply.js'
import { utf8 } from '../wire/json/full-scan.js'

/** Upstreams refuse a choice among tools without tools. */
function choiceEdits(body: JsonObject): Edit[] {
  if (arrayOf(body['tools']).length > 0 || arrayOf(body['functions']).length > 0) return []
  const given = CHOICE_FIELDS.filter((key) => (body[key] ?? null) !== null)
  return given.map((key) => ({ key, json: null }))
}

const CHOICE_FIELDS = ['tool_choice', 'parallel_tool_calls', 'function_call']

/** Fields of other formats that OpenAI refuses with 400. */
const FOREIGN_FIELDS = ['reasoning', 'thinking', 'thinking_config', 'extra_body', 'extra_content']

/**
 * Sets the upstream's name of the model, requests usage at the end of a stream, and removes nulls and, for
 * OpenAI's own models, fields that the model refuses. Throws `GatewayError(untranslatable)` for a refused
 * field that changes the meaning of the request.
 */
export function edits(body: JsonObject, modelName: string, context: EncodeContext): Edit[] {
  const { model: facts, losses } = context
  const out: Edit[] = []
  const put = (key: string, value: JsonValue): void => {
    out.push({ key, json: JSON.stringify(value) })
  }
  // The format defines null as absent, and some upstreams refuse it.
  for (const key in body) if (body[key] === null) out.push({ key, json: null })
  out.push(...withheldEdits(body, (path) => losses.drop(path, 'no-equivalent')))
  if (body['model'] !== modelName) put('model', modelName)
  const options = body['stream_options']
  if (body['stream'] === true && objectOf(options)['include_usage'] !== true) {
    put('stream_options', { ...objectOf(options), include_usage: true })
  }
  if (body['cache_control'] !== undefined) out.push({ key: 'cache_control', json: null })
  out.push(...choiceEdits(body))
  const drop = (key: string): void => void out.push({ key, json: null })
  const own = { body, drop, put }
  // OpenAI's own models take a turn with an empty string.
  const turns = sendableMessages(body['messages'], context)
  if (facts.endpoints === undefined && turns !== null) out.push(largeEdit('messages', turns))
  if (facts.family !== 'openai') {
    sameLimit(own)
    return out
  }
  limitEdit(own, facts)
  if (facts.endpoints === undefined) return out
  dropRefused(own, effortEdit(own, context), context)
  if (!acceptsStop(body['stop'], facts) && body['stop'] !== undefined) drop('stop')
  const marks = facts.promptCacheBreakpoints === true
  if (!marks && (body['prompt_cache_options'] ?? null) !== null) drop('prompt_cache_options')
  const messages = forwardedMessages(turns ?? body['messages'], marks) ?? turns
  if (messages !== null) {
    out.push(largeEdit('messages', messages))
    if (hasReasoning(body['messages'])) losses.drop('messages.reasoning', 'no-equivalent')
  }
  const tools = forwardedTools(body['tools'])
  if (tools !== null) out.push(largeEdit('tools', tools))
  return out
}

/**
 * The messages as every upstream accepts them: without assistant turns without content, which a client has
 * from a refused or empty reply or from one of reasoning alone, and with `{}` for the arguments of a call
 * that has none. Null if nothing changes.
 */
function sendableMessages(
  value: JsonValue | undefined,
  { model: facts, losses }: EncodeContext,
): JsonValue[] | null {
  const messages = arrayOf(value)
  const takesBlank = facts.endpoints !== undefined
  let out: JsonValue[] | null = null
  for (const [at, item] of messages.entries()) {
    const isTurn = isObject(item) && item['role'] === 'assistant'
    const isShort = isTurn && longTextOf(item, 'content') === null
    const isBlank = takesBlank && isShort && item['content'] === ''
    const isLeftOut = isTurn && !isBlank && isEmptyTurn(item)
    if (isLeftOut && reasons(item)) losses.drop('messages.reasoning', 'no-equivalent')
    const sendable = isTurn && !isLeftOut ? (sendableTurn(item, takesBlank) ?? item) : item
    if (sendable !== item || isLeftOut) out ??= messages.slice(0, at)
    if (!isLeftOut) out?.push(sendable)
  }
  return out === null || out.length === 0 ? null : out
}

/** Whether all members beside the role and the reasoning are empty. */
function isEmptyTurn(item: JsonObject): boolean {
  if (longTextOf(item, 'content') !== null) return false
  const isEmptyPart = (part: JsonValue): boolean =>
    isObject(part) && part['type'] === 'text' && longTextOf(part, 'text') === null && part['text'] === ''
  for (const key in item) {
    if (key === 'role' || key === 'name' || REASONING.includes(key) || isNothing(item[key])) continue
    if (key !== 'content' || !arrayOf(item[key]).every(isEmptyPart)) return false
    if (!Array.isArray(item[key])) return false
  }
  return true
}

/**
 * The turn with `{}` for absent arguments, and without an empty list of calls; null if nothing changes. A
 * refusal becomes content for upstreams other than OpenAI, for which the turn would be empty.
 */
function sendableTurn(item: JsonObject, takesRefusal: boolean): JsonObject | null {
  const given = item['tool_calls']
  const isRefused = typeof item['refusal'] === 'string' && item['refusal'] !== ''
  const hasContent = longTextOf(item, 'content') !== null || !isNothing(item['content'])
  if (!takesRefusal && isRefused && !hasContent && arrayOf(given).length === 0) {
    return { ...without(item, ['refusal', 'tool_calls']), content: item['refusal'] }
  }
  if (Array.isArray(given) && given.length === 0) return without(item, ['tool_calls'])
  const calls = changed(arrayOf(given), (call) => {
    const inner = call['function']
    if (!isObject(inner)) return null
    const args = inner['arguments'] ?? ''
    return typeof args === 'string' && hasNoArguments(args)
      ? { ...call, function: { ...inner, arguments: '{}' } }
      : null
  })
  return calls === null ? null : { ...item, tool_calls: calls }
}

/** A client's body whose top-level members are removed or set. */
interface EditedBody {
  readonly body: JsonObject
  readonly drop: (key: string) => void
  readonly put: (key: string, value: JsonValue) => void
}

/**
 * `max_completion_tokens` takes precedence over `max_tokens`, as in the request that was admitted. Reasoning
 * models refuse `max_tokens`, which is renamed for them.
 */
function limitEdit(own: EditedBody, facts: ModelFacts): void {
  const { body, drop, put } = own
  const limit = body['max_tokens']
  if (typeof limit !== 'number') return
  const isBoth = typeof body['max_completion_tokens'] === 'number'
  const isRefused = refusesMaxTokens(facts)
  if (facts.endpoints === undefined && !isRefused) return sameLimit(own)
  if (!isBoth && !isRefused) return
  drop('max_tokens')
  if (!isBoth) put('max_completion_tokens', limit)
}

/**
 * An upstream that the catalogue does not list may read either field, so both get the limit that was
 * admitted.
 */
function sameLimit({ body, put }: EditedBody): void {
  const limit = body['max_completion_tokens']
  if (typeof limit !== 'number' || typeof body['max_tokens'] !== 'number') return
  if (body['max_tokens'] !== limit) put('max_tokens', limit)
}

/** Sets an effort that the model supports; returns it. */
function effortEdit(
  { body, drop, put }: EditedBody,
  { model: facts, losses }: EncodeContext,
): string | undefined {
  const flat = body['reasoning_effort'] ?? undefined
  const nested = objectOf(body['reasoning'])['effort']
  const given = EFFORTS.find((one) => one === (flat ?? nested))
  const tools = [body['tools'], body['functions']].some((list) => arrayOf(list).length > 0)
  const effort = effortFor({ effort: given, tools }, facts, losses)
  if (effort === undefined) {
    if (flat !== undefined) drop('reasoning_effort')
  } else if (effort !== flat) put('reasoning_effort', effort)
  return effort
}

function dropRefused(
  { body, drop }: EditedBody,
  effort: string | undefined,
  { model: facts, losses }: EncodeContext,
): void {
  for (const field of SAMPLING) {
    const value = body[field] ?? undefined
    if (value === undefined || accepts(field, facts, effort)) continue
    drop(field)
    if (!isDefaultValue(field, value)) losses.drop(field, 'no-equivalent')
  }
  for (const field of FOREIGN_FIELDS) {
    const value = body[field] ?? undefined
    if (value === undefined) continue
    drop(field)
    if (!isEffortAlone(field, value)) losses.drop(field, 'no-equivalent')
  }
  const retention = body['prompt_cache_retention'] ?? undefined
  if (facts.promptCacheRetention === false && retention !== undefined) {
    drop('prompt_cache_retention')
  }
}

/** Whether the field is a reasoning object with an effort only, which the flat field expresses. */
function isEffortAlone(field: string, value: JsonValue): boolean {
  return field === 'reasoning' && isObject(value) && Object.keys(value).join() === 'effort'
}

/** Members of messages, parts, calls and tools that other providers accept and OpenAI refuses. */
const FOREIGN_MEMBERS: readonly string[] = [
  'cache_control',
  'extra_content',
  'reasoning',
  'reasoning_content',
  'reasoning_details',
  'thinking_blocks',
]

/** The same for models without explicit cache breakpoints. */
const FOREIGN_MEMBERS_AND_MARKS: readonly string[] = [...FOREIGN_MEMBERS, 'prompt_cache_breakpoint']

/**
 * A client's messages without the members that OpenAI refuses with 400: cache markers, reasoning and long
 * call ids of a conversation that began with another provider. Null if there are none. `marks`: the model
 * accepts OpenAI's cache breakpoints.
 */
function forwardedMessages(value: JsonValue | undefined, marks: boolean): JsonValue[] | null {
  const foreign = marks ? FOREIGN_MEMBERS : FOREIGN_MEMBERS_AND_MARKS
  return changed(arrayOf(value), (item) => message(item, foreign))
}

/** Members with reasoning, or with the reasoning state that a provider signed. */
const REASONING = ['extra_content', 'reasoning', 'reasoning_content', 'reasoning_details', 'thinking_blocks']

/** Whether a message has reasoning, which `forwardedMessages` removes. */
function hasReasoning(value: JsonValue | undefined): boolean {
  return arrayOf(value).some(
    (item) => isObject(item) && (reasons(item) || arrayOf(item['tool_calls']).some(reasons)),
  )
}

function reasons(item: JsonValue): boolean {
  return isObject(item) && REASONING.some((key) => !isNothing(item[key]))
}

function isNothing(value: JsonValue | undefined): boolean {
  return value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0)
}

/** The tools without foreign members; null if there are none. */
function forwardedTools(value: JsonValue | undefined): JsonValue[] | null {
  return changed(arrayOf(value), (tool) => {
    const inner = isObject(tool['function']) ? own(tool['function']) : null
    return inner === null ? own(tool) : { ...(own(tool) ?? tool), function: inner }
  })
}

function message(item: JsonObject, foreign: readonly string[]): JsonObject | null {
  const set: JsonObject = {}
  const id = stringOf(item['tool_call_id'])
  if (id !== undefined && wireCallId(id, MAX_CALL_ID) !== id)
    set['tool_call_id'] = wireCallId(id, MAX_CALL_ID)
  const calls = changed(arrayOf(item['tool_calls']), call)
  if (calls !== null) set['tool_calls'] = calls
  const isText = longTextOf(item, 'content') !== null
  const content = isText ? null : contentOf(item['content'], foreign)
  if (content !== null) set['content'] = content.length === 0 ? '' : content
  const rest = own(item, foreign)
  return rest === null && Object.keys(set).length === 0 ? null : { ...(rest ?? item), ...set }
}

/** The edit that gives calls, which other models may have made, ids that a vendor takes. */
export function callIdEdit(body: JsonObject, edits: readonly Edit[], rule: CallIdRule): Edit[] {
  const edit = edits.findLast(({ key }) => key === 'messages')
  const sent = edit?.value ?? (typeof edit?.json === 'string' ? parseExact(edit.json) : body['messages'])
  const messages = changed(arrayOf(sent), (item) => {
    const set: JsonObject = {}
    const id = stringOf(item['tool_call_id'])
    if (id !== undefined && !rule.taken.test(id)) set['tool_call_id'] = wireCallId(id, MAX_CALL_ID, rule)
    const calls = changed(arrayOf(item['tool_calls']), (each) => {
      const own = stringOf(each['id'])
      if (own === undefined || rule.taken.test(own)) return null
      return { ...each, id: wireCallId(own, MAX_CALL_ID, rule) }
    })
    if (calls !== null) set['tool_calls'] = calls
    return Object.keys(set).length === 0 ? null : { ...item, ...set }
  })
  return messages === null ? [] : [largeEdit('messages', messages)]
}

function call(item: JsonObject): JsonObject | null {
  const rest = own(item)
  const id = stringOf(item['id']) ?? ''
  return wireCallId(id, MAX_CALL_ID) === id ? rest : { ...(rest ?? item), id: wireCallId(id, MAX_CALL_ID) }
}

/** The parts without foreign members and without Mistral's thinking parts; null if nothing changes. */
function contentOf(value: JsonValue | undefined, foreign: readonly string[]): JsonValue[] | null {
  const parts = arrayOf(value)
  const clean = (part: JsonObject): JsonObject | null => own(part, foreign)
  if (!parts.some(isThinking)) return changed(parts, clean)
  const withoutThinking = parts.filter((part) => !isThinking(part))
  return changed(withoutThinking, clean) ?? withoutThinking
}

function isThinking(part: JsonValue): boolean {
  return isObject(part) && part['type'] === 'thinking'
}

/** The object without foreign members; null if it has none. */
function own(item: JsonObject, foreign = FOREIGN_MEMBERS): JsonObject | null {
  return foreign.some((key) => item[key] !== undefined) ? without(item, foreign) : null
}

function without(item: JsonObject, keys: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(item).filter(([key]) => !keys.includes(key)))
}

/** The list with the changed items; null if no item changes. */
function changed(
  list: readonly JsonValue[],
  change: (item: JsonObject) => JsonObject | null,
): JsonValue[] | null {
  let out: JsonValue[] | null = null
  for (const [at, item] of list.entries()) {
    const other = isObject(item) ? change(item) : null
    if (other === null) continue
    out ??= [...list]
    out[at] = other
  }
  return out
}

/** A quote inside a JSON string has a backslash before it, so every match is a member. */
const NULL_USAGE = /,\s*"usage"\s*:\s*null/g

/** Facts of ordinary frames of one shape. */
interface OrdinaryFrame {
  /** The part of the frame that only the gateway requested. */
  readonly excess: string
  /** The frames contain usage so far. */
  readonly hasUsage: boolean
  /** The frames contain fragments of calls. */
  readonly hasCalls: boolean
}

/** Calls of a stream whose arguments are watched; more are not. */
const MAX_WATCHED_CALLS = 256

const DELTA = '"delta"'

/**
 * Watches one stream. `isComplete` is true after `[DONE]`. A finish reason alone is not the end, because
 * usage follows it; the caller decides about an end of file after a reason (reliability D-61).
 *
 * Watches a stream that passes through unchanged: usage, finish reason, error, first content. Only frames
 * that differ in shape from earlier ones are parsed; an ordinary delta costs a few comparisons.
 */
export class ChunkWatcher implements StreamWatcher {
  usage: Usage = {}
  reason: FinishReason | null = null
  error: WireError | null = null
  model: string | null = null
  tier: string | null = null
  readonly outputSize = { bytes: 0, calls: 0 }
  hasContent = false
  isComplete = false
  excess = ''
  missingFrame = ''
  readonly terminator = 'data: [DONE]\n\n'
  /** Whether each choice has a finish reason, by the index of the choice. */
  private readonly choices = new Map<number, boolean>()
  private readonly shapes = new FrameShapes<OrdinaryFrame>(FRAME_SLOTS)
  private readonly meter = new UsageMeter()
  private hasCited = false
  /** A frame was neither a chunk nor an error. */
  private hasOther = false
  /** The offset of the delta in the last frame, at which most frames have theirs. */
  private deltaAt = -1
  /** A call has begun; it implies the finish reason of a stream that ends without one. */
  private hasCall = false
  /** The arguments of each call so far, by the indexes of its choice and of its own. */
  private readonly calls = new Map<string, JsonCompletion>()
  /** The first chunk, from which a chunk that the upstream omitted is built. */
  private firstChunk: JsonObject | null = null
  private readonly includeUsage: boolean
  private readonly onTool: WatchedRequest['onTool']
  /** The calls whose names `onTool` got. */
  private named: Set<string> | null = null
  private readonly asChat: ((data: string) => string) | null

  /** `asChat` converts a frame of another format; such a stream gets no chunk that its upstream omitted. */
  constructor(request: WatchedRequest, asChat: ((data: string) => string) | null = null) {
    this.includeUsage = request.includeUsage
    this.onTool = request.onTool
    this.asChat = asChat
  }

  get isFinished(): boolean {
    if (this.reason === null || this.isCut(this.reason)) return false
    for (const hasReason of this.choices.values()) if (!hasReason) return false
    return true
  }

  frame(name: string, raw: string): boolean {
    if (this.error !== null || this.isComplete) return false
    if (name === 'error') {
      this.error = errorOfEvent(utf8(raw))
      return false
    }
    const data = this.asChat === null ? raw : this.asChat(raw)
    this.deltaAt = data.startsWith(DELTA, this.deltaAt) ? this.deltaAt : data.indexOf(DELTA)
    this.outputSize.bytes += textBytes(data, this.deltaAt)
    if (this.hasContent) {
      const known = this.shapes.find(data)
      if (known !== null && this.takeKnown(known, data)) return true
    }
    if (data === '[DONE]' || data.trim() === '[DONE]') return this.endOfStream()
    const chunk = parseLatin1(data)
    if (chunk === null) {
      this.error = errorOfOther(utf8(data))
      return false
    }
    this.excess = this.includeUsage ? '' : nullUsageIn(data, chunk)
    const hasUsage = this.count(chunk)
    if (!this.watch(chunk)) return false
    if (isOrdinary(chunk)) {
      const hasCalls = arrayOf(chunk['choices']).some((choice) => callsIn(choice).length > 0)
      this.shapes.add(data, { excess: this.excess, hasUsage, hasCalls })
    }
    return true
  }

  /** Reads the usage of a frame with a known shape, if it has any. False if the frame must be parsed. */
  private takeKnown(frame: OrdinaryFrame, data: string): boolean {
    if (frame.hasUsage || frame.hasCalls) {
      const chunk = this.shapes.value(data)
      if (chunk === null) return false
      if (frame.hasUsage) this.count(chunk)
      if (frame.hasCalls) for (const choice of arrayOf(chunk['choices'])) this.addCalls(choice)
    }
    this.excess = frame.excess
    return true
  }

  private endOfStream(): boolean {
    if (this.isCut(this.reason ?? 'stop')) {
      this.error = { ...CUT_CALL }
      return false
    }
    if (this.reason !== null) {
      this.isComplete = true
      return true
    }
    // As in the decoder: `[DONE]` ends a reply with content and chunks only, and truncates others.
    if (!this.hasContent || this.hasOther) {
      this.error = { ...TRUNCATED_REPLY }
      return false
    }
    this.reason = this.hasCall ? 'tool-use' : 'stop'
    if (this.asChat === null) this.missingFrame = this.lastChunk(this.hasCall ? 'tool_calls' : 'stop')
    this.isComplete = true
    return true
  }

  /** The chunk with the finish reasons that the upstream omitted, as bytes read as Latin-1. */
  private lastChunk(reason: string): string {
    const { id = '', created = 0, model = '' } = this.firstChunk ?? {}
    const choices = [...this.choices.keys()].map((index) => {
      return { index, delta: {}, finish_reason: reason }
    })
    const chunk = { id, object: 'chat.completion.chunk', created, model, choices }
    return Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`).toString('latin1')
  }

  private watch(chunk: JsonObject): boolean {
    this.firstChunk ??= chunk
    this.model ??= nameOf(chunk)
    this.tier ??= stringOf(chunk['service_tier']) ?? null
    const choices = arrayOf(chunk['choices'])
    this.error = errorIn(chunk) ?? (choices.some(hasErrorReason) ? { ...STOPPED_WITH_ERROR } : null)
    if (this.error !== null) return false
    this.hasOther ||= !isChunk(chunk)
    for (const choice of choices) this.choice(objectOf(choice))
    return this.includeUsage || choices.length > 0 || !isObject(chunk['usage'])
  }

  private count(chunk: JsonObject): boolean {
    if (!this.meter.takeFrame(chunk)) return false
    const usage = this.meter.usage()
    this.usage = this.hasCited ? { calls: ONE_SEARCH, ...usage } : usage
    return true
  }

  /** Whether the reply is reported as finished, and the arguments of a call are not. */
  private isCut(reason: FinishReason): boolean {
    if (this.calls.size === 0 || CUTS.has(reason)) return false
    return [...this.calls.values()].some((json) => json.isOpen)
  }

  private addCalls(choice: JsonValue): void {
    for (const item of callsIn(choice)) {
      this.hasCall = true
      const call = objectOf(item)
      const { arguments: fragment, name } = objectOf(call['function'])
      const key = `${numberOf(objectOf(choice)['index']) ?? 0} ${numberOf(call['index']) ?? 0}`
      if (this.onTool !== undefined && typeof name === 'string') this.name(name, key, call)
      if (typeof fragment !== 'string' || fragment === '') continue
      const json = this.calls.get(key) ?? new JsonCompletion()
      if (this.calls.size < MAX_WATCHED_CALLS) this.calls.set(key, json)
      json.add(fragment)
    }
  }

  /** Some upstreams repeat the name in each chunk, others number all calls alike. */
  private name(name: string, key: string, call: JsonObject): void {
    const own = `${key} ${stringOf(call['id']) ?? ''}`
    const named = (this.named ??= new Set())
    if (name === '' || named.has(own) || (own.endsWith(' ') && named.has(key))) return
    if (named.size < 2 * MAX_WATCHED_CALLS) named.add(own).add(key)
    this.onTool?.(utf8(name))
  }

  private choice(choice: JsonObject): void {
    const delta = objectOf(choice['delta'])
    this.hasContent ||= hasContent(delta)
    if (!this.hasCited && citesPages(delta)) {
      this.hasCited = true
      this.usage = { calls: ONE_SEARCH, ...this.usage }
    }
    this.addCalls(choice)
    const reason = choice['finish_reason']
    const hasReason = typeof reason === 'string' && reason !== ''
    const index = numberOf(choice['index']) ?? 0
    this.choices.set(index, hasReason || this.choices.get(index) === true)
    if (!hasReason) return
    this.hasContent = true
    this.reason ??= stopReasonOf('openai-chat', reason)
  }
}

function callsIn(choice: JsonValue): readonly JsonValue[] {
  return arrayOf(objectOf(objectOf(choice)['delta'])['tool_calls'])
}

function hasErrorReason(choice: JsonValue): boolean {
  return objectOf(choice)['finish_reason'] === 'error'
}

/** Usage, finish reason, error and model of a whole reply. */
export function replyFacts(body: JsonObject, onTool?: WatchedRequest['onTool']): ReplyFacts {
  if (onTool !== undefined) for (const name of toolsIn(body)) onTool(name)
  const choice = choiceOf(body)
  const usage = usageIn(body)
  if (usage.calls === undefined && arrayOf(body['choices']).some(hasCitedPages)) {
    usage.calls = ONE_SEARCH
  }
  const reason = stringOf(choice?.['finish_reason'])
  return {
    usage,
    outputSize: reportsOutput(usage)
      ? NO_OUTPUT
      : { bytes: replyTextBytes(body['choices'] ?? null), calls: 0 },
    reason: reason === undefined || reason === '' ? null : stopReasonOf('openai-chat', reason),
    error: errorIn(body) ?? (choice === null ? { ...MALFORMED_REPLY } : null),
    model: nameOf(body),
    tier: stringOf(body['service_tier']) ?? null,
  }
}

function toolsIn(body: JsonObject): string[] {
  return arrayOf(body['choices']).flatMap((choice) =>
    arrayOf(objectOf(objectOf(choice)['message'])['tool_calls']).map((call) => {
      const { function: of, custom } = objectOf(call)
      return stringOf(objectOf(of ?? custom)['name']) ?? ''
    }),
  )
}

function hasCitedPages(choice: JsonValue): boolean {
  return citesPages(objectOf(objectOf(choice)['message']))
}

function nameOf(body: JsonObject): string | null {
  const model = stringOf(body['model'])
  return model === undefined || model === '' ? null : model
}

/** Whether a delta has a member beside the role that is neither empty nor null. */
function hasContent(delta: JsonObject): boolean {
  for (const key of Object.keys(delta)) {
    const value = delta[key]
    if (key === 'role' || value === null || value === '') continue
    if (Array.isArray(value) ? value.length > 0 : value !== undefined) return true
  }
  return false
}

/** Whether a chunk without an error has no finish reason. */
function isOrdinary(chunk: JsonObject): boolean {
  return arrayOf(chunk['choices']).every((choice) => {
    const reason = objectOf(choice)['finish_reason']
    return reason === null || reason === undefined
  })
}

/** The text of `"usage":null`, which only the gateway requested; empty if there is none. */
function nullUsageIn(data: string, chunk: JsonObject): string {
  if (chunk['usage'] !== null) return ''
  const found = data.match(NULL_USAGE)
  // Of several matches, some are inside another member.
  return found?.length === 1 ? found[0] : ''
}

/** The members of a message or delta that hold text, up to the value's first quote. */
const TEXT_MEMBERS = /"(?:content|arguments|reasoning_content|reasoning|refusal|input)"\s*:\s*"/g

/** The bytes of text in JSON that is bytes read as Latin-1, from an offset on; 0 for a negative offset. */
function textBytes(data: string, from: number): number {
  return bytesAfter(data, from, TEXT_MEMBERS)
}

/**
 * The same for the choices of a whole reply. Serialises them, so it is called only for a reply without usage.
 */
function replyTextBytes(choices: JsonValue): number {
  return textBytes(Buffer.from(JSON.stringify(choices)).toString('latin1'), 0)
}
