/**
 * Decodes grounding and citation metadata to citations of one text block. Converts offsets from UTF-8 bytes
 * to UTF-16 units. Sources without a URL are omitted.
 */
import type { Citation } from '../../../../chat/event.js'
import { arrayOf, numberOf, objectOf, stringOf, type JsonObject } from '../../../../chat/json.js'

/** Maximum number of citations per text. Recorded replies have at most 12. */
const MAX_CITATIONS = 256
/**
 * Maximum number of bytes and list items examined for the citations of one reply: some tens of milliseconds.
 */
const MAX_WORK = 16 * 1024 * 1024

/** The remaining work for the citations of one reply, since each source may refer to the whole text. */
export class CitationBudget {
  private remaining = MAX_WORK

  /** Spends work; false once the budget is exhausted, after which the remaining sources are omitted. */
  spend(work: number): boolean {
    this.remaining -= work
    return this.remaining >= 0
  }
}

/**
 * The passages of published texts that the model repeats (`citationMetadata`) and that are found in `text`.
 */
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
    const range = findSegment(objectOf(item), { text, bytes, budget })
    if (source === null || range === null) continue
    if (citations.length === MAX_CITATIONS) break
    citations.push({ ...source, ...range })
  }
  return citations
}

/** The grounding citations that are found in `text`, in Gemini's order. */
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
    const range = findSegment(objectOf(segment), { text, bytes, budget })
    if (range === null) continue
    for (const at of arrayOf(groundingChunkIndices)) {
      if (!budget.spend(1)) return citations
      const source = typeof at === 'number' ? sources[at] : undefined
      if (source === undefined || source === null) continue
      if (citations.length === MAX_CITATIONS) return citations
      citations.push({ ...source, ...range })
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

/** The cited text, also as UTF-8, and the remaining budget. */
interface CitedText {
  readonly text: string
  readonly bytes: Buffer
  readonly budget: CitationBudget
}

/**
 * Finds a segment in the text. Its offsets may count from the start of a part, so its quoted text takes
 * precedence.
 */
function findSegment(segment: JsonObject, { text, bytes, budget }: CitedText): Citation | null {
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
