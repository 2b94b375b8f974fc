/**
 * Decodes content blocks to canonical events, in order and one at a time. The first open block is emitted as
 * it arrives. A block that starts while another is open is held until the earlier ones end, so that
 * interleaved blocks and missing stops lose no content.
 */
import type { ChatEvent, Citation, EventSink } from '../chat/event.js'
import {
  arrayOf,
  isObject,
  objectOf,
  parsedJson,
  stringOf,
  type JsonObject,
  type JsonValue,
} from '../../base/json.js'
import type { ChatRequest } from '../chat/request.js'
import { stringifyExact } from '../wire/json/exact-numbers.js'
import { ClientProperties } from '../wire/property-names.js'
import { PROVIDER } from './constants.js'
import { customInput } from '../wire/custom-tools.js'

/** The reason for an `upstream_malformed` error; null if the block is valid. */
type Fault = string | null

/**
 * The canonical kind of a block: `custom` is a call of a free text tool, `redacted` encrypted reasoning,
 * `opaque` a block that only Converse has.
 */
type Kind = 'text' | 'thinking' | 'redacted' | 'tool' | 'custom' | 'renamed' | 'image' | 'opaque'

/** A block of one reply; `at` is its upstream index, `start` its first form. */
interface Block {
  readonly at: number
  readonly kind: Kind
  readonly start: JsonObject
  /** The canonical index; -1 until the block is emitted. */
  index: number
  /** Text, JSON or bytes as Latin-1 that are held until earlier blocks end, or until the end of the block. */
  pending: string
  length: number
  signature: string
  readonly citations: Citation[]
  /** The parts of the result of a tool that Bedrock ran. */
  readonly parts: JsonValue[]
  stopped: boolean
}

/** Blocks that are emitted at their end. */
const WHOLE: ReadonlySet<Kind> = new Set(['redacted', 'custom', 'renamed', 'image', 'opaque'])
/** Calls of the client's tools. */
const CALLS: ReadonlySet<Kind> = new Set(['tool', 'custom', 'renamed'])

/** The blocks of one reply. */
export class Blocks {
  /** True once one of the client's tools has been called. */
  hasToolCall = false
  private count = 0
  private readonly queue: Block[] = []
  private readonly growing = new Map<number, Block>()
  private readonly sink: EventSink
  private readonly custom: ReadonlySet<string>
  private readonly properties: ClientProperties

  constructor(sink: EventSink, request: ChatRequest) {
    this.sink = sink
    const custom = request.tools.filter((tool) => tool.custom !== undefined)
    this.custom = new Set(custom.map(({ name }) => name))
    this.properties = new ClientProperties(request)
  }

  /** A block of a whole reply. */
  whole(at: number, block: JsonObject): Fault {
    const fault = this.wholeBlock(at, block)
    this.stop(at)
    return fault
  }

  /** The start of a block; text and reasoning have none. */
  start(at: number, start: JsonObject): Fault {
    const { toolUse, toolResult, image } = start
    if (isObject(toolUse)) return this.call(at, toolUse)
    if (isObject(toolResult)) this.open(at, 'opaque', { toolResult })
    else if (isObject(image)) this.open(at, 'image', image)
    return null
  }

  /** A part of a block. A part of another kind than the open block ends that one. */
  delta(at: number, delta: JsonObject): Fault {
    const { text, toolUse, reasoningContent, citation, toolResult, image } = delta
    if (typeof text === 'string') this.append(this.blockOf(at, 'text'), text)
    else if (isObject(toolUse)) return this.input(at, stringOf(toolUse.input) ?? '')
    else if (isObject(reasoningContent)) this.reasoning(at, reasoningContent)
    else if (isObject(citation)) this.cite(this.blockOf(at, 'text'), citation)
    else if (Array.isArray(toolResult)) this.growing.get(at)?.parts.push(...toolResult)
    else if (isObject(image)) {
      this.append(this.blockOf(at, 'image'), bytesIn(objectOf(image.source).bytes))
    }
    return null
  }

  /** Ends a block; ignored if it is not open. */
  stop(at: number): void {
    const block = this.growing.get(at)
    if (block === undefined) return
    block.stopped = true
    this.growing.delete(at)
    this.advance()
  }

  /** Ends all open blocks in order, at the end of the message. */
  closeAll(): void {
    for (const at of [...this.growing.keys()]) this.stop(at)
  }

  private wholeBlock(at: number, block: JsonObject): Fault {
    const { text, toolUse, reasoningContent, citationsContent, image } = block
    if (typeof text === 'string') this.append(this.open(at, 'text'), text)
    else if (isObject(reasoningContent)) {
      const { reasoningText, redactedContent } = reasoningContent
      if (redactedContent !== undefined) this.reasoning(at, { redactedContent })
      else {
        this.open(at, 'thinking')
        this.reasoning(at, objectOf(reasoningText))
      }
    } else if (isObject(citationsContent)) {
      const open = this.open(at, 'text')
      for (const part of arrayOf(citationsContent.content)) {
        this.append(open, stringOf(objectOf(part).text) ?? '')
      }
      for (const one of arrayOf(citationsContent.citations)) this.cite(open, objectOf(one))
    } else if (isObject(image)) {
      this.append(this.open(at, 'image', image), bytesIn(objectOf(image.source).bytes))
    } else if (isObject(toolUse)) {
      const { input, ...start } = toolUse
      const json = input === undefined || input === null ? '{}' : jsonOf(input)
      if (json === null) return 'tool input is nested too deeply'
      return this.call(at, start) ?? this.input(at, json)
    } else this.open(at, 'opaque', block)
    return null
  }

  /** A call of a client's tool, or of one that Bedrock runs. */
  private call(at: number, toolUse: JsonObject): Fault {
    const name = stringOf(toolUse.name) ?? ''
    if (name === '') return 'a tool call has no name'
    const isServers = toolUse.type === 'server_tool_use'
    this.open(at, isServers ? 'opaque' : this.kindOf(name), isServers ? { toolUse } : toolUse)
    return null
  }

  private kindOf(tool: string): Kind {
    if (this.custom.has(tool)) return 'custom'
    return this.properties.has(tool) ? 'renamed' : 'tool'
  }

  private input(at: number, json: string): Fault {
    const block = this.growing.get(at)
    const isCall = block !== undefined && (CALLS.has(block.kind) || block.kind === 'opaque')
    if (!isCall) return 'tool input without a tool call'
    this.append(block, json)
    return null
  }

  private reasoning(at: number, { text, signature, redactedContent }: JsonObject): void {
    if (redactedContent !== undefined) {
      this.append(this.blockOf(at, 'redacted'), bytesIn(redactedContent))
      return
    }
    const block = this.blockOf(at, 'thinking')
    if (typeof text === 'string') this.append(block, text)
    if (typeof signature === 'string') block.signature += signature
  }

  private cite(block: Block, wire: JsonObject): void {
    block.citations.push(citationOf(wire))
  }

  /** The open block at the index; a new one if there is none of this kind. */
  private blockOf(at: number, kind: Kind): Block {
    const block = this.growing.get(at)
    return block?.kind === kind ? block : this.open(at, kind)
  }

  private open(at: number, kind: Kind, start: JsonObject = {}): Block {
    this.stop(at)
    const block: Block = {
      at,
      kind,
      start,
      index: -1,
      pending: '',
      length: 0,
      signature: '',
      citations: [],
      parts: [],
      stopped: false,
    }
    this.growing.set(at, block)
    this.queue.push(block)
    this.advance()
    return block
  }

  /** Emits a fragment, or holds it if an earlier block is open or the block must be emitted whole. */
  private append(block: Block, fragment: string): void {
    if (fragment === '') return
    block.length += fragment.length
    if (block.index < 0 || this.isWhole(block.kind)) block.pending += fragment
    else this.emit(block, fragment)
  }

  private emit({ kind, index }: Block, text: string): void {
    if (kind === 'text') this.sink.event({ type: 'text-delta', index, text })
    else if (kind === 'thinking') this.sink.event({ type: 'thinking-delta', index, text })
    else if (kind === 'tool') this.sink.event({ type: 'tool-delta', index, json: text })
  }

  /** Whether a block is emitted when it ends; text is if its names change. */
  private isWhole(kind: Kind): boolean {
    return kind === 'text' ? this.properties.hasReply : WHOLE.has(kind)
  }

  /** Closes the stopped blocks at the head of the queue and opens the next one. */
  private advance(): void {
    for (let head = this.queue[0]; head !== undefined; head = this.queue[0]) {
      if (head.index < 0) this.begin(head)
      if (!head.stopped) return
      this.close(head)
      this.queue.shift()
    }
  }

  private begin(block: Block): void {
    block.index = this.count++
    const { index, kind, pending } = block
    if (kind === 'text') this.sink.event({ type: 'text-start', index })
    else if (kind === 'thinking') this.sink.event({ type: 'thinking-start', index })
    else if (CALLS.has(kind)) {
      this.hasToolCall = true
      this.sink.event(callStart(block))
    }
    if (pending === '' || this.isWhole(kind)) return
    block.pending = ''
    this.emit(block, pending)
  }

  private close(block: Block): void {
    const { index, kind, pending, signature } = block
    switch (kind) {
      case 'text':
        if (pending !== '') {
          const text = this.properties.restoredReply(pending)
          block.length = text.length
          this.emit(block, text)
        }
        for (const citation of block.citations) {
          const whole = { start: 0, end: block.length, ...citation }
          this.sink.event({ type: 'citation', index, citation: whole })
        }
        return this.sink.event({ type: 'text-end', index })
      case 'thinking':
        return this.sink.event(
          signature === '' ? { type: 'thinking-end', index } : { type: 'thinking-end', index, signature },
        )
      case 'redacted':
        this.sink.event({ type: 'thinking-start', index, redacted: pending })
        return this.sink.event({ type: 'thinking-end', index })
      case 'tool':
        // A tool without arguments may have no delta.
        if (block.length === 0) this.sink.event({ type: 'tool-delta', index, json: '{}' })
        return this.sink.event({ type: 'tool-end', index })
      case 'custom':
      case 'renamed': {
        const tool = stringOf(block.start.name) ?? ''
        const text =
          kind === 'custom' ? customInput(pending) : this.properties.restored(tool, pending || '{}')
        if (text !== '') this.sink.event({ type: 'tool-delta', index, json: text })
        return this.sink.event({ type: 'tool-end', index })
      }
      case 'image': {
        const format = stringOf(block.start.format) ?? 'png'
        return this.sink.event({
          type: 'image',
          index,
          url: `data:image/${format};base64,${Buffer.from(pending, 'latin1').toString('base64')}`,
        })
      }
      case 'opaque':
        return this.sink.event({
          type: 'opaque',
          index,
          provider: PROVIDER,
          block: opaqueBlock(block),
        })
      default:
        kind satisfies never
    }
  }
}

/** The first event of a call. A call without an id gets one that derives from its index. */
function callStart({ start, index, kind }: Block): Extract<ChatEvent, { type: 'tool-start' }> {
  const id = stringOf(start.toolUseId) ?? ''
  const call = {
    type: 'tool-start' as const,
    index,
    id: id === '' ? `tooluse_${index}` : id,
    name: stringOf(start.name) ?? '',
  }
  return kind === 'custom' ? { ...call, custom: true } : call
}

/** What Bedrock's own tools did, as the next request must repeat it. */
function opaqueBlock({ start, pending, parts }: Block): JsonObject {
  const { toolUse, toolResult } = start
  if (isObject(toolUse)) {
    return { toolUse: { ...toolUse, input: parsedJson(pending === '' ? '{}' : pending) ?? {} } }
  }
  if (!isObject(toolResult) || parts.length === 0) return start
  return { toolResult: { ...toolResult, content: [...arrayOf(toolResult.content), ...parts] } }
}

/**
 * Bytes as Latin-1, so that those of several deltas can be joined. The bytes of Claude's encrypted reasoning
 * are the text that Anthropic's own API has.
 */
function bytesIn(base64: JsonValue | undefined): string {
  return Buffer.from(stringOf(base64) ?? '', 'base64').toString('latin1')
}

/** The canonical citation, without offsets: the cited passage is a block of its own. */
function citationOf(wire: JsonObject): Citation {
  const web = objectOf(objectOf(wire.location).web)
  const citation: Citation = {}
  const source = stringOf(wire.source) ?? ''
  const url = stringOf(web.url) ?? (/^https?:\/\//.test(source) ? source : undefined)
  const title = stringOf(wire.title)
  const quoted = arrayOf(wire.sourceContent).map((part) => stringOf(objectOf(part).text) ?? '')
  if (url !== undefined) citation.url = url
  if (title !== undefined) citation.title = title
  if (quoted.some((text) => text !== '')) citation.citedText = quoted.join('')
  return citation
}

/** The JSON text; null if it is nested too deeply to serialize. */
function jsonOf(value: JsonValue): string | null {
  try {
    return stringifyExact(value)
  } catch {
    return null
  }
}
