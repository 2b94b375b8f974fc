/**
 * The canonical events of one reply: collected while it is read, kept in the cache, and replayed for clients
 * of any format.
 */
import { fragmentOf, type ChatEvent, type EventSink } from '../formats/chat/event.js'
import { Fold, type Reply } from '../formats/chat/fold.js'
import { Grammar } from '../formats/chat/grammar.js'
import { OutputMeter } from '../formats/chat/output-size.js'
import type { ChatRequest, Vectors } from '../formats/chat/request.js'
import type { TaskResult } from '../formats/chat/task.js'
import { mergeUsage, type Usage } from '../formats/chat/usage.js'
import type { FinishReason } from '../formats/chat/event.js'
import type { ClientCodec, Seed, StreamDecoder, StreamEncoder, UpstreamCodec } from '../formats/dialect.js'
import { LossList } from '../formats/losses.js'
import type { ReadWhole, ReplyObserver } from '../formats/observed-format.js'
import { noteSent, type Translation } from '../formats/translated-stream.js'
import { newFramer } from '../formats/wire/aws/event-stream.js'
import type { SseFramer } from '../formats/wire/frames/sse-framer.js'
import type { WireError } from '../errors.js'

/** The approximate size of an event beside its text. */
const EVENT_BYTES = 40
/** The reply is too large for the cache, and no other request shares it. */
const NOT_KEPT: WireError = { kind: 'upstream_malformed', message: 'The reply is too large.' }
/** Characters that a replay encodes in one step. */
const STEP_CHARS = 256 * 1024

/** The limits of a log. */
interface LogOptions {
  /** A larger reply is dropped unless it is shared. */
  readonly maxBytes: number
  /** Whether other requests wait for the same reply. */
  readonly isShared: () => boolean
}

/** Collects the events of one reply. Readers may follow while it is written. */
export class ReplyLog implements EventSink {
  readonly events: ChatEvent[] = []
  /** The reply to a request for vectors; null for a chat. */
  vectors: Vectors | null = null
  /** The reply to a task; null for other replies. */
  task: TaskResult | null = null
  outcome: 'open' | 'complete' | 'failed' = 'open'
  /** Why it failed. */
  error: WireError | null = null
  /** The size of the texts. */
  bytes = 0
  private readonly options: LogOptions
  private readonly readers = new Set<() => void>()

  constructor(options: LogOptions) {
    this.options = options
  }

  event(event: ChatEvent): void {
    if (this.outcome !== 'open') return
    if (event.type === 'error') return this.fail(event.error)
    const { maxBytes, isShared } = this.options
    this.events.push(event)
    this.bytes += sizeOf(event)
    if (event.type === 'finish') this.outcome = 'complete'
    if (this.bytes > maxBytes && !isShared()) {
      this.events.length = 0
      this.fail(NOT_KEPT)
    }
    this.wake()
  }

  /** The whole reply to a task, whose size in bytes is about that of its body. */
  takeTask(result: TaskResult, bytes: number): void {
    if (this.outcome !== 'open') return
    this.task = result
    this.bytes += bytes
    this.outcome = 'complete'
    this.wake()
  }

  /** The whole reply to a request for vectors. */
  takeVectors(vectors: Vectors): void {
    if (this.outcome !== 'open') return
    this.vectors = vectors
    for (const { text } of vectors.vectors) this.bytes += text.length
    this.outcome = 'complete'
    this.wake()
  }

  /** The reply ended without its terminator. */
  fail(error: WireError): void {
    if (this.outcome !== 'open') return
    this.outcome = 'failed'
    this.error = error
    this.wake()
  }

  /** Calls `wake` after each event and at the end. Returns a function that ends that. */
  follow(wake: () => void): () => void {
    this.readers.add(wake)
    return () => void this.readers.delete(wake)
  }

  private wake(): void {
    if (this.readers.size === 0) return
    for (const wake of [...this.readers]) wake()
  }
}

function sizeOf(event: ChatEvent): number {
  switch (event.type) {
    case 'image':
      return event.url.length
    case 'opaque':
      return JSON.stringify(event.block).length
    case 'thinking-start':
      return event.redacted?.length ?? 0
    case 'text-end':
    case 'thinking-end':
    case 'tool-end':
      return event.signature?.length ?? 0
    case 'citation':
      return EVENT_BYTES + (event.citation.citedText?.length ?? 0)
    case 'logprobs':
      return event.tokens.length * EVENT_BYTES
    default:
      return fragmentOf(event)?.length ?? 0
  }
}

/** The events of a reply that was read whole. */
function eventsOf(reply: Reply): ChatEvent[] {
  const { id, model, blocks, usage, reason, raw, stopSequence, serviceTier } = reply
  const events: ChatEvent[] = [{ type: 'start', id, model }]
  for (const [index, block] of blocks.entries()) addBlock(events, index, block)
  const finish: Extract<ChatEvent, { type: 'finish' }> = { type: 'finish', reason, raw }
  if (stopSequence !== undefined) finish.stopSequence = stopSequence
  if (serviceTier !== undefined) finish.serviceTier = serviceTier
  events.push({ type: 'usage', usage }, finish)
  return events
}

function addBlock(events: ChatEvent[], index: number, block: Reply['blocks'][number]): void {
  const signed = 'signature' in block ? { signature: block.signature } : {}
  switch (block.type) {
    case 'text':
      events.push({ type: 'text-start', index })
      if (block.text !== '') events.push({ type: 'text-delta', index, text: block.text })
      if (block.logprobs !== undefined) {
        events.push({ type: 'logprobs', index, tokens: block.logprobs })
      }
      for (const citation of block.citations) events.push({ type: 'citation', index, citation })
      events.push({ type: 'text-end', index, ...signed })
      return
    case 'refusal':
      events.push({ type: 'refusal-start', index })
      events.push({ type: 'refusal-delta', index, text: block.text })
      events.push({ type: 'refusal-end', index })
      return
    case 'thinking': {
      const { redacted } = block
      events.push({
        type: 'thinking-start',
        index,
        ...(redacted === undefined ? {} : { redacted }),
      })
      if (block.text !== '') events.push({ type: 'thinking-delta', index, text: block.text })
      events.push({ type: 'thinking-end', index, ...signed })
      return
    }
    case 'tool': {
      const { id, name, json, custom } = block
      const kind = custom === true ? { custom } : {}
      events.push({ type: 'tool-start', index, id, name, ...kind, ...signed })
      if (json !== '') events.push({ type: 'tool-delta', index, json })
      events.push({ type: 'tool-end', index, ...signed })
      return
    }
    case 'image':
      events.push({ type: 'image', index, url: block.url })
      return
    case 'opaque':
      events.push({ type: 'opaque', index, provider: block.provider, block: block.block })
      return
    default:
      block satisfies never
  }
}

/** The same events, with adjacent deltas of a block as one. */
export function joinedEvents(events: readonly ChatEvent[]): ChatEvent[] {
  const joined: ChatEvent[] = []
  let fragments: string[] = []
  let last: ChatEvent | null = null
  const flush = (): void => {
    if (last === null) return
    const whole = fragments.join('')
    if (last.type === 'tool-delta') joined.push({ ...last, json: whole })
    else if ('text' in last) joined.push({ ...last, text: whole })
    last = null
    fragments = []
  }
  for (const event of events) {
    const text = fragmentOf(event)
    if (text === null) {
      flush()
      joined.push(event)
    } else {
      if (last !== null && last.type !== event.type) flush()
      last = event
      fragments.push(text)
    }
  }
  flush()
  return joined
}

/** The whole reply of complete events; null for others. */
export function replyOf(events: readonly ChatEvent[]): Reply | null {
  const fold = new Fold()
  for (const event of events) fold.event(event)
  return fold.reply()
}

export interface ReplayClient {
  readonly clientCodec: ClientCodec
  readonly request: ChatRequest
  readonly seed: Seed
  /** Gets the name of each tool that the reply calls. */
  readonly onTool?: ((name: string) => void) | undefined
}

/**
 * Encodes the events of a log for a client that requested a stream. Its input are ticks: each encodes what
 * has been added since.
 */
export class ReplayedStream implements Translation {
  outcome: Translation['outcome'] = 'open'
  error: WireError | null = null
  usage: Usage = {}
  reason: FinishReason | null = null
  model: string | null = null
  tier: string | null = null
  content = false
  readonly breach = null
  readonly resume = null
  readonly repeatCause = null
  readonly outputSize: OutputMeter
  private readonly log: ReplyLog
  private readonly clientCodec: ClientCodec
  private readonly encoder: StreamEncoder
  private readonly losses = new LossList()
  private next = 0
  private isStepOver = false

  constructor(log: ReplyLog, { clientCodec, request, seed, onTool }: ReplayClient) {
    this.log = log
    this.outputSize = new OutputMeter(onTool)
    this.clientCodec = clientCodec
    this.encoder = clientCodec.newEncoder(request, seed)
  }

  get lost(): readonly string[] {
    return this.losses.paths
  }

  get isPending(): boolean {
    return this.isStepOver
  }

  proceed(): void {
    // A replay has no pauses.
  }

  write(): string {
    return this.more()
  }

  more(): string {
    this.isStepOver = false
    const { log } = this
    let chars = 0
    while (chars <= STEP_CHARS) {
      const event = log.events[this.next]
      if (event === undefined) break
      this.next += 1
      chars += EVENT_BYTES + sizeOf(event)
      this.take(event)
    }
    this.isStepOver = this.next < log.events.length
    if (log.error !== null && this.next === log.events.length) this.fail(log.error)
    return this.encoder.take()
  }

  end(): string {
    return ''
  }

  fail(error: WireError): void {
    if (this.outcome !== 'open') return
    this.outcome = 'failed'
    this.error = error
  }

  errorFrame(error: WireError): string | null {
    return this.encoder.failed?.(error) ?? null
  }

  private take(event: ChatEvent): void {
    this.outputSize.add(event)
    if (event.type === 'usage') this.usage = mergeUsage(this.usage, event.usage)
    noteSent(this, event, this.clientCodec, this.losses)
    this.encoder.event(event)
  }
}

/** Opens a log for each reply that is read for a request: a retry or a hedge has another one. */
export class ReplyCapture implements ReplyObserver {
  /** The log that was opened last; null if none was. */
  log: ReplyLog | null = null
  readonly options: LogOptions

  constructor(options: LogOptions) {
    this.options = options
  }

  events(): ReplyLog {
    this.log = new ReplyLog(this.options)
    return this.log
  }

  whole(read: ReadWhole): void {
    const log = this.events()
    if (read.kind === 'vectors') log.takeVectors(read.vectors)
    else if (read.kind === 'task') log.takeTask(read.result, read.bytes)
    else for (const event of eventsOf(read.reply)) log.event(event)
  }
}

/** Decodes a stream whose bytes are passed to the client. */
export class CapturedStream {
  private readonly log: EventSink & Partial<Pick<ReplyLog, 'outcome'>>
  private readonly decoder: StreamDecoder
  private readonly framer: SseFramer

  /** An `outcome` of the log other than `open`: it needs no more events. */
  constructor(log: CapturedStream['log'], upstreamCodec: UpstreamCodec, request: ChatRequest) {
    this.log = log
    this.decoder = upstreamCodec.newDecoder(request, new Grammar(log))
    this.framer = newFramer(upstreamCodec.framing, this.decoder)
  }

  write(chunk: Buffer): void {
    if ((this.log.outcome ?? 'open') !== 'open') return
    this.framer.write(chunk)
    while (this.framer.isPending) this.framer.more()
  }

  /** The stream has ended. */
  end(): void {
    if ((this.log.outcome ?? 'open') !== 'open') return
    this.framer.end()
    this.decoder.end()
  }
}
