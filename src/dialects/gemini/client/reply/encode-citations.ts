/**
 * Encodes citations as `groundingMetadata`, whose offsets count UTF-8 bytes of the reply's text.
 *
 * Source: ai.google.dev/api/generate-content#GroundingMetadata, read 2026-11-20.
 */
import type { Citation } from '../../../../chat/event.js'
import type { JsonObject } from '../../../../chat/json.js'

/** The interval at which byte offsets are cached, in UTF-16 units. */
const STEP = 1_024

/** The citations of one reply and the texts that they refer to. */
export class Sources {
  /** Texts by block index. */
  private readonly texts = new Map<number, string>()
  private readonly chunks: JsonObject[] = []
  /** Indices in `chunks` by source. */
  private readonly chunkIndices = new Map<string, number>()
  private readonly cited: {
    readonly index: number
    readonly citation: Citation
    readonly at: number
  }[] = []

  begin(index: number): void {
    this.texts.set(index, '')
  }

  text(index: number, text: string): void {
    this.texts.set(index, (this.texts.get(index) ?? '') + text)
  }

  cite(index: number, citation: Citation): void {
    this.cited.push({ index, citation, at: this.chunkOf(citation) })
  }

  /** The metadata; null without citations. Linear in the text and the number of citations. */
  metadata(): JsonObject | null {
    if (this.cited.length === 0) return null
    const offsets = new Map<number, Offsets>()
    let before = 0
    for (const [index, text] of this.texts) {
      const own = new Offsets(text, before)
      offsets.set(index, own)
      before = own.end
    }
    const groundingSupports = this.cited.map(({ index, citation, at }) => {
      const { start = 0, citedText = '' } = citation
      const own = offsets.get(index)
      const startIndex = own?.at(start) ?? 0
      const endIndex = own?.at(citation.end ?? start) ?? startIndex
      return { segment: { startIndex, endIndex, text: citedText }, groundingChunkIndices: [at] }
    })
    return { groundingChunks: this.chunks, groundingSupports }
  }

  /** The index of the source in `chunks`, where each source is listed once. */
  private chunkOf({ url, title, citedText }: Citation): number {
    const key = JSON.stringify(url === undefined ? [null, title, citedText] : [url, title])
    const known = this.chunkIndices.get(key)
    if (known !== undefined) return known
    const name = title === undefined ? {} : { title }
    this.chunks.push(
      url === undefined
        ? { retrievedContext: { ...name, ...(citedText === undefined ? {} : { text: citedText }) } }
        : { web: { uri: url, ...name } },
    )
    this.chunkIndices.set(key, this.chunks.length - 1)
    return this.chunks.length - 1
  }
}

/** Converts offsets in a text from UTF-16 units to UTF-8 bytes. */
class Offsets {
  private readonly text: string
  /** The byte offset of every `STEP` units. */
  private readonly cached: number[]

  constructor(text: string, before: number) {
    this.text = text
    this.cached = [before]
    let bytes = before
    for (let from = 0; from < text.length; from += STEP) {
      bytes += Buffer.byteLength(text.slice(from, from + STEP))
      this.cached.push(bytes)
    }
  }

  get end(): number {
    return this.cached.at(-1) ?? 0
  }

  at(units: number): number {
    const offset = Math.min(Math.max(units, 0), this.text.length)
    const step = Math.floor(offset / STEP)
    const begin = step * STEP
    return (this.cached[step] ?? 0) + Buffer.byteLength(this.text.slice(begin, offset))
  }
}
