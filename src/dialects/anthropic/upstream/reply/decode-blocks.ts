/**
 * Content blocks to canonical events, in order and one at a time, however they arrive.
 * Knows nothing of frames or messages; `answer.ts` says when a block starts, grows and stops.
 *
 * The first open block is sent as it grows. A block that starts while another is open is held and
 * sent when its turn comes, so interleaved indexes and a forgotten stop both lose nothing.
 */
import type { EventSink } from '../../../../chat/event.js'
import { arrayOf, isObject, objectOf, stringOf, type JsonObject } from '../../../../chat/json.js'
import { stringifyExact } from '../../../../wire/json/exact-numbers.js'
import { CUSTOM_INPUT, parseJson, PROVIDER } from '../../shared/names.js'
import { citationOf } from './decode-citations.js'
import { newBlock, OpenBlocks, type Block, type Kind } from './open-blocks.js'

/** What the request says about the tools that the model was shown. */
export interface ToolNames {
  /** Tools that stand for custom (free text) tools. */
  readonly custom: ReadonlySet<string>
  /** The tool whose arguments are the answer itself; null where there is none. */
  readonly json: string | null
}

/** Why a block cannot be understood; the answer then ends in `upstream_malformed`. */
export type Fault = string | null

/** The blocks of one answer. */
export class Blocks {
  /** How many canonical blocks have started. */
  count = 0
  /** True once one of the client's tools has been called. */
  sawTool = false
  /** True once the synthetic tool whose arguments are the answer has been called. */
  sawJson = false
  private readonly queue: Block[] = []
  private readonly growing = new OpenBlocks()
  private readonly sink: EventSink
  private readonly names: ToolNames
  /** The block that is being sent, and its upstream index: what the hot path looks at. */
  private current: Block | null = null
  private currentAt = -1

  constructor(sink: EventSink, names: ToolNames) {
    this.sink = sink
    this.names = names
  }

  /** True while anything has started that a second `message_start` would repeat. */
  get begun(): boolean {
    return this.count > 0 || this.queue.length > 0
  }

  /** Hot path: more text for the text block that is being sent. False where this is not that. */
  text(at: unknown, text: unknown): boolean {
    const block = this.current
    if (block === null || at !== this.currentAt || block.kind !== 'text') return false
    if (typeof text !== 'string') return false
    if (text === '') return true
    block.length += text.length
    this.sink.event({ type: 'text-delta', index: block.index, text })
    return true
  }

  /** A block starts; `start` may already hold content, as every block of a whole reply does. */
  start(at: number, start: JsonObject): Fault {
    const kind = this.kindOf(start)
    if (kind === 'tool' && (stringOf(start.name) ?? '') === '') return 'a tool call has no name'
    const input = kind === 'tool' || kind === 'custom' || kind === 'json' ? inputText(start) : '{}'
    if (input === null) return 'tool input is nested too deeply'
    this.stop(at)
    const block = newBlock(at, kind, start, input)
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
   * A block grows. Text and thinking for a block that never started, or has stopped, begin a new one:
   * nothing is lost by it. A fragment of tool input without its tool cannot be understood.
   */
  delta(at: number, delta: JsonObject): Fault {
    const known = this.growing.get(at)
    switch (delta.type) {
      case 'text_delta':
        return this.grow(at, known, 'text', stringOf(delta.text) ?? '')
      case 'thinking_delta':
        return this.grow(at, known, 'thinking', stringOf(delta.thinking) ?? '')
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

  /** A block stops. A stop for a block that is not open is ignored. */
  stop(at: number): void {
    const block = this.growing.get(at)
    if (block === undefined) return
    block.stopped = true
    this.growing.remove(block)
    this.advance()
  }

  /** The message is over: whatever is still open is closed in order. */
  closeAll(): void {
    for (const { at } of this.growing.all()) this.stop(at)
  }

  private kindOf(start: JsonObject): Kind {
    const type = stringOf(start.type) ?? ''
    if (type === 'text') return 'text'
    if (type === 'thinking' || type === 'redacted_thinking') return 'thinking'
    if (type === 'tool_use') {
      const name = stringOf(start.name) ?? ''
      if (name === this.names.json) return 'json'
      return this.names.custom.has(name) ? 'custom' : 'tool'
    }
    if (OPAQUE.has(type) || type.endsWith('_tool_result')) return 'opaque'
    return 'ignored'
  }

  private grow(at: number, known: Block | undefined, kind: Kind, text: string): Fault {
    if (known === undefined) {
      if (text === '') return null
      const fault = this.start(at, { type: kind })
      if (fault !== null) return fault
      const block = this.growing.get(at)
      if (block !== undefined) this.append(block, text)
      return null
    }
    if (known.kind === kind) this.append(known, text)
    else if (known.kind !== 'ignored') return `${kind} inside a block of another kind`
    return null
  }

  /** Sends a piece at once where it is its block's turn and the block can be sent piece by piece. */
  private append(block: Block, piece: string): void {
    if (piece === '') return
    block.length += piece.length
    if (block.index < 0 || block.kind === 'opaque' || block.kind === 'custom') block.held += piece
    else this.piece(block, piece)
  }

  private piece(block: Block, piece: string): void {
    const { index } = block
    if (block.kind === 'text' || block.kind === 'json') {
      this.sink.event({ type: 'text-delta', index, text: piece })
    } else if (block.kind === 'thinking') {
      this.sink.event({ type: 'thinking-delta', index, text: piece })
    } else if (block.kind === 'tool') {
      this.sink.event({ type: 'tool-delta', index, json: piece })
    }
  }

  /** Ends blocks at the head of the queue that have stopped and opens the one after them. */
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
    this.current = block
    this.currentAt = block.at
    if (block.kind === 'text' || block.kind === 'json') {
      if (block.kind === 'json') this.sawJson = true
      this.sink.event({ type: 'text-start', index })
    } else if (block.kind === 'thinking') {
      const redacted =
        block.start.type === 'redacted_thinking' ? stringOf(block.start.data) : undefined
      this.sink.event(
        redacted === undefined
          ? { type: 'thinking-start', index }
          : { type: 'thinking-start', index, redacted },
      )
    } else {
      this.openTool(block, index)
    }
    if (block.held === '' || block.kind === 'custom') return
    const held = block.held
    block.held = ''
    this.piece(block, held)
  }

  private openTool(block: Block, index: number): void {
    this.sawTool = true
    const id = stringOf(block.start.id) ?? ''
    const call = {
      type: 'tool-start' as const,
      index,
      id: id === '' ? `toolu_${index}` : id,
      name: stringOf(block.start.name) ?? '',
    }
    this.sink.event(block.kind === 'custom' ? { ...call, custom: true } : call)
  }

  private close(block: Block): void {
    const { index, signature } = block
    switch (block.kind) {
      case 'ignored':
        // Nobody here knows it; it is handed on whole so that its loss is reported.
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
          signature === ''
            ? { type: 'thinking-end', index }
            : { type: 'thinking-end', index, signature },
        )
        return
      case 'custom':
        this.closeCustom(block)
        return
      case 'tool':
        if (block.length === 0) this.sink.event({ type: 'tool-delta', index, json: block.input })
        this.sink.event({ type: 'tool-end', index })
        return
      case 'json':
        if (block.length === 0) this.sink.event({ type: 'text-delta', index, text: block.input })
        this.sink.event({ type: 'text-end', index })
        return
      case 'text':
        for (const one of block.citations) {
          this.sink.event({ type: 'citation', index, citation: citationOf(one, block.length) })
        }
        this.sink.event({ type: 'text-end', index })
    }
  }

  /** Server tools stream their input like tools do; their results come whole in the start. */
  private closeOpaque(block: Block): void {
    const input = block.held === '' ? undefined : parseJson(block.held)
    const whole = input === undefined ? block.start : { ...block.start, input }
    this.sink.event({ type: 'opaque', index: this.count++, provider: PROVIDER, block: whole })
  }

  /** A custom tool's input is the one string property; anything else is handed on as it came. */
  private closeCustom(block: Block): void {
    const { index } = block
    const json = block.held === '' ? block.input : block.held
    const input = stringOf(objectOf(parseJson(json))[CUSTOM_INPUT])
    const text = input ?? (json === '{}' ? '' : json)
    if (text !== '') this.sink.event({ type: 'tool-delta', index, json: text })
    this.sink.event({ type: 'tool-end', index })
  }
}

/** Blocks that only Anthropic understands, besides everything that ends in `_tool_result`. */
const OPAQUE: ReadonlySet<string> = new Set([
  'server_tool_use',
  'mcp_tool_use',
  'container_upload',
  'compaction',
])

/** What a call that sends no fragments has for input; null where writing it overflows the stack. */
function inputText(start: JsonObject): string | null {
  if (!isObject(start.input)) return '{}'
  try {
    return stringifyExact(start.input)
  } catch {
    return null
  }
}
