/**
 * The units and tokens of tasks that follow from the request: the maximum before it is sent, and the charge
 * if the upstream does not count what its price needs.
 */
import type { Task } from '../formats/chat/task.js'
import type { UnitCounts, Usage } from '../formats/chat/usage.js'
import { chargedUnits, chargesInput, type Price } from './price.js'

/** Cohere's search: a query with up to this many documents, each of at most 500 tokens with the query. */
const DOCUMENTS_PER_SEARCH = 100
const TOKENS_PER_DOCUMENT = 500

/**
 * The units of a task, at most: no vocabulary has more tokens than a text has bytes.
 *
 * Source: Cohere, "How does Cohere's pricing work", read 2026-11-29.
 */
export function unitsOf(task: Task): UnitCounts {
  if (task.kind !== 'rerank') return {}
  const queryBytes = Buffer.byteLength(task.query)
  let parts = 0
  for (const { text } of task.documents) {
    parts += Math.max(1, Math.ceil((queryBytes + Buffer.byteLength(text)) / TOKENS_PER_DOCUMENT))
  }
  return { document: task.documents.length, search: Math.ceil(parts / DOCUMENTS_PER_SEARCH) }
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

/**
 * The usage of a reply, with what its price charges and the upstream does not count from the request.
 * `isEstimated`: something is.
 */
export function completedUsage({ reported, task, price, inputTokens }: ReportedTask): {
  readonly usage: Usage
  readonly isEstimated: boolean
} {
  const known = unitsOf(task)
  const counted = reported.units ?? {}
  const units: { -readonly [Unit in keyof UnitCounts]: UnitCounts[Unit] } = { ...counted }
  if (known.document !== undefined) units.document = known.document
  let isEstimated = false
  for (const unit of price === null ? [] : chargedUnits(price, task)) {
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
  if (usage.input !== undefined) usage.output = 0
  return { usage, isEstimated }
}
