/**
 * Decodes content blocks to canonical events, in order and one at a time.
 *
 * The first open block is emitted as it arrives. A block that starts while another is open is held until the
 * earlier ones end, so that interleaved blocks and missing stops lose no content.
 */
import type { EventSink, Citation, ChatEvent } from '../../chat/event.js'
import { arrayOf, isObject, stringOf, type JsonObject, parsedJson } from '../../../base/json.js'
import { stringifyExact } from '../../wire/json/exact-numbers.js'
import type { ClientProperties } from '../../wire/property-names.js'
import { isProgram, PROVIDER } from '../constants.js'
import { customInput } from '../../wire/custom-tools.js'

/** The reason for an `upstream_malformed` error; null if the block is valid. */
type Fault = string | null

/** The blocks of one reply. */
export class Blocks {
  /** The number of canonical blocks that have started. */
  count = 0
  /** True once one of the client's tools has been called. */
  hasToolCall = false
  /** True once the synthetic tool for JSON replies has been called. */
  hasJsonCall = false
  private readonly queue: Block[] = []
  private readonly growing = new OpenBlocks()
  private readonly sink: EventSink
  private readonly names: ToolNames
  /** The block that is being emitted and its upstream index, for the hot path. */
  private current: Block | null = null
  private currentAt = -1

  constructor(sink: EventSink, names: ToolNames) {
    this.sink = sink
    this.names = names
  }

  /** True if a block has started, so that a second `message_start` would repeat content. */
  get hasStarted(): boolean {
    return this.count > 0 || this.queue.length > 0
  }

  /**
   * Hot path: adds text to the text block that is being emitted. Returns false if that is not the block's
   * state.
   */
  text(at: unknown, text: unknown): boolean {
    const block = this.current
    if (block === null || at !== this.currentAt || block.kind !== 'text') return false
    if (typeof text !== 'string') return false
    if (text === '') return true
    block.length += text.length
    this.sink.event({ type: 'text-delta', index: block.index, text })
    return true
  }

  /** Starts a block. `start` may already have content, as every block of a whole reply does. */
  start(at: number, start: JsonObject): Fault {
    const kind = this.kindOf(start)
    if ((kind === 'tool' || kind === 'renamed') && (stringOf(start.name) ?? '') === '')
      return 'a tool call has no name'
    const input = CALLS.has(kind) ? toolCallInput(start) : '{}'
    if (input === null) return 'tool input is nested too deeply'
    this.stop(at)
    const block = newBlock({ at, kind, start, input })
    this.growing.add(block)
    this.queue.push(block)
    this.advance()
    if (kind === 'text') this.append(block, stringOf(start.text) ?? '')
    if (kind === 'thinking') this.append(block, stringOf(start.thinking) ?? '')
    block.signature = stringOf(start.signature) ?? ''
    for (const one of arrayOf(start.citations)) if (isObject(one)) block.citations.push(one)
    return null
  }

  /**
   * Adds to a block. Text and thinking for a block that is not open start a new one. Tool input without an
   * open call is a fault.
   */
  delta(at: number, delta: JsonObject): Fault {
    const known = this.growing.get(at)
    switch (delta.type) {
      case 'text_delta':
        if (known === undefined) return this.startWith(at, 'text', stringOf(delta.text) ?? '')
        return this.addText(known, 'text', stringOf(delta.text) ?? '')
      case 'thinking_delta':
        if (known === undefined) return this.startWith(at, 'thinking', stringOf(delta.thinking) ?? '')
        return this.addText(known, 'thinking', stringOf(delta.thinking) ?? '')
      case 'input_json_delta':
        if (known === undefined) return 'tool input without a tool call'
        if (known.kind !== 'ignored') this.append(known, stringOf(delta.partial_json) ?? '')
        return null
      case 'signature_delta':
        if (known !== undefined) known.signature += stringOf(delta.signature) ?? ''
        return null
      case 'citations_delta':
        if (isObject(delta.citation)) known?.citations.push(delta.citation)
        return null
      case 'compaction_delta':
        if (known?.kind === 'opaque') Object.assign(known.start, { content: delta.content ?? null })
        return null
      default:
        return null
    }
  }

  /** Stops a block; ignored if it is not open. */
  stop(at: number): void {
    const block = this.growing.get(at)
    if (block === undefined) return
    block.stopped = true
    this.growing.remove(block)
    this.advance()
  }

  /** Stops all open blocks in order, at the end of the message. */
  closeAll(): void {
    for (const { at } of this.growing.all()) this.stop(at)
  }

  private kindOf(start: JsonObject): Kind {
    const type = stringOf(start.type) ?? ''
    if (type === 'text') return 'text'
    if (type === 'thinking' || type === 'redacted_thinking') return 'thinking'
    if (type === 'tool_use') return toolCallKind(start, this.names)
    if (OPAQUE.has(type) || type.endsWith('_tool_result')) return 'opaque'
    return 'ignored'
  }

  /** Starts a block that the upstream did not start. */
  private startWith(at: number, kind: Kind, text: string): Fault {
    if (text === '') return null
    const fault = this.start(at, { type: kind })
    if (fault !== null) return fault
    const block = this.growing.get(at)
    if (block !== undefined) this.append(block, text)
    return null
  }

  private addText(block: Block, kind: Kind, text: string): Fault {
    if (block.kind === kind) this.append(block, text)
    else if (block.kind !== 'ignored') return `${kind} inside a block of another kind`
    return null
  }

  /** Emits a fragment, or holds it if an earlier block is open or the block must be emitted whole. */
  private append(block: Block, fragment: string): void {
    if (fragment === '') return
    block.length += fragment.length
    if (block.index < 0 || this.isWhole(block)) {
      block.pending += fragment
    } else this.emit(block, fragment)
  }

  private emit(block: Block, fragment: string): void {
    const { index } = block
    if (block.kind === 'text' || block.kind === 'json') {
      this.sink.event({ type: 'text-delta', index, text: fragment })
    } else if (block.kind === 'thinking') {
      this.sink.event({ type: 'thinking-delta', index, text: fragment })
    } else if (block.kind === 'tool') {
      this.sink.event({ type: 'tool-delta', index, json: fragment })
    }
  }

  /** Closes the stopped blocks at the head of the queue and opens the next one. */
  private advance(): void {
    for (let head = this.queue[0]; head !== undefined; head = this.queue[0]) {
      if (head.index < 0) this.open(head)
      if (!head.stopped) return
      this.close(head)
      this.queue.shift()
      this.current = null
    }
  }

  private open(block: Block): void {
    if (block.kind === 'ignored' || block.kind === 'opaque') {
      block.index = 0
      return
    }
    const index = this.count++
    block.index = index
    this.current = this.isWhole(block) ? null : block
    this.currentAt = block.at
    if (block.kind === 'text' || block.kind === 'json') {
      if (block.kind === 'json') this.hasJsonCall = true
      this.sink.event({ type: 'text-start', index })
    } else if (block.kind === 'thinking') {
      const redacted = block.start.type === 'redacted_thinking' ? stringOf(block.start.data) : undefined
      this.sink.event(
        redacted === undefined
          ? { type: 'thinking-start', index }
          : { type: 'thinking-start', index, redacted },
      )
    } else {
      this.hasToolCall = true
      this.sink.event(toolCallStart(block.start, index, block.kind === 'custom'))
    }
    if (block.pending === '' || this.isWhole(block)) return
    const pending = block.pending
    block.pending = ''
    this.emit(block, pending)
  }

  private close(block: Block): void {
    const { index, signature } = block
    switch (block.kind) {
      case 'ignored':
        // An unknown type, emitted whole so that its loss is reported.
        this.sink.event({
          type: 'opaque',
          index: this.count++,
          provider: PROVIDER,
          block: block.start,
        })
        return
      case 'opaque':
        this.closeOpaque(block)
        return
      case 'thinking':
        this.sink.event(
          signature === '' ? { type: 'thinking-end', index } : { type: 'thinking-end', index, signature },
        )
        return
      case 'custom':
      case 'renamed':
        this.closeWhole(block)
        return
      case 'tool':
        if (block.length === 0) this.sink.event({ type: 'tool-delta', index, json: block.input })
        this.sink.event({ type: 'tool-end', index })
        return
      case 'json':
        this.emitRestored(block)
        if (block.length === 0) this.emit(block, this.names.properties.restoredReply(block.input))
        this.sink.event({ type: 'text-end', index })
        return
      case 'text':
        this.emitRestored(block)
        for (const one of block.citations) {
          this.sink.event({ type: 'citation', index, citation: citationOf(one, block.length) })
        }
        this.sink.event({ type: 'text-end', index })
    }
  }

  /** Whether a block is emitted when it ends. */
  private isWhole({ kind }: Block): boolean {
    if (kind === 'text' || kind === 'json') return this.names.properties.hasReply
    return WHOLE.has(kind)
  }

  /** Emits the text of a block that was held to change its names; nothing for another block. */
  private emitRestored(block: Block): void {
    if (block.pending === '') return
    const text = this.names.properties.restoredReply(block.pending)
    block.length = text.length
    this.emit(block, text)
  }

  /** The input of server tools arrives in deltas; their results are complete in the start. */
  private closeOpaque(block: Block): void {
    const input = block.pending === '' ? undefined : parsedJson(block.pending)
    const whole = input === undefined ? block.start : { ...block.start, input }
    this.sink.event({ type: 'opaque', index: this.count++, provider: PROVIDER, block: whole })
  }

  /** Closes a call whose input is changed. */
  private closeWhole(block: Block): void {
    const { index, kind, start } = block
    const json = block.pending === '' ? block.input : block.pending
    const text =
      kind === 'custom' ? customInput(json) : this.names.properties.restored(stringOf(start.name) ?? '', json)
    if (text !== '') this.sink.event({ type: 'tool-delta', index, json: text })
    this.sink.event({ type: 'tool-end', index })
  }
}

/** Blocks that only Anthropic supports, besides types that end in `_tool_result`. */
const OPAQUE: ReadonlySet<string> = new Set([
  'server_tool_use',
  'mcp_tool_use',
  'container_upload',
  'compaction',
])

/**
 * The canonical kind of a block. `json` is a call of the synthetic tool whose arguments are the reply's text,
 * `renamed` one of a tool whose properties have other names for the client.
 */
type Kind = 'text' | 'thinking' | 'tool' | 'custom' | 'renamed' | 'json' | 'opaque' | 'ignored'

/** Blocks with tool input. */
const CALLS: ReadonlySet<Kind> = new Set(['tool', 'custom', 'renamed', 'json'])
/** Blocks that are emitted when they end. */
const WHOLE: ReadonlySet<Kind> = new Set(['opaque', 'custom', 'renamed'])

/** A block of one reply. `at` is its upstream index, `start` the content block of its start event. */
interface Block {
  readonly at: number
  readonly kind: Kind
  readonly start: JsonObject
  /** The input in the start of a tool call, as JSON text; `{}` if there is none. */
  readonly input: string
  /** The canonical index; -1 until the block is emitted. */
  index: number
  /**
   * Text or JSON that is held until earlier blocks end, or until the end of a block that is emitted whole.
   */
  pending: string
  length: number
  signature: string
  readonly citations: JsonObject[]
  stopped: boolean
}

/** A block that has just started. */
function newBlock({ at, kind, start, input }: Pick<Block, 'at' | 'kind' | 'start' | 'input'>): Block {
  return {
    at,
    kind,
    start,
    input,
    index: -1,
    pending: '',
    length: 0,
    signature: '',
    citations: [],
    stopped: false,
  }
}

/** Blocks that have not stopped, by upstream index. Avoids a Map (0.2 µs) for the usual case of one block. */
class OpenBlocks {
  private one: Block | null = null
  private others: Map<number, Block> | null = null

  get(at: number): Block | undefined {
    return this.one?.at === at ? this.one : this.others?.get(at)
  }

  add(block: Block): void {
    if (this.one === null) this.one = block
    else (this.others ??= new Map<number, Block>()).set(block.at, block)
  }

  remove(block: Block): void {
    if (this.one === block) this.one = null
    else this.others?.delete(block.at)
  }

  all(): readonly Block[] {
    const { one, others } = this
    if (others === null) return one === null ? NONE : [one]
    return one === null ? [...others.values()] : [one, ...others.values()]
  }
}

const NONE: readonly Block[] = []

/**
 * The canonical citation of a whole block, `length` UTF-16 units long: each cited passage is a block of its
 * own.
 *
 * Source: Claude API reference, "Citations", read 2026-11-20.
 */
function citationOf(wire: JsonObject, length: number): Citation {
  const citation: Citation = { start: 0, end: length }
  // The source of a client's own search result may be any string.
  const source = stringOf(wire.source) ?? ''
  const url = stringOf(wire.url) ?? (/^https?:\/\//.test(source) ? source : undefined)
  const title = stringOf(wire.title) ?? stringOf(wire.document_title)
  const citedText = stringOf(wire.cited_text)
  if (url !== undefined) citation.url = url
  if (title !== undefined) citation.title = title
  if (citedText !== undefined) citation.citedText = citedText
  return citation
}

/** Tools of the request whose calls are decoded specially. */
interface ToolNames {
  /** Names of function tools that replace custom (free text) tools. */
  readonly custom: ReadonlySet<string>
  /** The name of the synthetic tool whose arguments are the reply's text; null if there is none. */
  readonly json: string | null
  /** The client's names of properties. */
  readonly properties: ClientProperties
}

/**
 * `custom` for a free text tool, `json` for the synthetic tool of JSON replies, `renamed` for a tool with
 * properties of other names, else `tool`.
 */
function toolCallKind(start: JsonObject, names: ToolNames): Kind {
  const name = stringOf(start.name) ?? ''
  if (name === names.json) return 'json'
  if (names.custom.has(name)) return 'custom'
  return names.properties.has(name) ? 'renamed' : 'tool'
}

/** The first event of a call. A call without an id gets one that derives from its index. */
function toolCallStart(
  start: JsonObject,
  index: number,
  isCustom: boolean,
): Extract<ChatEvent, { type: 'tool-start' }> {
  const id = stringOf(start.id) ?? ''
  const call = {
    type: 'tool-start' as const,
    index,
    id: id === '' ? `toolu_${index}` : id,
    name: stringOf(start.name) ?? '',
    ...(isProgram(start.caller) && { byProgram: true as const }),
  }
  return isCustom ? { ...call, custom: true } : call
}

/** The input of a call that sends no fragments; null if it is nested too deeply to serialize. */
function toolCallInput(start: JsonObject): string | null {
  if (!isObject(start.input)) return '{}'
  try {
    return stringifyExact(start.input)
  } catch {
    return null
  }
}
