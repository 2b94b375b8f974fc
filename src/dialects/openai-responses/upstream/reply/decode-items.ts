/**
 * Decodes output items into blocks, from their fragments and from the whole items of `.done` events. Both
 * result in the same blocks. An item is identified by its index in the output, because some upstreams give
 * one item another id in each event.
 */
import {
  arrayOf,
  type JsonObject,
  type JsonValue,
  objectOf,
  stringOf,
} from '../../../../chat/json.js'
import type { TokenLogprob } from '../../../../chat/reply/logprobs.js'
import { stateOf } from '../../shared/reasoning-state.js'
import type { Blocks } from './emit-blocks.js'
import { logprobsOf } from './decode-logprobs.js'
import { toolArguments, toolCallHead } from './decode-tool-calls.js'
import {
  SectionWriter,
  type Section,
  type SectionOwner,
  type SectionText,
} from './decode-sections.js'

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
