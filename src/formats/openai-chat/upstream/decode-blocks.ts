/**
 * Orders text, reasoning, refusals, images and fragments of calls, which arrive in any order, into blocks
 * that never overlap.
 *
 * Blocks queue in the order in which they begin. Only the first block is open: its fragments are emitted at
 * once, those of the others are kept until it is complete. A text is complete when another block begins, a
 * call when its arguments are a whole JSON value or the reply ends.
 */
import type { Citation, EventSink } from '../../chat/event.js'
import {
  isObject,
  numberOf,
  objectOf,
  stringOf,
  type JsonObject,
  type JsonValue,
} from '../../../base/json.js'
import { JsonCompletion } from '../../chat/json-completion.js'
import { hasNoArguments } from '../../wire/json/no-arguments.js'
import { CallIds } from '../../wire/openai/tools.js'
import { thoughtSignature } from '../reasoning-state.js'

type TextKind = 'text' | 'refusal' | 'thinking'

interface TextBlock {
  kind: TextKind
  fragments: string[]
  /** Citations that are not emitted yet; they follow all text so far. */
  citations: Citation[]
  /** UTF-16 units of text in the reply before this block. */
  offset: number
}

interface CallBlock {
  kind: 'tool'
  id: string
  name: string
  custom: boolean
  fragments: string[]
  /** All arguments so far. */
  json: string
  /** Detects that the arguments are complete. */
  completion: JsonCompletion
  signature?: string
}

interface ImageBlock {
  kind: 'image'
  url: string
}

type Block = TextBlock | CallBlock | ImageBlock

/** Limit for the blocks of one reply; a reply with more is malformed. */
const MAX_BLOCKS = 4_096

/** Emits blocks in order; `finish` closes what is open. */
export class Blocks {
  /** Calls so far, those in the queue included. */
  calls = 0
  private readonly sink: EventSink
  private readonly replyId: () => string
  private readonly queue: Block[] = []
  private readonly callsByIndex = new Map<number, CallBlock>()
  private readonly callsById = new Map<string, CallBlock>()
  private readonly callIds = new CallIds()
  /** Citations that arrived while no text was open. */
  private readonly early: Citation[] = []
  private latest: CallBlock | null = null
  private index = -1
  private open = false
  private total = 0
  private textLength = 0

  /** `replyId` is the seed of ids that the upstream omits. */
  constructor(sink: EventSink, replyId: () => string) {
    this.sink = sink
    this.replyId = replyId
  }

  /** Whether any block has begun. */
  get hasBlocks(): boolean {
    return this.total > 0
  }

  /** Adds text, a refusal or reasoning. False if the reply has too many blocks. */
  text(kind: TextKind, text: string): boolean {
    if (text === '') return true
    let block = this.queue.at(-1)
    if (block === undefined || block.kind !== kind) {
      block = { kind, fragments: [], citations: [], offset: this.textLength }
      if (!this.push(block)) return false
      if (kind === 'text') this.citeEarly(block)
    }
    if (kind === 'text') this.textLength += text.length
    block.fragments.push(text)
    this.advance()
    return true
  }

  /**
   * Adds a citation to the open text block, or else to the next one: OpenRouter sends citations before the
   * text.
   */
  cite(citation: Citation): void {
    const block = this.queue.at(-1)
    if (block === undefined || block.kind !== 'text') {
      if (this.early.length < MAX_BLOCKS) this.early.push(citation)
      return
    }
    this.addCitation(citation, block)
    this.advance()
  }

  private citeEarly(block: TextBlock): void {
    for (const citation of this.early) this.addCitation(citation, block)
    this.early.length = 0
  }

  /** Converts offsets in the message to offsets in the block. */
  private addCitation(citation: Citation, block: TextBlock): void {
    const { start, end } = citation
    if (start !== undefined) citation.start = Math.max(0, start - block.offset)
    if (end !== undefined) citation.end = Math.max(0, end - block.offset)
    block.citations.push(citation)
  }

  /** Adds an image, which is a block of its own. False if the reply has too many blocks. */
  image(url: string): boolean {
    if (!this.push({ kind: 'image', url })) return false
    this.advance()
    return true
  }

  /** Adds a fragment of a call. False if the reply has too many blocks. */
  call(fragment: CallFragment): boolean {
    let block = this.find(fragment)
    if (block === null) {
      block = {
        kind: 'tool',
        id: '',
        name: '',
        custom: fragment.custom,
        fragments: [],
        json: '',
        completion: new JsonCompletion(),
      }
      if (!this.push(block)) return false
      this.calls += 1
      if (fragment.index !== null) this.callsByIndex.set(fragment.index, block)
    }
    this.latest = block
    if (block.id === '' && fragment.id !== '') {
      block.id = fragment.id
      this.callsById.set(fragment.id, block)
    }
    if (block.name === '') block.name = fragment.name
    if (fragment.signature !== undefined) block.signature = fragment.signature
    if (fragment.json !== '') {
      block.json += fragment.json
      block.completion.add(fragment.json)
      block.fragments.push(fragment.json)
    }
    this.advance()
    return true
  }

  /** The index of a further block that the caller emits itself. Call it after `finish` only. */
  next(): number {
    this.index += 1
    return this.index
  }

  /** Closes all blocks. False if a call has no name. */
  finish(): boolean {
    for (let head = this.queue[0]; head !== undefined; head = this.queue[0]) {
      if (head.kind === 'tool' && head.name === '') {
        if (head.json !== '' || head.id !== '') return false
        this.queue.shift()
        this.calls -= 1
        continue
      }
      if (head.kind === 'image') {
        this.emitImage(head)
        continue
      }
      this.flush(head)
      this.close(head)
    }
    return true
  }

  /** The call that a fragment continues, by index, by id, or else the latest; null if it begins a call. */
  private find(fragment: CallFragment): CallBlock | null {
    const { index, id } = fragment
    if (index !== null) {
      const known = this.callsByIndex.get(index)
      if (known !== undefined) return beginsCall(known, fragment) ? null : known
      // A new index with neither id nor name continues the latest call.
      if (fragment.name !== '') return null
      return (id === '' ? this.latest : this.callsById.get(id)) ?? null
    }
    if (id !== '') return this.callsById.get(id) ?? null
    return this.latest !== null && beginsCall(this.latest, fragment) ? null : this.latest
  }

  private push(block: Block): boolean {
    this.total += 1
    if (this.total > MAX_BLOCKS) return false
    this.queue.push(block)
    return true
  }

  /** Emits the fragments of the first block, and closes it if it is complete and another block follows. */
  private advance(): void {
    for (let head = this.queue[0]; head !== undefined; head = this.queue[0]) {
      if (head.kind === 'image') {
        this.emitImage(head)
        continue
      }
      // A call without its id or name starts only when neither can follow any more.
      if (head.kind === 'tool' && !this.open && (head.name === '' || head.id === '')) {
        if (head.name === '' || this.queue.length === 1 || !isComplete(head)) return
      }
      this.flush(head)
      if (this.queue.length === 1 || !isComplete(head)) return
      this.close(head)
    }
  }

  private emitImage(block: ImageBlock): void {
    this.index += 1
    this.sink.event({ type: 'image', index: this.index, url: block.url })
    this.queue.shift()
  }

  private flush(block: TextBlock | CallBlock): void {
    if (!this.open) this.start(block)
    const { index } = this
    // Null is no arguments, for which the client gets an empty object.
    if (block.kind === 'tool' && !block.custom && hasNoArguments(block.json)) block.fragments.length = 0
    for (const fragment of block.fragments) {
      if (block.kind === 'tool') this.sink.event({ type: 'tool-delta', index, json: fragment })
      else this.sink.event({ type: `${block.kind}-delta`, index, text: fragment })
    }
    block.fragments.length = 0
    if (block.kind !== 'text') return
    for (const citation of block.citations) this.sink.event({ type: 'citation', index, citation })
    block.citations.length = 0
  }

  private start(block: TextBlock | CallBlock): void {
    this.open = true
    this.index += 1
    const { index } = this
    if (block.kind !== 'tool') return this.sink.event({ type: `${block.kind}-start`, index })
    const id = this.callIds.take(block.id, this.replyId(), this.index)
    const { name } = block
    this.sink.event(
      block.custom
        ? { type: 'tool-start', index, id, name, custom: true }
        : { type: 'tool-start', index, id, name },
    )
  }

  private close(block: TextBlock | CallBlock): void {
    const { index } = this
    if (block.kind === 'tool' && block.signature !== undefined) {
      this.sink.event({ type: 'tool-end', index, signature: block.signature })
    } else this.sink.event({ type: `${block.kind}-end`, index })
    this.open = false
    this.queue.shift()
  }
}

/**
 * Whether a fragment with the index of a known call begins another call: it has a name and another id, or it
 * has a name and no id, and the known call is complete.
 */
function beginsCall(block: CallBlock, fragment: CallFragment): boolean {
  if (fragment.name === '' || block.name === '') return false
  if (fragment.id !== '') return block.id !== '' && fragment.id !== block.id
  return (fragment.name !== block.name || fragment.json !== '') && isComplete(block)
}

function isComplete(block: TextBlock | CallBlock): boolean {
  if (block.kind !== 'tool') return true
  // The free text of a custom tool has no detectable end.
  return !block.custom && block.completion.isComplete(block.json)
}

/** One fragment of a call. Members that the upstream did not send are empty. */
interface CallFragment {
  /** The upstream's index of the call; null if it sent none. */
  index: number | null
  id: string
  name: string
  json: string
  custom: boolean
  signature?: string
}

/** A call or a fragment of one. `index`: its index in the reply, as `toolCallIndex` returns it. */
export function decodeToolCall(item: JsonObject, index: number | null): CallFragment {
  const custom = isObject(item['custom'])
  const inner = objectOf(custom ? item['custom'] : item['function'])
  const text = inner[custom ? 'input' : 'arguments']
  const fragment = {
    index,
    id: stringOf(item['id']) ?? '',
    name: stringOf(inner['name']) ?? '',
    json: isObject(text) ? JSON.stringify(text) : (stringOf(text) ?? ''),
    custom,
  }
  const signature = thoughtSignature(item)
  return signature === undefined ? fragment : { ...fragment, signature }
}

/**
 * The upstream's index of the call of a fragment; null if it sends none (or -1). Several calls in one list
 * that have a name but neither an index nor an id get negative indexes, because each is a call of its own.
 */
export function toolCallIndex(
  item: JsonObject,
  siblings: readonly JsonValue[],
  calls: number,
): number | null {
  const index = numberOf(item['index'])
  if (index !== undefined && index >= 0) return index
  const named = stringOf(objectOf(item['function'])['name']) ?? ''
  const anonymous = siblings.length > 1 && named !== '' && (stringOf(item['id']) ?? '') === ''
  return anonymous ? -1 - calls : null
}
