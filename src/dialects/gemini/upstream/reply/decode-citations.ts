/**
 * Grounding and citation metadata as citations of one text block.
 * Knows offsets only as UTF-8 bytes in, UTF-16 units out; a source without a URL is left out.
 */
import type { Citation } from '../../../../chat/event.js'
import { arrayOf, numberOf, objectOf, stringOf, type JsonObject } from '../../../../chat/json.js'

/** More citations than any recorded answer has (12), far fewer than would cost noticeable time. */
const MAX_CITATIONS = 256
/** Bytes and list items that may be looked at for the citations of one answer: some tens of milliseconds. */
const MAX_WORK = 16 * 1024 * 1024

/** How much may still be looked at for the citations of one answer. Each source may be of the whole text. */
export class CitationBudget {
  private left = MAX_WORK

  /** False once there is nothing left: what is not placed by then is not cited. */
  spend(work: number): boolean {
    this.left -= work
    return this.left >= 0
  }
}

/** What the model repeats of published texts (`citationMetadata`), as far as it can be placed in `text`. */
export function recitationsOf(
  metadata: JsonObject,
  text: string,
  budget: CitationBudget,
): Citation[] {
  const bytes = Buffer.from(text)
  const citations: Citation[] = []
  // The Developer API has the first name, Vertex the second.
  for (const item of arrayOf(metadata.citationSources ?? metadata.citations)) {
    const source = sourceOf({ web: item })
    if (!budget.spend(1)) break
    const place = placeOf(objectOf(item), { text, bytes, budget })
    if (source === null || place === null) continue
    if (citations.length === MAX_CITATIONS) break
    citations.push({ ...source, ...place })
  }
  return citations
}

/** The citations that can be placed in `text`, in the order that Gemini lists them. */
export function citationsOf(
  grounding: JsonObject,
  text: string,
  budget: CitationBudget,
): Citation[] {
  const chunks = arrayOf(grounding.groundingChunks)
  if (!budget.spend(chunks.length)) return []
  const sources = chunks.map(sourceOf)
  const bytes = Buffer.from(text)
  const citations: Citation[] = []
  for (const support of arrayOf(grounding.groundingSupports)) {
    const { segment, groundingChunkIndices } = objectOf(support)
    if (!budget.spend(1)) return citations
    const place = placeOf(objectOf(segment), { text, bytes, budget })
    if (place === null) continue
    for (const at of arrayOf(groundingChunkIndices)) {
      if (!budget.spend(1)) return citations
      const source = typeof at === 'number' ? sources[at] : undefined
      if (source === undefined || source === null) continue
      if (citations.length === MAX_CITATIONS) return citations
      citations.push({ ...source, ...place })
    }
  }
  return citations
}

function sourceOf(chunk: unknown): Citation | null {
  const holder = objectOf(chunk)
  const source = objectOf(holder.web ?? holder.retrievedContext ?? holder.maps)
  const url = stringOf(source.uri)
  const title = stringOf(source.title)
  if (url === undefined || url === '') return null
  return title === undefined ? { url } : { url, title }
}

/** The text that is cited, also as UTF-8, and how much may still be looked at. */
interface Cited {
  readonly text: string
  readonly bytes: Buffer
  readonly budget: CitationBudget
}

/** Offsets count from the start of a part, which need not be the block's: the quoted text decides. */
function placeOf(segment: JsonObject, { text, bytes, budget }: Cited): Citation | null {
  const from = Math.max(0, Math.trunc(numberOf(segment.startIndex) ?? 0))
  const to = Math.max(from, Math.trunc(numberOf(segment.endIndex) ?? from))
  const quoted = stringOf(segment.text)
  if (!budget.spend(Math.min(to, bytes.length))) return null
  const slice = to <= bytes.length ? bytes.toString('utf8', from, to) : null
  if (slice !== null && to > from && (quoted === undefined || quoted === slice)) {
    const start = bytes.toString('utf8', 0, from).length
    return { citedText: slice, start, end: start + slice.length }
  }
  if (quoted === undefined || quoted === '' || !budget.spend(text.length)) return null
  const start = text.indexOf(quoted)
  return start < 0 ? null : { citedText: quoted, start, end: start + quoted.length }
}
