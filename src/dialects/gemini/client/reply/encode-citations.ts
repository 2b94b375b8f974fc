/**
 * Cited sources as `groundingMetadata`. Offsets are UTF-8 bytes of the answer's text here.
 *
 * Source: ai.google.dev/api/generate-content#GroundingMetadata, read 2026-11-20.
 */
import type { Citation } from '../../../../chat/event.js'
import type { JsonObject } from '../../../../chat/json.js'

/** Distances at which the bytes of a text are noted, in UTF-16 units. */
const STEP = 1_024

/** The sources of one answer, and the texts that they are cited in. */
export class Sources {
  /** Texts by the number of their block, as long as the answer goes on. */
  private readonly texts = new Map<number, string>()
  private readonly chunks: JsonObject[] = []
  private readonly places = new Map<string, number>()
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

  /** The metadata; null where nothing was cited. Linear in the text and the number of citations. */
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
      const place = offsets.get(index)
      const startIndex = place?.at(start) ?? 0
      const endIndex = place?.at(citation.end ?? start) ?? startIndex
      return { segment: { startIndex, endIndex, text: citedText }, groundingChunkIndices: [at] }
    })
    return { groundingChunks: this.chunks, groundingSupports }
  }

  /** Each source is listed once. */
  private chunkOf({ url, title, citedText }: Citation): number {
    const key = JSON.stringify(url === undefined ? [null, title, citedText] : [url, title])
    const known = this.places.get(key)
    if (known !== undefined) return known
    const name = title === undefined ? {} : { title }
    this.chunks.push(
      url === undefined
        ? { retrievedContext: { ...name, ...(citedText === undefined ? {} : { text: citedText }) } }
        : { web: { uri: url, ...name } },
    )
    this.places.set(key, this.chunks.length - 1)
    return this.chunks.length - 1
  }
}

/** Offsets in a text: UTF-16 units in, bytes out. */
class Offsets {
  private readonly text: string
  private readonly noted: number[]

  constructor(text: string, before: number) {
    this.text = text
    this.noted = [before]
    let bytes = before
    for (let from = 0; from < text.length; from += STEP) {
      bytes += Buffer.byteLength(text.slice(from, from + STEP))
      this.noted.push(bytes)
    }
  }

  get end(): number {
    return this.noted.at(-1) ?? 0
  }

  at(units: number): number {
    const place = Math.min(Math.max(units, 0), this.text.length)
    const step = Math.floor(place / STEP)
    const begin = step * STEP
    return (this.noted[step] ?? 0) + Buffer.byteLength(this.text.slice(begin, place))
  }
}
