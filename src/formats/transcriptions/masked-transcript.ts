/**
 * The texts of a transcript as guardrails judge them, and the transcript with masked texts: segments and
 * words are parts of the judged text by their places in it. Pure.
 */

/** A part of a list after a mask, made of the parts `first` to `last`. */
export interface MaskedPart {
  readonly first: number
  readonly last: number
  readonly text: string
}

/** From where to where in a text. */
interface Place {
  readonly start: number
  readonly end: number
}

/** A place in a text, and the text that replaces it. */
interface Change extends Place {
  readonly text: string
}

/** A list of segments or words with their places in one of the judged texts. */
interface PlacedList {
  readonly parts: readonly string[]
  /** The index of the judged text. */
  readonly of: number
  readonly places: readonly Place[]
}

/** A transcript as a whole text, and as lists of its parts. */
export class JudgedTranscript {
  /** The texts that are judged: the whole, and the parts of each list that the whole does not have. */
  readonly texts: readonly string[]
  private readonly lists: readonly PlacedList[]

  constructor(text: string, lists: readonly (readonly string[])[]) {
    const texts = [text]
    this.lists = lists.map((parts) => {
      const places = placesIn(text, parts)
      if (places !== null) return { parts, of: 0, places }
      const own = parts.map((part) => part.trim()).join(' ')
      texts.push(own)
      return { parts, of: texts.length - 1, places: placesIn(own, parts) ?? [] }
    })
    this.texts = texts
  }

  /** The lists with the texts after the verdicts, which are in the order of `texts`. */
  masked(judged: readonly string[]): MaskedPart[][] {
    const changes = this.texts.map((before, at) => changesBetween(before, judged[at] ?? ''))
    return this.lists.map((list) => maskedList(list, this.texts[list.of] ?? '', changes[list.of] ?? []))
  }
}

/** The places of the parts if the text consists of them in their order, apart from punctuation; else null. */
function placesIn(text: string, parts: readonly string[]): Place[] | null {
  const places: Place[] = []
  let end = 0
  for (const part of parts) {
    const own = part.trim()
    const start = text.indexOf(own, end)
    if (start < 0 || LETTER.test(text.slice(end, start))) return null
    end = start + own.length
    places.push({ start, end })
  }
  return LETTER.test(text.slice(end)) && parts.length > 0 ? null : places
}

const LETTER = /[\p{L}\p{N}]/u

/** A mask of several parts is in the first of them; the others are joined to it. */
function maskedList({ parts, places }: PlacedList, before: string, changes: readonly Change[]): MaskedPart[] {
  const masked: MaskedPart[] = []
  let next = 0
  let written = 0
  places.forEach(({ start, end }, at) => {
    while ((changes[next]?.end ?? Infinity) <= start) next += 1
    let text = ''
    let from = start
    for (let each = next; each < changes.length; each += 1) {
      const change = changes[each]
      if (change === undefined || change.start >= end) break
      text += before.slice(from, Math.max(from, change.start))
      if (each >= written) text += change.text
      written = Math.max(written, each + 1)
      from = Math.min(end, Math.max(from, change.end))
    }
    text += before.slice(from, end)
    const last = masked.at(-1)
    if (text === '' && end > start && last !== undefined) masked[masked.length - 1] = { ...last, last: at }
    else masked.push({ first: at, last: at, text: padded(parts[at] ?? '', text) })
  })
  return masked
}

/** Vendors write segments with a space before them. */
function padded(part: string, text: string): string {
  return part.startsWith(' ') ? ` ${text}` : text
}

/** A word with the space after it. */
const TOKEN = /\S+\s*|\s+/g
/** Words that are skipped on both sides together until the texts agree again. */
const MAX_SKIPPED = 256

/**
 * The differences of the texts, in order. All other characters are those of both texts, so that the parts
 * of the result never have more of the first text than the second one has.
 */
function changesBetween(before: string, after: string): Change[] {
  if (before === after) return []
  const left = before.match(TOKEN) ?? []
  const right = after.match(TOKEN) ?? []
  const changes: Change[] = []
  let [i, j, at] = [0, 0, 0]
  while (i < left.length || j < right.length) {
    const token = left[i]
    if (token !== undefined && token === right[j]) {
      at += token.length
      i += 1
      j += 1
      continue
    }
    const [skipped, added] = skippedAt(left, right, { i, j })
    const from = left.slice(i, i + skipped).join('')
    changes.push(trimmed({ start: at, from, to: right.slice(j, j + added).join('') }))
    at += from.length
    i += skipped
    j += added
  }
  return changes
}

/** How many words of each side are skipped until the next two agree, or until both ends. */
function skippedAt(
  left: readonly string[],
  right: readonly string[],
  { i, j }: { readonly i: number; readonly j: number },
): [left: number, right: number] {
  const rest: [number, number] = [left.length - i, right.length - j]
  for (let both = 1; both <= MAX_SKIPPED; both += 1) {
    for (let skipped = Math.min(both, rest[0]); skipped >= Math.max(0, both - rest[1]); skipped -= 1) {
      const [l, r] = [i + skipped, j + both - skipped]
      if (left[l] === right[r] && left[l + 1] === right[r + 1]) return [skipped, both - skipped]
    }
  }
  return rest
}

/** Without the characters with which both texts begin and end. */
function trimmed({ start, from, to }: { start: number; from: string; to: string }): Change {
  const most = Math.min(from.length, to.length)
  let head = 0
  while (head < most && from[head] === to[head]) head += 1
  let tail = 0
  while (tail < most - head && from[from.length - 1 - tail] === to[to.length - 1 - tail]) tail += 1
  return { start: start + head, end: start + from.length - tail, text: to.slice(head, to.length - tail) }
}
