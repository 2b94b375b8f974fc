/**
 * The sections of output items: content parts, summary parts and arguments. Each has its own `.done` event,
 * which repeats its text; only text that is missing from the deltas is added.
 */
import type { JsonValue } from '../../../../chat/json.js'
import { objectOf } from '../../../../chat/json.js'
import type { TokenLogprob } from '../../../../chat/reply/logprobs.js'
import type { Block, Blocks } from './emit-blocks.js'
import { citationOf } from './decode-citations.js'

/** The kind of text that a section holds. */
export type SectionKind = 'text' | 'refusal' | 'summary' | 'reasoning' | 'arguments'

/** Text of a section: a fragment, or the whole text. */
export interface SectionText {
  readonly kind: SectionKind
  /** The index of the part in its list; 0 for arguments. */
  readonly at: number
  readonly text: string
}

/** One section of an item. */
export interface Section {
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
export interface SectionOwner {
  readonly sections: Map<string, Section>
  /** The section of the last look-up: most events belong to the same one. */
  recent: Section | null
  /** The block of an item that is one block: a call, or reasoning with all its parts. */
  block: Block | null
  done: boolean
  /** Text arrived for which there is no block, because the item itself is not known yet. */
  isWaiting: boolean
}

/** Adds text, tokens and citations to the blocks of sections. */
export class SectionWriter {
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
