/** The same format on both sides: edits of the request's bytes, and what the gateway reads of the reply. */
import type { WireError } from '../../errors.js'
import type { FinishReason } from '../chat/event.js'
import type { CallCounts } from '../chat/hosted-tools.js'
import {
  arrayOf,
  isObject,
  stringOf,
  numberOf,
  objectOf,
  type JsonObject,
  type JsonValue,
} from '../../base/json.js'
import { longTextOf } from '../chat/long-text.js'
import { NO_OUTPUT } from '../chat/output-size.js'
import { reportsOutput, type Usage } from '../chat/usage.js'
import type { EncodeContext, Losses, StreamWatcher, WatchedRequest, ReplyFacts } from '../dialect.js'
import { errorIn } from '../wire/error-text.js'
import { FrameShapes, parseLatin1 } from '../wire/frames/frame-shapes.js'
import { hasNoArguments } from '../wire/json/no-arguments.js'
import { NestedJson } from '../wire/json/nested-json.js'
import type { Edit } from '../wire/json/splice.js'
import { largeEdit } from '../wire/json/write-json.js'
import { RESPONSES_FIELDS, withheldEdits } from '../wire/openai/withheld-fields.js'
import { isReasoningToken, readReasoningToken, type FoundState } from '../wire/reasoning-token.js'
import { MALFORMED_REPLY, strayFrame, TRUNCATED_REPLY } from '../wire/upstream-errors.js'
import { UsageMeter, usageIn } from '../wire/usage-meter.js'
import { failedEvent } from './client/encode-error.js'
import { isOwnItemId } from './client/response-object.js'
import { summaryIn } from './compaction-item.js'
import { reasoningItem } from './reasoning-state.js'
import { errorOfEvent, errorOfResponse, callsOf, withItem, endingOf } from './upstream/decode-reply.js'

/**
 * Sets the upstream's name of the model, removes fields that choose another model or provider, and converts
 * items that only the gateway understands.
 */
export function edits(
  body: JsonObject,
  modelName: string,
  { losses }: Pick<EncodeContext, 'losses'>,
): Edit[] {
  const drop = (path: string): void => losses.drop(path, 'no-equivalent')
  const out = withheldEdits(body, drop, RESPONSES_FIELDS)
  if (body['model'] !== modelName) out.push({ key: 'model', json: JSON.stringify(modelName) })
  out.push(...choiceEdits(body))
  const input = forwardedInput(body['input'], losses)
  if (input !== null) out.push(largeEdit('input', input))
  return out
}

/** A free choice among tools needs some, also of items or a stored prompt. The upstream judges any other. */
function choiceEdits(body: JsonObject): Edit[] {
  if (arrayOf(body['tools']).length > 0 || isObject(body['prompt'])) return []
  if (arrayOf(body['input']).some((item) => arrayOf(objectOf(item)['tools']).length > 0)) return []
  const { tool_choice: choice, parallel_tool_calls: parallel } = body
  const out: Edit[] = []
  if (choice === 'auto' || choice === 'none') out.push({ key: 'tool_choice', json: null })
  if (typeof parallel === 'boolean') out.push({ key: 'parallel_tool_calls', json: null })
  return out
}

/**
 * The items without ids of the gateway and without reasoning state of other dialects, and with `{}` for the
 * arguments of a call that has none; null if nothing changes.
 */
function forwardedInput(input: JsonValue | undefined, losses: Losses): JsonValue[] | null {
  const items = arrayOf(input)
  if (!items.some((item) => isFromGateway(item) || lacksArguments(item))) return null
  const nested = new NestedJson()
  return items.flatMap((given, at): JsonValue[] => {
    const item = isObject(given) && lacksArguments(given) ? { ...given, arguments: '{}' } : given
    if (!isObject(item)) return [item]
    const summary = summaryIn(item, `input[${at}]`, nested)
    if (summary !== null) return [{ type: 'message', role: 'user', content: summary }]
    const encrypted = stringOf(item['encrypted_content']) ?? ''
    if (!isReasoningToken(encrypted)) return withoutOwnId(item)
    const own = ownItem(readReasoningToken(encrypted, nested))
    if (own !== null) return [{ ...own, summary: item['summary'] ?? [] }]
    losses.drop('input.reasoning', 'no-equivalent')
    return []
  })
}

/** The upstream's item in a token; null for state of another dialect. */
function ownItem(state: FoundState | null): JsonObject | null {
  if (state === null) return null
  return reasoningItem({ type: 'thinking', text: '', ...state.thoughts[0], origin: state.origin })
}

function lacksArguments(item: JsonValue): boolean {
  if (!isObject(item) || item['type'] !== 'function_call' || longTextOf(item, 'arguments') !== null)
    return false
  const given = item['arguments'] ?? ''
  return typeof given === 'string' && hasNoArguments(given)
}

function isFromGateway(item: JsonValue): boolean {
  if (!isObject(item)) return false
  return (
    isReasoningToken(stringOf(item['encrypted_content']) ?? '') || isOwnItemId(stringOf(item['id']) ?? '')
  )
}

/** The item without an id of the gateway; empty for reasoning without state, which upstreams cannot use. */
function withoutOwnId(item: JsonObject): JsonObject[] {
  const { id, ...rest } = item
  if (!isOwnItemId(stringOf(id) ?? '')) return [item]
  return item['type'] === 'reasoning' ? [] : [rest]
}

/** The values that differ between similar deltas: text, padding and numbers. */
const FRAME_SLOTS = /"(?:(?:delta|obfuscation|item_id)"\s*:\s*"|\w+"\s*:\s*(?=[-\d]))/g

/**
 * Watches a streamed response that passes through unchanged: usage, finish reason, error, first content. Only
 * events that differ in shape from earlier ones are parsed; an ordinary delta costs a few comparisons.
 * `isComplete` is true after the last event of a response that did not fail.
 */
export class EventWatcher implements StreamWatcher {
  usage: Usage = {}
  reason: FinishReason | null = null
  error: WireError | null = null
  model: string | null = null
  tier: string | null = null
  readonly outputSize = { bytes: 0, calls: 0 }
  hasContent = false
  isComplete = false
  readonly excess = ''
  readonly missingFrame = ''
  readonly terminator = ''
  private readonly shapes = new FrameShapes<true>(FRAME_SLOTS)
  private readonly meter = new UsageMeter()
  private calls: CallCounts | undefined
  private readonly onWhole: WatchedRequest['onWhole']
  private readonly onTool: WatchedRequest['onTool']
  /** The response object of the first event. */
  private first: JsonObject | null = null
  private sequence = -1

  constructor(request: WatchedRequest) {
    this.onWhole = request.onWhole
    this.onTool = request.onTool
  }

  /** Only the last event ends a response. */
  get isFinished(): boolean {
    return this.isComplete
  }

  frame(name: string, data: string): boolean {
    if (this.hasContent) {
      const delta = this.shapes.read(data)
      if (delta !== null) {
        this.delta(delta)
        return true
      }
    }
    if (data === '[DONE]' || data.trim() === '[DONE]') {
      this.error = { ...TRUNCATED_REPLY }
      return false
    }
    const event = parseLatin1(data)
    if (event === null) {
      const text = Buffer.from(data, 'latin1').toString('utf8')
      this.error = name === 'error' ? errorOfEvent({ message: text }) : strayFrame(text)
      return false
    }
    const type = name === 'error' ? name : (stringOf(event['type']) ?? name)
    if (!this.watch(type, event)) return false
    if (type.endsWith('.delta')) this.shapes.add(data, true)
    return true
  }

  failed(error: WireError): string {
    return failedEvent({ object: 'response', output: [], ...this.first }, error, this.sequence + 1)
  }

  /** False for an event that reports a failure, which the gateway reports in an event of its own. */
  private watch(type: string, event: JsonObject): boolean {
    const response = objectOf(event['response'])
    if (!type.endsWith('.delta')) this.count(event)
    this.takeResponse(response)
    if (type === 'error') this.error = errorOfEvent(event)
    else if (type === 'response.failed' || type === 'response.cancelled') {
      this.error = errorOfResponse(response)
    } else if (isObject(event['error']) || !type.startsWith('response.')) {
      this.error = errorIn(event) === null ? null : errorOfEvent(event)
    }
    if (this.error !== null) return false
    this.sequence = numberOf(event['sequence_number']) ?? this.sequence
    if (type === 'response.completed' || type === 'response.incomplete') {
      return this.end(response, type === 'response.incomplete')
    }
    if (type.endsWith('.delta')) this.delta(event)
    else if (type.startsWith('response.output_item.')) this.item(type, objectOf(event['item']))
    return true
  }

  private end(response: JsonObject, isIncomplete: boolean): boolean {
    const { status } = response
    if (status === 'failed' || status === 'cancelled') {
      this.error = errorOfResponse(response)
      return false
    }
    const hosted = callsOf(response['output'])
    if (hosted !== undefined) this.addCalls(hosted)
    const calls = callsIn(response)
    this.reason = endingOf(response, isIncomplete || status === 'incomplete', calls).reason
    this.hasContent = true
    this.isComplete = true
    this.onWhole?.(response)
    return true
  }

  private count(event: JsonObject): void {
    if (!this.meter.takeFrame(event)) return
    const { calls } = this
    this.usage = calls === undefined ? this.meter.usage() : { ...this.meter.usage(), calls }
  }

  /** The calls so far, by the items of the output. */
  private addCalls(calls: CallCounts): void {
    this.calls = calls
    this.usage = { ...this.usage, calls }
  }

  private takeResponse(response: JsonObject): void {
    this.model ??= nameOf(response)
    this.tier = stringOf(response['service_tier']) ?? this.tier
    if (this.first === null && stringOf(response['id']) !== undefined) this.first = response
  }

  private delta(event: JsonObject): void {
    const delta = stringOf(event['delta']) ?? ''
    this.sequence = numberOf(event['sequence_number']) ?? this.sequence
    if (delta === '') return
    this.hasContent = true
    // Frames of a known shape are bytes read as Latin-1, whose length is in bytes. Parsed frames are counted
    // in characters.
    this.outputSize.bytes += delta.length
  }

  /**
   * Calls and items of hosted tools are content when they begin; messages and reasoning when they have text.
   */
  private item(type: string, item: JsonObject): void {
    const kind = stringOf(item['type']) ?? ''
    const isAdded = type === 'response.output_item.added'
    if (isAdded && (kind === 'message' || kind === 'reasoning')) return
    this.hasContent = true
    if (isAdded && this.onTool !== undefined && kind.endsWith(CALL)) {
      this.onTool(Buffer.from(toolOf(item), 'latin1').toString('utf8'))
    }
    if (!isAdded) {
      const calls = withItem(this.calls, item)
      if (calls !== undefined) this.addCalls(calls)
    }
    if (isAdded && isCall(kind)) this.outputSize.calls += 1
  }
}

/** Usage, finish reason, error and model of a whole response. */
export function replyFacts(body: JsonObject, onTool?: WatchedRequest['onTool']): ReplyFacts {
  const { status, error } = body
  if (onTool !== undefined) {
    for (const item of arrayOf(body['output']))
      if (kindOf(item).endsWith(CALL)) onTool(toolOf(objectOf(item)))
  }
  const usage = usageIn(body)
  const calls = callsOf(body['output'])
  if (calls !== undefined) usage.calls = calls
  const isIncomplete = status === 'incomplete'
  let problem: WireError | null = null
  if (isObject(error) || status === 'failed' || status === 'cancelled') {
    problem = errorOfResponse(body)
  } else if (status === 'in_progress' || status === 'queued') problem = { ...TRUNCATED_REPLY }
  else if (!Array.isArray(body['output'])) {
    problem = errorIn(body) === null ? { ...MALFORMED_REPLY } : errorOfEvent(body)
  }
  return {
    usage,
    outputSize: reportsOutput(usage) ? NO_OUTPUT : outputSizeIn(body),
    reason: problem === null ? endingOf(body, isIncomplete, callsIn(body)).reason : null,
    error: problem,
    model: nameOf(body),
    tier: stringOf(body['service_tier']) ?? null,
  }
}

const CALL = '_call'

/** The name of the tool that an item calls; of the provider's own tools, their type. */
function toolOf(item: JsonObject): string {
  return stringOf(item['name']) ?? kindOf(item).slice(0, -CALL.length)
}

function isCall(kind: string): boolean {
  return kind === 'function_call' || kind === 'custom_tool_call'
}

function callsIn(response: JsonObject): number {
  return arrayOf(response['output']).filter((item) => isCall(kindOf(item))).length
}

function kindOf(item: JsonValue): string {
  return stringOf(objectOf(item)['type']) ?? ''
}

/** An estimate: the bytes of the serialised output. */
function outputSizeIn(response: JsonObject): { bytes: number; calls: number } {
  const bytes = Buffer.byteLength(JSON.stringify(response['output'] ?? null))
  return { bytes, calls: callsIn(response) }
}

function nameOf(response: JsonObject): string | null {
  const model = stringOf(response['model'])
  return model === undefined || model === '' ? null : model
}
