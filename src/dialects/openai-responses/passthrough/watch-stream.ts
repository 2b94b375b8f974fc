/**
 * Watches a streamed response that passes through untouched: usage, ending, failure, first content.
 * Parses only the events that are unlike those before them; an ordinary delta costs a few comparisons.
 */
import type { FinishReason } from '../../../chat/event.js'
import {
  arrayOf,
  isObject,
  type JsonObject,
  type JsonValue,
  numberOf,
  objectOf,
  stringOf,
} from '../../../chat/json.js'
import { NO_OUTPUT } from '../../../chat/reply/output-size.js'
import { mergeUsage, reportsOutput, type Usage } from '../../../chat/usage.js'
import type { WireError } from '../../../errors.js'
import { FrameShapes } from '../../../wire/frames/frame-shapes.js'
import type { StreamTap, TapRequest, TapResult } from '../../dialect.js'
import { eventError, failureOf, MALFORMED, TRUNCATED } from '../upstream/decode-error.js'
import { endingOf, usageOf } from '../shared/names.js'

/** What differs from one delta to the next: what it says, its padding, and numbers. */
const SLOT = /"(?:(?:delta|obfuscation|item_id)"\s*:\s*"|\w+"\s*:\s*(?=[-\d]))/g

/** One stream's watcher. `complete` is true after the last event of a response that did not fail. */
export class EventTap implements StreamTap {
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
  private readonly shapes = new FrameShapes<true>(SLOT)
  private readonly onWhole: TapRequest['onWhole']
  /** The response as the first event shows it. */
  private first: JsonObject | null = null
  private sequence = -1

  constructor(request: TapRequest) {
    this.onWhole = request.onWhole
  }

  /** Nothing but the last event ends a response. */
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
      this.error = { ...TRUNCATED }
      return false
    }
    const event = parse(data)
    if (event === null) {
      this.error = { ...MALFORMED }
      return false
    }
    const type = stringOf(event['type']) ?? name
    if (!this.watch(type, event)) return false
    if (type.endsWith('.delta')) this.shapes.add(data, true)
    return true
  }

  failed(error: WireError): string {
    const { kind, message } = error
    const code = kind === 'upstream_busy' ? 'rate_limit_exceeded' : 'server_error'
    const response = {
      object: 'response',
      output: [],
      ...this.first,
      status: 'failed',
      error: { code, message, kind },
    }
    const event = { type: 'response.failed', sequence_number: this.sequence + 1, response }
    return `event: response.failed\ndata: ${JSON.stringify(event)}\n\n`
  }

  /** False for an event that tells of a failure: the gateway tells of it in its own words. */
  private watch(type: string, event: JsonObject): boolean {
    const response = objectOf(event['response'])
    this.note(response)
    if (type === 'error') this.error = eventError(event)
    else if (type === 'response.failed' || type === 'response.cancelled') {
      this.error = failureOf(response)
    } else if (isObject(event['error'])) this.error = eventError(event)
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
      this.error = failureOf(response)
      return false
    }
    const calls = callsIn(response)
    this.reason = endingOf(response, isIncomplete || status === 'incomplete', calls).reason
    this.hasContent = true
    this.isComplete = true
    this.onWhole?.(response)
    return true
  }

  private note(response: JsonObject): void {
    if (isObject(response['usage'])) this.usage = mergeUsage(this.usage, usageOf(response['usage']))
    this.model ??= nameOf(response)
    this.tier = stringOf(response['service_tier']) ?? this.tier
    if (this.first === null && stringOf(response['id']) !== undefined) this.first = response
  }

  private delta(event: JsonObject): void {
    const said = stringOf(event['delta']) ?? ''
    this.sequence = numberOf(event['sequence_number']) ?? this.sequence
    if (said === '') return
    this.hasContent = true
    // Frames are bytes read as Latin-1, so a length is one in bytes, save for what was parsed as UTF-8.
    this.outputSize.bytes += said.length
  }

  /** A call, and what a tool of OpenAI's does, is content; a message and reasoning are so once they say something. */
  private item(type: string, item: JsonObject): void {
    const kind = stringOf(item['type']) ?? ''
    const isAdded = type === 'response.output_item.added'
    if (isAdded && (kind === 'message' || kind === 'reasoning')) return
    this.hasContent = true
    if (isAdded && isCall(kind)) this.outputSize.calls += 1
  }
}

/** Usage, ending, failure and model of a whole response. */
export function tapReply(body: JsonObject): TapResult {
  const { status, error } = body
  const usage = usageOf(body['usage'])
  const isIncomplete = status === 'incomplete'
  let problem: WireError | null = null
  if (isObject(error) || status === 'failed' || status === 'cancelled') problem = failureOf(body)
  else if (status === 'in_progress' || status === 'queued') problem = { ...TRUNCATED }
  else if (!Array.isArray(body['output'])) problem = { ...MALFORMED }
  return {
    usage,
    outputSize: reportsOutput(usage) ? NO_OUTPUT : saidIn(body),
    reason: problem === null ? endingOf(body, isIncomplete, callsIn(body)).reason : null,
    error: problem,
    model: nameOf(body),
    tier: stringOf(body['service_tier']) ?? null,
  }
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

/** About as many bytes as the output says. */
function saidIn(response: JsonObject): { bytes: number; calls: number } {
  const bytes = Buffer.byteLength(JSON.stringify(response['output'] ?? null))
  return { bytes, calls: callsIn(response) }
}

function nameOf(response: JsonObject): string | null {
  const model = stringOf(response['model'])
  return model === undefined || model === '' ? null : model
}

/** The frame is bytes read as Latin-1; what is shown to anyone must be read as UTF-8. */
function parse(data: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(Buffer.from(data, 'latin1').toString('utf8'))
    return isObject(value) ? value : null
  } catch {
    return null
  }
}
