/**
 * Puts what arrives in any order into blocks that never overlap.
 * Knows nothing of JSON frames: it is told of text, thoughts, refusals and pieces of calls.
 *
 * Blocks queue in the order in which they began. Only the first is open and passes its pieces on at
 * once; the others keep theirs until it is complete. Text is complete as soon as anything else has
 * begun; a call when its arguments are a whole JSON value, or at the end of the reply.
 */
import type { Citation, EventSink } from '../../../../chat/event.js'
import { JsonCompletion } from '../../../../wire/json/scan/json-completion.js'
import { CallIds } from '../../../../wire/openai/names.js'

type WordKind = 'text' | 'refusal' | 'thinking'

interface WordBlock {
  kind: WordKind
  pieces: string[]
  /** Citations and their texts stay in the order in which they came: after all text so far. */
  citations: Citation[]
  /** UTF-16 units of text in the reply before this block. */
  offset: number
}

interface CallBlock {
  kind: 'tool'
  id: string
  name: string
  custom: boolean
  pieces: string[]
  /** All arguments so far, to see whether they are complete. */
  json: string
  /** Tells when they are complete. */
  end: JsonCompletion
  signature?: string
}

interface ImageBlock {
  kind: 'image'
  url: string
}

type Block = WordBlock | CallBlock | ImageBlock

/** One piece of a call, with whatever the upstream said of it. */
export interface CallPiece {
  /** The call's place as the upstream counts, where it is a usable number. */
  index: number | null
  id: string
  name: string
  json: string
  custom: boolean
  signature?: string
}

/** An upstream that opens more calls than this in one reply is broken. */
const MAX_BLOCKS = 4_096

/** Emits blocks in order; `finish` closes what is open. */
export class Blocks {
  /** Calls that have begun or wait. */
  calls = 0
  private readonly sink: EventSink
  private readonly nameOf: (name: string) => string
  private readonly replyId: () => string
  private readonly queue: Block[] = []
  private readonly places = new Map<number, CallBlock>()
  private readonly ids = new Map<string, CallBlock>()
  private readonly callIds = new CallIds()
  /** Citations that came while no text was open. */
  private readonly early: Citation[] = []
  private latest: CallBlock | null = null
  private index = -1
  private open = false
  private total = 0
  private textLength = 0

  /** `nameOf` turns a tool's wire name into the client's; `replyId` seeds ids that never came. */
  constructor(sink: EventSink, nameOf: (name: string) => string, replyId: () => string) {
    this.sink = sink
    this.nameOf = nameOf
    this.replyId = replyId
  }

  /** Whether anything of an answer has come. */
  get began(): boolean {
    return this.total > 0
  }

  /** Adds text, a refusal or a thought. False where the reply has too many blocks. */
  words(kind: WordKind, text: string): boolean {
    if (text === '') return true
    let block = this.queue.at(-1)
    if (block === undefined || block.kind !== kind) {
      block = { kind, pieces: [], citations: [], offset: this.textLength }
      if (!this.push(block)) return false
      if (kind === 'text') this.citeEarly(block)
    }
    if (kind === 'text') this.textLength += text.length
    block.pieces.push(text)
    this.advance()
    return true
  }

  /** Cites a source for the open text block, or for the next one: OpenRouter names them beforehand. */
  cite(citation: Citation): void {
    const block = this.queue.at(-1)
    if (block === undefined || block.kind !== 'text') {
      if (this.early.length < MAX_BLOCKS) this.early.push(citation)
      return
    }
    this.place(citation, block)
    this.advance()
  }

  private citeEarly(block: WordBlock): void {
    for (const citation of this.early) this.place(citation, block)
    this.early.length = 0
  }

  /** Offsets of the message become offsets of the block. */
  private place(citation: Citation, block: WordBlock): void {
    const { start, end } = citation
    if (start !== undefined) citation.start = Math.max(0, start - block.offset)
    if (end !== undefined) citation.end = Math.max(0, end - block.offset)
    block.citations.push(citation)
  }

  /** Adds a picture, which is a block of its own. False where the reply has too many blocks. */
  image(url: string): boolean {
    if (!this.push({ kind: 'image', url })) return false
    this.advance()
    return true
  }

  /** Adds a piece of a call. False where the reply has too many blocks. */
  call(piece: CallPiece): boolean {
    let block = this.find(piece)
    if (block === null) {
      block = {
        kind: 'tool',
        id: '',
        name: '',
        custom: piece.custom,
        pieces: [],
        json: '',
        end: new JsonCompletion(),
      }
      if (!this.push(block)) return false
      this.calls += 1
      if (piece.index !== null) this.places.set(piece.index, block)
    }
    this.latest = block
    if (block.id === '' && piece.id !== '') {
      block.id = piece.id
      this.ids.set(piece.id, block)
    }
    if (block.name === '') block.name = piece.name
    if (piece.signature !== undefined) block.signature = piece.signature
    if (piece.json !== '') {
      block.json += piece.json
      block.end.add(piece.json)
      block.pieces.push(piece.json)
    }
    this.advance()
    return true
  }

  /** The place of a block that is none of these, after all that there are; only once all are closed. */
  next(): number {
    this.index += 1
    return this.index
  }

  /** Closes everything; false where a call never got a name. */
  finish(): boolean {
    for (let head = this.queue[0]; head !== undefined; head = this.queue[0]) {
      if (head.kind === 'tool' && head.name === '') {
        if (head.json !== '' || head.id !== '') return false
        this.queue.shift()
        this.calls -= 1
        continue
      }
      if (head.kind === 'image') {
        this.show(head)
        continue
      }
      this.flush(head)
      this.close(head)
    }
    return true
  }

  /** The block a piece belongs to: by place, by id, or the newest where it has neither. */
  private find(piece: CallPiece): CallBlock | null {
    const { index, id } = piece
    if (index !== null) {
      const placed = this.places.get(index)
      if (placed !== undefined) return another(placed, piece) ? null : placed
      // A new place with neither id nor name continues the newest call.
      return piece.name === '' ? ((id === '' ? this.latest : this.ids.get(id)) ?? null) : null
    }
    if (id !== '') return this.ids.get(id) ?? null
    return this.latest !== null && another(this.latest, piece) ? null : this.latest
  }

  private push(block: Block): boolean {
    this.total += 1
    if (this.total > MAX_BLOCKS) return false
    this.queue.push(block)
    return true
  }

  /** Passes on what the first block has, and moves on while it is complete and another waits. */
  private advance(): void {
    for (let head = this.queue[0]; head !== undefined; head = this.queue[0]) {
      if (head.kind === 'image') {
        this.show(head)
        continue
      }
      // A call that waits for its id or name is not begun with an invented one before its time.
      if (head.kind === 'tool' && !this.open && (head.name === '' || head.id === '')) {
        if (head.name === '' || this.queue.length === 1 || !complete(head)) return
      }
      this.flush(head)
      if (this.queue.length === 1 || !complete(head)) return
      this.close(head)
    }
  }

  private show(block: ImageBlock): void {
    this.index += 1
    this.sink.event({ type: 'image', index: this.index, url: block.url })
    this.queue.shift()
  }

  private flush(block: WordBlock | CallBlock): void {
    if (!this.open) this.start(block)
    const { index } = this
    for (const piece of block.pieces) {
      if (block.kind === 'tool') this.sink.event({ type: 'tool-delta', index, json: piece })
      else this.sink.event({ type: `${block.kind}-delta`, index, text: piece })
    }
    block.pieces.length = 0
    if (block.kind !== 'text') return
    for (const citation of block.citations) this.sink.event({ type: 'citation', index, citation })
    block.citations.length = 0
  }

  private start(block: WordBlock | CallBlock): void {
    this.open = true
    this.index += 1
    const { index } = this
    if (block.kind !== 'tool') return this.sink.event({ type: `${block.kind}-start`, index })
    const id = this.callIds.take(block.id, this.replyId(), this.index)
    const name = this.nameOf(block.name)
    this.sink.event(
      block.custom
        ? { type: 'tool-start', index, id, name, custom: true }
        : { type: 'tool-start', index, id, name },
    )
  }

  private close(block: WordBlock | CallBlock): void {
    const { index } = this
    if (block.kind === 'tool' && block.signature !== undefined) {
      this.sink.event({ type: 'tool-end', index, signature: block.signature })
    } else this.sink.event({ type: `${block.kind}-end`, index })
    this.open = false
    this.queue.shift()
  }
}

/**
 * True where a piece at a known place begins another call: it brings another id together with a
 * name, or a name and arguments where the call so far has no id and is complete.
 */
function another(block: CallBlock, piece: CallPiece): boolean {
  if (piece.name === '' || block.name === '') return false
  if (piece.id !== '') return block.id !== '' && piece.id !== block.id
  return (piece.name !== block.name || piece.json !== '') && complete(block)
}

function complete(block: WordBlock | CallBlock): boolean {
  if (block.kind !== 'tool') return true
  // Free text may always go on.
  return !block.custom && block.end.isComplete(block.json)
}
