/** The places of results in the file of a journal by the numbers of their lines: 16 bytes for each. */

/** The place of a result. */
export interface ResultPlace {
  /** The place of its chunk; -1: it was added after the journal was opened. */
  readonly chunk: number
  readonly begin: number
  /** Above 0. */
  readonly end: number
}

const FIRST_LINES = 1024

/** The places of results. */
export class ResultPlaces {
  private chunks = new Float64Array(FIRST_LINES)
  /** Begin and end of each; an end of 0: the line has no result. */
  private ranges = new Uint32Array(2 * FIRST_LINES)

  has(number: number): boolean {
    return (this.ranges[2 * number + 1] ?? 0) > 0
  }

  /** Null if the line has no result. */
  find(number: number): ResultPlace | null {
    const end = this.ranges[2 * number + 1] ?? 0
    return end === 0 ? null : { chunk: this.chunks[number] ?? 0, begin: this.ranges[2 * number] ?? 0, end }
  }

  set(number: number, { chunk, begin, end }: ResultPlace): void {
    if (number >= this.chunks.length) this.grow(number + 1)
    this.chunks[number] = chunk
    this.ranges[2 * number] = begin
    this.ranges[2 * number + 1] = end
  }

  private grow(least: number): void {
    const lines = Math.max(least, 2 * this.chunks.length)
    const [chunks, ranges] = [new Float64Array(lines), new Uint32Array(2 * lines)]
    chunks.set(this.chunks)
    ranges.set(this.ranges)
    this.chunks = chunks
    this.ranges = ranges
  }
}
