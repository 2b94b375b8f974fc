/**
 * Decodes output items into blocks, from their fragments and from the whole items of `.done` events. Both
 * result in the same blocks. An item is identified by its index in the output, because some upstreams give
 * one item another id in each event.
 */
import { logprobOf, type TokenLogprob, type Citation, type Logprob } from '../../chat/event.js'
import { arrayOf, objectOf, stringOf, numberOf, type JsonObject, type JsonValue } from '../../../base/json.js'
import { stateOf } from '../reasoning-state.js'
import type { Blocks, Block, Head } from './emit-blocks.js'

interface Item extends SectionOwner {
  readonly id: string
  /** Empty if only fragments of the item have arrived. */
  readonly type: string
}

/** A fragment of an item's text, or the whole text of one of its parts. */
export interface Fragment extends SectionText {
  /** The tokens of a text, if the request includes token probabilities. */
  readonly tokens?: readonly TokenLogprob[]
}

/** The index of an item in the output, else its id, else null for the latest item. */
export type ItemKey = number | string | null

/** Limit for the items of one response; a response with more is malformed. */
const MAX_ITEMS = 4_096

/** The items of one response. */
export class Items {
  private readonly blocks: Blocks
  private readonly writer: SectionWriter
  private readonly withLogprobs: boolean
  private readonly items = new Map<number | string, Item>()
  private latest: number | string = 0
  /** The highest index so far; infinite after an item without an index. */
  private lastIndex = -1

  /** `withLogprobs`: the request includes token probabilities. */
  constructor(blocks: Blocks, withLogprobs: boolean) {
    this.blocks = blocks
    this.writer = new SectionWriter(blocks)
    this.withLogprobs = withLogprobs
  }

  /** The response has too many items or blocks. */
  get overflow(): boolean {
    return this.items.size > MAX_ITEMS || this.blocks.overflow
  }

  /** An item begins. */
  add(key: ItemKey, json: JsonObject): void {
    const known = this.at(key)
    if (known !== undefined && !known.done && known.id === idOf(json) && known.type !== '') return
    this.begin(key, json)
  }

  /** A fragment of an item arrived. */
  addFragment(key: ItemKey, fragment: Fragment): void {
    const { at, tokens } = fragment
    const item = this.at(key) ?? this.begin(key, {})
    if (tokens !== undefined) this.writer.addLogprobs(item, at, tokens)
    this.writer.append(item, fragment)
  }

  /** A part of an item is complete; the fragment is its whole text. */
  completePart(key: ItemKey, fragment: Fragment): void {
    const { at, tokens } = fragment
    const item = this.at(key) ?? this.begin(key, {})
    if (tokens !== undefined) this.writer.addRemainingLogprobs(item, at, tokens)
    this.writer.complete(item, fragment)
  }

  /** A citation of a part of a message. */
  cite(key: ItemKey, at: number, annotation: JsonValue | undefined): void {
    this.writer.cite(this.at(key) ?? this.begin(key, {}), at, annotation)
  }

  /** An item is complete; `json` is the whole item. */
  done(key: ItemKey, json: JsonObject): void {
    let item = this.at(key)
    if (item?.done === true && item.id === idOf(json)) return
    if (item === undefined || item.done || item.type !== typeOf(json)) {
      item = this.begin(key, json)
    }
    this.complete(item, json)
  }

  /**
   * Adds what is missing from the whole output, which the last event repeats: items that are not done, and
   * those after the last known index. An item with another index is found by its id.
   */
  reconcile(output: readonly JsonValue[]): void {
    const { lastIndex } = this
    const known = new Map<string, number | string>()
    for (const [key, item] of this.items) if (!known.has(nameOf(item))) known.set(nameOf(item), key)
    for (const [index, value] of output.entries()) {
      const json = objectOf(value)
      const key = this.keyOf(index, json, known)
      const item = this.items.get(key)
      if (item === undefined) {
        if (index <= lastIndex) continue
        this.done(index, json)
        const name = nameOf({ id: idOf(json), type: typeOf(json) })
        if (!known.has(name)) known.set(name, index)
      } else if (!item.done && (item.type === typeOf(json) || item.type === '')) {
        this.done(key, json)
      }
    }
  }

  /** `known`: the keys of the items so far, by `nameOf`. */
  private keyOf(
    index: number,
    json: JsonObject,
    known: ReadonlyMap<string, number | string>,
  ): number | string {
    const id = idOf(json)
    if (id !== '' && this.items.get(index)?.id !== id) {
      const key = known.get(nameOf({ id, type: typeOf(json) }))
      if (key !== undefined) return key
    }
    return this.items.has(index) ? index : id
  }

  /** Closes all blocks. False if text belongs to no known item, or there are too many items. */
  finish(): boolean {
    this.blocks.finish()
    for (const item of this.items.values()) if (item.isWaiting) return false
    return !this.overflow
  }

  private at(key: ItemKey): Item | undefined {
    return this.items.get(key ?? this.latest)
  }

  private begin(place: ItemKey, json: JsonObject): Item {
    const key = place ?? this.latest
    const before = this.items.get(key)
    const isAnonymous = before !== undefined && before.type === '' && !before.done
    if (before !== undefined && !isAnonymous) this.writer.close(before)
    const item: Item = {
      id: idOf(json),
      type: typeOf(json),
      // Fragments that arrived before the item belong to it.
      sections: isAnonymous ? before.sections : new Map<string, Section>(),
      recent: null,
      block: isAnonymous ? before.block : null,
      done: false,
      isWaiting: false,
    }
    this.items.set(key, item)
    this.latest = key
    this.lastIndex = typeof place === 'number' ? Math.max(this.lastIndex, place) : Infinity
    this.beginCall(item, json)
    return item
  }

  /** Begins the block of a call as soon as its name is known; arguments may arrive before. */
  private beginCall(item: Item, json: JsonObject): void {
    const head = item.block === null ? toolCallHead(json) : null
    if (head === null) return
    item.block = this.blocks.begin(head)
    item.isWaiting = false
    const section = item.sections.get('arguments0')
    if (section === undefined) return
    section.block = item.block
    this.blocks.append(item.block, section.text)
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
        // A call without a name makes the response malformed.
        item.isWaiting = item.block === null
        this.writer.complete(item, {
          kind: 'arguments',
          at: 0,
          text: toolArguments(json['arguments'] ?? json['input']),
        })
        break
      default:
        if (item.type !== '') item.block = this.blocks.begin({ kind: 'opaque', item: json })
    }
    this.writer.close(item)
  }

  private part(item: Item, at: number, value: JsonValue): void {
    const part = objectOf(value)
    if (part['type'] === 'refusal') {
      const text = stringOf(part['refusal']) ?? ''
      return this.writer.complete(item, { kind: 'refusal', at, text })
    }
    if (part['type'] !== 'output_text' && part['type'] !== 'text') return
    if (this.withLogprobs) {
      this.writer.addRemainingLogprobs(item, at, logprobsOf(part['logprobs']))
    }
    this.writer.complete(item, { kind: 'text', at, text: stringOf(part['text']) ?? '' })
    const cited = item.sections.get(`text${at}`)?.citations ?? 0
    for (const annotation of arrayOf(part['annotations']).slice(cited)) {
      this.writer.cite(item, at, annotation)
    }
  }

  private reasoning(item: Item, json: JsonObject): void {
    for (const kind of ['summary', 'reasoning'] as const) {
      const parts = arrayOf(json[kind === 'summary' ? 'summary' : 'content'])
      for (const [at, part] of parts.entries()) {
        this.writer.complete(item, { kind, at, text: stringOf(objectOf(part)['text']) ?? '' })
      }
    }
    const state = stateOf(json)
    if (state === undefined) return
    // Reasoning without text is still a block, because its state must be sent back with the next turn.
    item.block ??= this.blocks.begin({ kind: 'thinking' })
    this.blocks.end(item.block, state)
  }
}

/** Type and id of an item as one key. Types contain no blank. */
function nameOf({ id, type }: Pick<Item, 'id' | 'type'>): string {
  return `${type} ${id}`
}

function idOf(json: JsonObject): string {
  return stringOf(json['id']) ?? ''
}

function typeOf(json: JsonObject): string {
  return stringOf(json['type']) ?? ''
}

/** The kind of text that a section holds. */
type SectionKind = 'text' | 'refusal' | 'summary' | 'reasoning' | 'arguments'

/** Text of a section: a fragment, or the whole text. */
interface SectionText {
  readonly kind: SectionKind
  /** The index of the part in its list; 0 for arguments. */
  readonly at: number
  readonly text: string
}

interface Section {
  readonly kind: SectionKind
  /** The index of the part in its list; 0 for arguments. */
  readonly at: number
  /** All text so far. */
  text: string
  block: Block | null
  /** Number of citations and of tokens with probabilities so far. */
  citations: number
  tokens: number
}

/** The state of an item that its sections share. */
interface SectionOwner {
  readonly sections: Map<string, Section>
  /** The section of the last look-up: most events belong to the same one. */
  recent: Section | null
  /** The block of an item that is one block: a call, or reasoning with all its parts. */
  block: Block | null
  done: boolean
  /** Text arrived for which there is no block, because the item itself is not known yet. */
  isWaiting: boolean
}

/**
 * Adds text, tokens and citations to the blocks of sections: content parts, summary parts and arguments. Each
 * section has its own `.done` event, which repeats its text; only text that is missing from the deltas is
 * added.
 */
class SectionWriter {
  private readonly blocks: Blocks

  constructor(blocks: Blocks) {
    this.blocks = blocks
  }

  /** Adds a fragment of text. */
  append(item: SectionOwner, { kind, at, text }: SectionText): void {
    if (text !== '' && !item.done) this.extend(item, this.section(item, kind, at), text)
  }

  /**
   * Adds the rest of a section's whole text. If the text differs from the fragments, the fragments are kept.
   */
  complete(item: SectionOwner, { kind, at, text: whole }: SectionText): void {
    const text = item.sections.get(kind + String(at))?.text ?? ''
    if (item.done || whole.length <= text.length || !whole.startsWith(text)) return
    this.extend(item, this.section(item, kind, at), whole.slice(text.length))
  }

  /**
   * Adds tokens of a text. Call it before the text of the tokens is added, because encoders send them
   * together.
   */
  addLogprobs(item: SectionOwner, at: number, tokens: readonly TokenLogprob[]): void {
    if (item.done || tokens.length === 0) return
    const section = this.section(item, 'text', at)
    section.tokens += tokens.length
    if (section.block === null || section.block.complete) this.open(item, section)
    if (section.block !== null) this.blocks.addLogprobs(section.block, tokens)
  }

  /** Adds the tokens of a whole text that are missing from the fragments. */
  addRemainingLogprobs(item: SectionOwner, at: number, tokens: readonly TokenLogprob[]): void {
    const known = item.sections.get(`text${at}`)?.tokens ?? 0
    this.addLogprobs(item, at, tokens.slice(known))
  }

  /** Adds a citation of a text. */
  cite(item: SectionOwner, at: number, annotation: JsonValue | undefined): void {
    if (item.done) return
    const section = this.section(item, 'text', at)
    section.citations += 1
    const citation = citationOf(objectOf(annotation))
    if (citation === null) return
    if (section.block === null || section.block.complete) this.open(item, section)
    if (section.block !== null) this.blocks.cite(section.block, citation)
  }

  /** Ends the item and all its blocks. */
  close(item: SectionOwner): void {
    item.done = true
    if (item.block !== null) this.blocks.end(item.block)
    for (const { block } of item.sections.values()) if (block !== null) this.blocks.end(block)
    item.sections.clear()
  }

  private extend(item: SectionOwner, section: Section, text: string): void {
    if (section.block === null || section.block.complete) this.open(item, section)
    section.text += text
    if (section.block === null) item.isWaiting = true
    else this.blocks.append(section.block, text)
  }

  private section(item: SectionOwner, kind: SectionKind, at: number): Section {
    const { recent, sections } = item
    if (recent !== null && recent.kind === kind && recent.at === at) return recent
    const key = kind + String(at)
    const section = sections.get(key) ?? {
      kind,
      at,
      text: '',
      block: null,
      citations: 0,
      tokens: 0,
    }
    sections.set(key, section)
    item.recent = section
    return section
  }

  /** Chooses the block of a section's first text. Arguments have none before their call is known. */
  private open(item: SectionOwner, section: Section): void {
    const { kind } = section
    switch (kind) {
      case 'arguments':
        section.block = item.block
        return
      case 'summary':
      case 'reasoning':
        // The parts of one reasoning item are one block, because its state belongs to all of them.
        if (item.block === null) item.block = this.blocks.begin({ kind: 'thinking' })
        else this.blocks.append(item.block, '\n\n')
        section.block = item.block
        return
      case 'text':
      case 'refusal':
        // The parts of a message are consecutive.
        for (const { block } of item.sections.values()) if (block !== null) this.blocks.end(block)
        section.block = this.blocks.begin({ kind })
        return
      default:
        kind satisfies never
    }
  }
}

/** The head of a call's block; null for other items, and for a call without a name. */
function toolCallHead(json: JsonObject): Extract<Head, { kind: 'tool' }> | null {
  const type = stringOf(json['type'])
  const name = stringOf(json['name']) ?? ''
  if ((type !== 'function_call' && type !== 'custom_tool_call') || name === '') return null
  const id = stringOf(json['call_id']) ?? stringOf(json['id']) ?? ''
  const byProgram = objectOf(json['caller'])['type'] === 'program'
  return { kind: 'tool', id, name, custom: type === 'custom_tool_call', byProgram }
}

/** Arguments as text; some upstreams of this format send an object. */
function toolArguments(value: JsonValue | undefined): string {
  if (typeof value === 'string') return value
  return value === undefined || value === null ? '' : JSON.stringify(value)
}

/** A source by its URL, or a file by its name; null for an annotation with neither. */
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

/**
 * The tokens of a fragment or of a whole text, from its `logprobs`. Streams omit the bytes of a token; they
 * are the UTF-8 bytes of its text, except for tokens whose text begins with `bytes:`.
 */
export function logprobsOf(value: JsonValue | undefined): TokenLogprob[] {
  return arrayOf(value).flatMap((item) => {
    return likelyOf(item).map((token) => {
      return { ...token, top: arrayOf(objectOf(item)['top_logprobs']).flatMap(likelyOf) }
    })
  })
}

function likelyOf(value: JsonValue): Logprob[] {
  const item = objectOf(value)
  const token = stringOf(item['token'])
  const logprob = numberOf(item['logprob'])
  if (token === undefined || logprob === undefined) return []
  const { bytes } = item
  if (Array.isArray(bytes)) {
    return [{ token, logprob, bytes: bytes.filter((byte) => typeof byte === 'number') }]
  }
  return [token.startsWith('bytes:') ? { token, logprob, bytes: null } : logprobOf(token, logprob)]
}
