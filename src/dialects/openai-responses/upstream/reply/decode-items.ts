/**
 * Reads output items, as they grow and as they are when done, into blocks.
 * Knows no stream event by name and nothing of endings; an item that came whole and one that came in
 * pieces end in the same blocks.
 *
 * An item is found by its place in the output: some upstreams give one item another id in each event.
 */
import type { Citation } from '../../../../chat/event.js'
import {
  arrayOf,
  type JsonObject,
  type JsonValue,
  numberOf,
  objectOf,
  stringOf,
} from '../../../../chat/json.js'
import type { TokenLogprob } from '../../../../chat/reply/logprobs.js'
import type { Block, Blocks, Head } from './decode-blocks.js'
import { logprobsOf } from './decode-logprobs.js'
import { stateOf } from '../../shared/reasoning-state.js'

/** A stretch of an item's words that has its own `.done`: a content part, a summary part, arguments. */
interface Section {
  readonly kind: Piece['kind']
  readonly at: number
  /** All that was said, to know what a `.done` adds. */
  said: string
  block: Block | null
  cited: number
  /** Tokens that were told. */
  weighed: number
}

interface Item {
  readonly id: string
  /** Empty while only pieces of it have come. */
  readonly type: string
  readonly sections: Map<string, Section>
  /** The section that was looked up last: most events are about the same one. */
  recent: Section | null
  /** The block of an item that is one block: a call, or reasoning with all its parts. */
  block: Block | null
  done: boolean
  /** Pieces came that have no block to go to before the item itself is known. */
  waiting: boolean
}

/** A piece of an item. */
export interface Piece {
  readonly kind: 'text' | 'refusal' | 'summary' | 'reasoning' | 'arguments'
  /** The part's place in its list; calls have none. */
  readonly at: number
  readonly text: string
  /** The tokens of a text, where they were asked for. */
  readonly tokens?: readonly TokenLogprob[]
}

/** Where an item stands in the output, else its id, else null: the newest item is meant. */
export type Place = number | string | null

/** An upstream that opens more items than this is broken. */
const MAX_ITEMS = 4_096

/** The items of one response. */
export class Items {
  private readonly blocks: Blocks
  private readonly weighs: boolean
  private readonly items = new Map<number | string, Item>()
  private latest: number | string = 0
  /** The highest place that was seen; infinite once an item came without one. */
  private last = -1

  /** `weighs`: the tokens of the texts were asked for. */
  constructor(blocks: Blocks, weighs: boolean) {
    this.blocks = blocks
    this.weighs = weighs
  }

  /** More items than any real response has. */
  get overflow(): boolean {
    return this.items.size > MAX_ITEMS || this.blocks.overflow
  }

  /** An item has begun. */
  add(place: Place, json: JsonObject): void {
    const known = this.at(place)
    if (known !== undefined && !known.done && known.id === idOf(json) && known.type !== '') return
    this.begin(place, json)
  }

  /** A piece of an item has come. */
  piece(place: Place, { kind, at, text, tokens }: Piece): void {
    const item = this.at(place) ?? this.begin(place, {})
    if (tokens !== undefined) this.weigh(item, at, tokens)
    this.say(item, kind, at, text)
  }

  /** A part of an item is complete, and this is the whole of it. */
  settlePiece(place: Place, { kind, at, text, tokens }: Piece): void {
    const item = this.at(place) ?? this.begin(place, {})
    if (tokens !== undefined) this.weighRest(item, at, tokens)
    this.settle(item, kind, at, text)
  }

  /** A source for a part of a message. */
  cite(place: Place, at: number, annotation: JsonValue | undefined): void {
    const item = this.at(place) ?? this.begin(place, {})
    this.citeSection(item, at, annotation)
  }

  /** An item is complete, and this is the whole of it. */
  done(place: Place, json: JsonObject): void {
    let item = this.at(place)
    if (item?.done === true && item.id === idOf(json)) return
    if (item === undefined || item.done || item.type !== typeOf(json)) {
      item = this.begin(place, json)
    }
    this.complete(item, json)
  }

  /**
   * The whole output, as the last event repeats it. Only what did not come before is taken: items that
   * are not done, and those after the last that was seen. One that came at another place is known by
   * its id.
   */
  reconcile(output: readonly JsonValue[]): void {
    const { last } = this
    const known = new Map<string, number | string>()
    for (const [key, item] of this.items) if (!known.has(nameOf(item))) known.set(nameOf(item), key)
    for (const [place, value] of output.entries()) {
      const json = objectOf(value)
      const key = this.keyOf(place, json, known)
      const item = this.items.get(key)
      if (item === undefined) {
        if (place <= last) continue
        this.done(place, json)
        const name = nameOf({ id: idOf(json), type: typeOf(json) })
        if (!known.has(name)) known.set(name, place)
      } else if (!item.done && (item.type === typeOf(json) || item.type === '')) {
        this.done(key, json)
      }
    }
  }

  /** `known`: the items that came before, by what `nameOf` makes of them. */
  private keyOf(
    place: number,
    json: JsonObject,
    known: ReadonlyMap<string, number | string>,
  ): number | string {
    const id = idOf(json)
    if (id !== '' && this.items.get(place)?.id !== id) {
      const key = known.get(nameOf({ id, type: typeOf(json) }))
      if (key !== undefined) return key
    }
    return this.items.has(place) ? place : id
  }

  /** False where something came that nobody can make an answer of. */
  finish(): boolean {
    this.blocks.finish()
    for (const item of this.items.values()) if (item.waiting) return false
    return !this.overflow
  }

  private at(place: Place): Item | undefined {
    return this.items.get(place ?? this.latest)
  }

  private begin(place: Place, json: JsonObject): Item {
    const key = place ?? this.latest
    const before = this.items.get(key)
    const isAnonymous = before !== undefined && before.type === '' && !before.done
    if (before !== undefined && !isAnonymous) this.closeAll(before)
    const item: Item = {
      id: idOf(json),
      type: typeOf(json),
      // What came before the item itself is its own.
      sections: isAnonymous ? before.sections : new Map<string, Section>(),
      recent: null,
      block: isAnonymous ? before.block : null,
      done: false,
      waiting: false,
    }
    this.items.set(key, item)
    this.latest = key
    this.last = typeof place === 'number' ? Math.max(this.last, place) : Infinity
    this.beginCall(item, json)
    return item
  }

  /** Begins the block of a call as soon as it has a name; arguments may have come before. */
  private beginCall(item: Item, json: JsonObject): void {
    const head = item.block === null ? headOf(json) : null
    if (head === null) return
    item.block = this.blocks.begin(head)
    item.waiting = false
    const section = item.sections.get('arguments0')
    if (section === undefined) return
    section.block = item.block
    this.blocks.say(item.block, section.said)
  }

  private complete(item: Item, json: JsonObject): void {
    switch (item.type) {
      case 'message':
        for (const [at, value] of arrayOf(json['content']).entries()) this.part(item, at, value)
        break
      case 'reasoning':
        this.reasoning(item, json)
        break
      case 'function_call':
      case 'custom_tool_call':
        this.beginCall(item, json)
        // A call of nothing cannot be run, and must not get lost either.
        item.waiting = item.block === null
        this.settle(item, 'arguments', 0, argumentsOf(json['arguments'] ?? json['input']))
        break
      default:
        if (item.type !== '') item.block = this.blocks.begin({ kind: 'opaque', item: json })
    }
    this.closeAll(item)
  }

  private part(item: Item, at: number, value: JsonValue): void {
    const part = objectOf(value)
    if (part['type'] === 'refusal') {
      return this.settle(item, 'refusal', at, stringOf(part['refusal']) ?? '')
    }
    if (part['type'] !== 'output_text' && part['type'] !== 'text') return
    if (this.weighs) this.weighRest(item, at, logprobsOf(part['logprobs']))
    this.settle(item, 'text', at, stringOf(part['text']) ?? '')
    const seen = item.sections.get(`text${at}`)?.cited ?? 0
    for (const annotation of arrayOf(part['annotations']).slice(seen)) {
      this.citeSection(item, at, annotation)
    }
  }

  private reasoning(item: Item, json: JsonObject): void {
    for (const [at, part] of arrayOf(json['summary']).entries()) {
      this.settle(item, 'summary', at, stringOf(objectOf(part)['text']) ?? '')
    }
    for (const [at, part] of arrayOf(json['content']).entries()) {
      this.settle(item, 'reasoning', at, stringOf(objectOf(part)['text']) ?? '')
    }
    const state = stateOf(json)
    if (state === undefined) return
    // Reasoning that is not shown is still a block: its state must come back with the next turn.
    item.block ??= this.blocks.begin({ kind: 'thinking' })
    this.blocks.end(item.block, state)
  }

  private settle(item: Item, kind: Piece['kind'], at: number, whole: string): void {
    const said = item.sections.get(kind + String(at))?.said ?? ''
    // Where the two disagree, what the client has read already stands.
    if (whole.length >= said.length && whole.startsWith(said))
      this.say(item, kind, at, whole.slice(said.length))
  }

  private say(item: Item, kind: Piece['kind'], at: number, text: string): void {
    if (text === '' || item.done) return
    const section = this.section(item, kind, at)
    if (section.block === null || section.block.complete) this.open(item, kind, section)
    section.said += text
    if (section.block === null) item.waiting = true
    else this.blocks.say(section.block, text)
  }

  /** Tokens go out with the text they are of, so they are told first. */
  private weigh(item: Item, at: number, tokens: readonly TokenLogprob[]): void {
    if (item.done || tokens.length === 0) return
    const section = this.section(item, 'text', at)
    section.weighed += tokens.length
    if (section.block === null || section.block.complete) this.open(item, 'text', section)
    if (section.block !== null) this.blocks.weigh(section.block, tokens)
  }

  /** What the whole of a text's tokens has more than came in pieces. */
  private weighRest(item: Item, at: number, tokens: readonly TokenLogprob[]): void {
    const seen = item.sections.get(`text${at}`)?.weighed ?? 0
    this.weigh(item, at, tokens.slice(seen))
  }

  private citeSection(item: Item, at: number, annotation: JsonValue | undefined): void {
    if (item.done) return
    const section = this.section(item, 'text', at)
    section.cited += 1
    const citation = citationOf(objectOf(annotation))
    if (citation === null) return
    if (section.block === null || section.block.complete) this.open(item, 'text', section)
    if (section.block !== null) this.blocks.cite(section.block, citation)
  }

  private section(item: Item, kind: Piece['kind'], at: number): Section {
    const { recent, sections } = item
    if (recent !== null && recent.kind === kind && recent.at === at) return recent
    const key = kind + String(at)
    const section = sections.get(key) ?? { kind, at, said: '', block: null, cited: 0, weighed: 0 }
    sections.set(key, section)
    item.recent = section
    return section
  }

  /** Finds the block of a section's first words; arguments have none before their call. */
  private open(item: Item, kind: Piece['kind'], section: Section): void {
    switch (kind) {
      case 'arguments':
        section.block = item.block
        return
      case 'summary':
      case 'reasoning':
        // The parts of one item are one block, because its state belongs to all of them.
        if (item.block === null) item.block = this.blocks.begin({ kind: 'thinking' })
        else this.blocks.say(item.block, '\n\n')
        section.block = item.block
        return
      case 'text':
      case 'refusal':
        // One part of a message is said after the other.
        for (const { block } of item.sections.values()) if (block !== null) this.blocks.end(block)
        section.block = this.blocks.begin({ kind })
        return
      default:
        kind satisfies never
    }
  }

  private closeAll(item: Item): void {
    item.done = true
    if (item.block !== null) this.blocks.end(item.block)
    for (const { block } of item.sections.values()) if (block !== null) this.blocks.end(block)
    item.sections.clear()
  }
}

/** One text of an item's type and id; the types are words without a blank. */
function nameOf({ id, type }: Pick<Item, 'id' | 'type'>): string {
  return `${type} ${id}`
}

function idOf(json: JsonObject): string {
  return stringOf(json['id']) ?? ''
}

function typeOf(json: JsonObject): string {
  return stringOf(json['type']) ?? ''
}

/** How the block of a call begins; null for every other item, and for a call that has no name. */
function headOf(json: JsonObject): Extract<Head, { kind: 'tool' }> | null {
  const type = typeOf(json)
  const name = stringOf(json['name']) ?? ''
  if ((type !== 'function_call' && type !== 'custom_tool_call') || name === '') return null
  const id = stringOf(json['call_id']) ?? idOf(json)
  return { kind: 'tool', id, name, custom: type === 'custom_tool_call' }
}

/** Arguments as text, whatever an upstream of this format made of them. */
function argumentsOf(value: JsonValue | undefined): string {
  if (typeof value === 'string') return value
  return value === undefined || value === null ? '' : JSON.stringify(value)
}

/** A source by address, or a file by its name; null where the annotation names neither. */
function citationOf(annotation: JsonObject): Citation | null {
  const url = stringOf(annotation['url'])
  const title = stringOf(annotation['title']) ?? stringOf(annotation['filename'])
  if (url === undefined && title === undefined) return null
  const citation: Citation = {}
  if (url !== undefined) citation.url = url
  if (title !== undefined) citation.title = title
  const start = numberOf(annotation['start_index'])
  const end = numberOf(annotation['end_index'])
  if (start !== undefined) citation.start = start
  if (end !== undefined) citation.end = end
  return citation
}
