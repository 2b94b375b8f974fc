/**
 * The units and tokens of tasks that follow from the request: the maximum before it is sent, and the charge
 * if the upstream does not count what its price needs.
 */
import { madeAs, type Task } from '../formats/chat/task.js'
import type { UnitCounts, Usage } from '../formats/chat/usage.js'
import { chargesInput, chargesOutput, chargesTokens, type Price } from './price.js'
import { chargedUnits } from './unit-prices.js'

/** Cohere's search: a query with up to this many documents, each of at most 500 tokens with the query. */
const DOCUMENTS_PER_SEARCH = 100
const TOKENS_PER_DOCUMENT = 500

/** What a task may use at most beside tokens. */
type TaskUse = Pick<Usage, 'pictures'> & { readonly units: UnitCounts }

/**
 * The units of a task, at most, without sound of unknown length: no vocabulary has more tokens than a text
 * has bytes.
 *
 * Source: Cohere, "How does Cohere's pricing work", read 2026-11-29.
 */
export function unitsOf(task: Task): TaskUse {
  switch (task.kind) {
    case 'rerank': {
      const queryBytes = Buffer.byteLength(task.query)
      let parts = 0
      for (const { text } of task.documents) {
        parts += Math.max(1, Math.ceil((queryBytes + Buffer.byteLength(text)) / TOKENS_PER_DOCUMENT))
      }
      return { units: { document: task.documents.length, search: Math.ceil(parts / DOCUMENTS_PER_SEARCH) } }
    }
    case 'moderations':
      return { units: {} }
    case 'images':
    case 'image_edits':
      return {
        units: { image: task.count },
        pictures: madeAs(task, { size: undefined, quality: undefined }),
      }
    case 'transcriptions':
    case 'translations':
      return { units: task.length.most === null ? {} : { audio_second: task.length.most } }
    case 'speech':
      return { units: { character: codePoints(task.input) } }
    default:
      return task satisfies never
  }
}

/** The number of Unicode code points. */
function codePoints(text: string): number {
  let count = 0
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    // The second half of a pair belongs to the first.
    const isSecond = unit >= 0xdc00 && unit <= 0xdfff && at > 0 && isFirstHalf(text.charCodeAt(at - 1))
    if (!isSecond) count += 1
  }
  return count
}

function isFirstHalf(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}

/** What the upstream reported, and the request that it belongs to. */
interface ReportedTask {
  readonly reported: Usage
  readonly task: Task
  /** Null if it is unknown. */
  readonly price: Price | null
  /** An estimate of the prompt tokens. */
  readonly inputTokens: () => number
}

/** The usage of a reply, and whether a part of it is an estimate. */
interface CompletedUsage {
  readonly usage: Usage
  readonly isEstimated: boolean
}

/**
 * The usage of a reply, with what its price charges and the upstream does not count from the request; null if
 * that does not follow from the request, so that the reply costs what was reserved for it.
 */
export function completedUsage(of: ReportedTask): CompletedUsage | null {
  const { kind } = of.task
  return kind === 'rerank' || kind === 'moderations' ? completedRanking(of) : completedMedia(of)
}

function completedRanking({ reported, task, price, inputTokens }: ReportedTask): CompletedUsage {
  const { units: known } = unitsOf(task)
  const counted = reported.units ?? {}
  const units: { -readonly [Unit in keyof UnitCounts]: UnitCounts[Unit] } = { ...counted }
  if (known.document !== undefined) units.document = known.document
  let isEstimated = false
  for (const unit of price === null ? [] : chargedUnits(price.byUnit, task)) {
    // A reply that counts none has counted nothing: each request has at least one.
    if ((counted[unit] ?? 0) > 0) continue
    const count = known[unit]
    if (count === undefined) continue
    units[unit] = count
    isEstimated = true
  }
  const usage: Usage = { ...reported }
  if (Object.keys(units).length > 0) usage.units = units
  // Tokens are estimated if they cost something, and if there is no other count.
  const isCounted = isEstimated || Object.keys(counted).length > 0
  if (reported.input === undefined && (!isCounted || (price !== null && chargesInput(price)))) {
    usage.input = inputTokens()
    isEstimated = true
  }
  if (usage.input !== undefined) usage.output ??= 0
  return { usage, isEstimated }
}

/** Pictures and sound: their tokens do not follow from the request, and the characters of a text do. */
function completedMedia({ reported, task, price, ...of }: ReportedTask): CompletedUsage | null {
  const { character, audio_second: seconds } = unitsOf(task).units
  const isTranscript = task.kind === 'transcriptions' || task.kind === 'translations'
  const charged = price === null ? [] : chargedUnits(price.byUnit, task)
  const hasLength = reported.units?.audio_second !== undefined
  // Tokens are no count for a price by second.
  const isCounted = hasLength || (reported.input !== undefined && !charged.includes('audio_second'))
  if (isTranscript && task.length.isExact && seconds !== undefined && !isCounted) {
    const units = { ...reported.units, audio_second: seconds }
    const measured = completedMedia({ reported: { ...reported, units }, task, price, ...of })
    return measured === null ? null : { ...measured, isEstimated: true }
  }
  const units = { ...reported.units, ...(character !== undefined && { character }) }
  const usage: Usage = { ...reported, units }
  const { input, output } = reported
  const hasTokens = input !== undefined || output !== undefined
  if (price === null) return { usage, isEstimated: false }
  if (charged.some((unit) => units[unit] === undefined)) return null
  if (hasTokens && output === undefined && chargesOutput(price)) return null
  if (hasTokens || !chargesTokens(price)) return { usage, isEstimated: false }
  return charged.length === 0 ? null : { usage, isEstimated: true }
}
