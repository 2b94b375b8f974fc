/**
 * An entry in the parts in which Redis stores it: texts that many entries of an account have in common,
 * which a dictionary has once, and what is the entry's own. Neither has the account and the request id,
 * which are in the names of the key and of the entry.
 */
import { createHash } from 'node:crypto'
import type { LedgerEntry } from '../../ledger/entry.js'
import { entryOf, packed, unpacked, type EntryField } from './entry-text.js'
import { parseJson } from './parse-record.js'

/** The fields of each shared text, in its order; a new field goes to the end of the first list. */
const SHARED = [
  [
    ...(['keyId', 'modelAsked', 'modelAnswered', 'model', 'upstream', 'dialect', 'attempts'] as const),
    ...(['stream', 'status', 'outcome', 'finish', 'source', 'losses', 'generation', 'ingress'] as const),
    ...(['limit', 'upstreamStatus', 'attempted', 'priceVersion', 'gateway', 'generationHash'] as const),
    ...(['cacheHit', 'accountPath', 'identity', 'guardrails', 'recorded', 'program', 'user'] as const),
  ],
  ['labels'],
  ['errorMessage'],
] as const satisfies readonly (readonly EntryField[])[]
/** The fields of the own text, in its order; a new one goes to the end. */
const OWN = [
  ...(['durationMs', 'usage', 'costNanoUsd', 'tokensAfterDisconnect', 'hops', 'attemptMs'] as const),
  ...(['upstreamRequestId', 'clientRequestId', 'shadowOf', 'retryAfterSeconds', 'savedNanoUsd'] as const),
  // The time is the difference to that in the name.
  ...(['cacheMarks', 'cacheMarksSavedNanoUsd', 'atMs', 'dimensions', 'units', 'batch'] as const),
] as const satisfies readonly EntryField[]
/** The number of shared texts. */
export const SHARED_TEXTS = SHARED.length

/** An entry in parts. */
interface PackedEntry {
  /** Each empty, if the entry has none of its fields. */
  readonly shared: readonly string[]
  readonly own: string
}

/** What the names of an entry say. */
interface EntryIdentity {
  readonly accountId: string
  readonly requestId: string
  /** The time in the name. */
  readonly nameMs: number
}

/** No part has a line break or a NUL, and no shared text a tab. `nameMs` is the time in the name. */
export function packEntry(entry: LedgerEntry, nameMs: number): PackedEntry {
  const shared = SHARED.map((fields) => {
    const values: unknown[] = []
    let length = 0
    for (const name of fields) {
      const value = packed(name, entry)
      values.push(value)
      if (value !== null && value !== undefined) length = values.length
    }
    if (length === 0) return ''
    values.length = length
    return JSON.stringify(values)
  })
  let own = ''
  let isLast = true
  for (let at = OWN.length - 1; at >= 0; at -= 1) {
    const name = OWN[at] ?? 'durationMs'
    const value = name === 'atMs' ? entry.atMs - nameMs || null : packed(name, entry)
    const text = ownText(value)
    if (isLast && text === '') continue
    own = isLast ? text : `${text}\t${own}`
    isLast = false
  }
  return { shared, own }
}

/** Throws an Error naming the field that is damaged, never its value. */
export function unpackEntry(
  { shared, own }: PackedEntry,
  { accountId, requestId, nameMs }: EntryIdentity,
): LedgerEntry {
  const members: Partial<Record<EntryField, unknown>> = { accountId, requestId }
  for (const [part, fields] of SHARED.entries()) {
    const text = shared[part] ?? ''
    const values: unknown = text === '' ? [] : parseJson(text)
    if (!Array.isArray(values)) throw new Error('not a JSON array')
    for (const [at, name] of fields.entries()) members[name] = unpacked(name, values[at] ?? null)
  }
  const texts = own.split('\t')
  for (const [at, name] of OWN.entries()) members[name] = unpacked(name, ownValue(name, texts[at] ?? ''))
  members.atMs = nameMs + Number(members.atMs ?? 0)
  return entryOf(members)
}

/** Fields of the own text that are texts and lists; the others are numbers. */
const TEXTS: ReadonlySet<EntryField> = new Set([
  ...(['upstreamRequestId', 'clientRequestId', 'shadowOf', 'dimensions', 'units', 'batch'] as const),
])
const LISTS: ReadonlySet<EntryField> = new Set(['usage', 'hops', 'attemptMs'])
/** Texts that JSON does not escape. */
const PLAIN = /^[\w.:/ -]+$/
/** An empty text or list, since nothing is a value that is not known. */
const EMPTY = '"'

/** The text of a list of numbers, null for unknown ones. */
export function numbersText(numbers: readonly (number | null)[]): string {
  return ownText(numbers)
}

/** The numbers in a text of `numbersText`; one that is damaged is NaN. */
export function numbersIn(text: string): (number | null)[] {
  if (text === EMPTY) return []
  return text.split(',').map((each) => (each === '' ? null : Number(numberIn(each))))
}

function ownText(value: unknown): string {
  if (typeof value === 'number') return numberText(value)
  if (typeof value === 'string')
    return PLAIN.test(value) ? value : value === '' ? EMPTY : JSON.stringify(value).slice(1, -1)
  if (!Array.isArray(value)) return ''
  if (value.length === 0) return EMPTY
  let text = ''
  for (let at = 0; at < value.length; at += 1)
    text += at === 0 ? ownText(value[at]) : `,${ownText(value[at])}`
  return text
}

function ownValue(name: EntryField, text: string): unknown {
  if (text === '') return LISTS.has(name) && name !== 'attemptMs' ? [] : null
  if (TEXTS.has(name)) return text === EMPTY ? '' : parseJson(`"${text}"`)
  if (!LISTS.has(name)) return numberIn(text)
  return numbersIn(text)
}

/** Whole numbers to the base 36, which has two thirds of the digits; others as JSON after a sign. */
function numberText(value: number): string {
  return Number.isSafeInteger(value) ? value.toString(36) : `=${JSON.stringify(value)}`
}

function numberIn(text: string): unknown {
  return text.startsWith('=') ? parseJson(text.slice(1)) : Number.parseInt(text, 36)
}

/** Digests of texts that entries share, the last ones. */
const digests = new Map<string, string>()
const MOST_DIGESTS = 4_000

/** The name of a shared text in the dictionary: 48 bits. The store compares the text, too. */
export function digestOf(text: string): string {
  const known = digests.get(text)
  if (known !== undefined) return known
  if (digests.size >= MOST_DIGESTS) digests.clear()
  const digest = createHash('sha1').update(text).digest('base64url').slice(0, 8)
  digests.set(text, digest)
  return digest
}
