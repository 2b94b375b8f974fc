/**
 * The values of dimensions (end users, runs) that requests of an account have had: which of them are
 * distinguished, what each has used, and which have ended. A value is dropped when it was unused for some
 * time.
 */
import type { AuditEntry } from './audit-trail.js'

/** Gateways write uses after this time at the latest. */
export const WRITTEN_AFTER_MS = 20

/** Tools of a value with counts of their own; further ones count as `OTHER_TOOL`. */
export const MAX_TOOLS = 32
export const OTHER_TOOL = 'other'

/** How often the model called a tool. */
export interface ToolCalls {
  /** 1 to 128 printable characters. */
  readonly name: string
  readonly calls: number
}

/** A value of a dimension; the same text of two accounts is two values. */
export interface ValueName {
  readonly accountId: string
  readonly dimension: string
  /** 1 to 128 printable characters. */
  readonly value: string
}

/** For how long values are kept, and how many of an account are distinguished. */
export interface ValueBounds {
  readonly maxValues: number
  /** Without requests, in ms. */
  readonly keepMs: number
}

/** Whether a value is distinguished, and when it was ended. */
export interface ValueState {
  /** False: there is no place for another value, and it counts as `other`. */
  readonly hasPlace: boolean
  /** Null: it has not. */
  readonly endedAtMs: number | null
}

/** What requests of a value used, in addition to what was counted before. */
export interface ValueUse extends ValueName, Pick<ValueBounds, 'keepMs'> {
  /** Admitted requests. */
  readonly requests: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costNanoUsd: number
  /** Of runs; each tool once. Absent: none. */
  readonly tools?: readonly ToolCalls[]
  readonly atMs: number
}

/** What is known of a value; tools by their names. */
export interface ValueRecord extends Pick<
  ValueUse,
  'requests' | 'inputTokens' | 'outputTokens' | 'costNanoUsd'
> {
  readonly tools: readonly ToolCalls[]
  /** Null: no request was admitted. */
  readonly firstAtMs: number | null
  readonly lastAtMs: number | null
  readonly endedAtMs: number | null
}

/** A value with what is known of it, and the time until which it is kept without requests. */
export interface StoredValue extends ValueName, ValueRecord {
  readonly untilMs: number
}

/** The values of a store. Methods fail as those of `Store` do. */
export interface DimensionValues {
  /** Gives the value a place if it has none and there is one left; one atomic step. */
  claim(name: ValueName, bounds: ValueBounds, nowMs: number): Promise<ValueState>
  /** Adds uses. Counts need not survive a crash of the machine. */
  add(uses: readonly ValueUse[]): Promise<void>
  /** Null: it is unknown, or was dropped. */
  find(name: ValueName, nowMs: number): Promise<ValueRecord | null>
  /**
   * Ends the value, whether it is known or not; the record afterwards. Listeners of `Store.subscribe` get
   * `valueDigest` of it. Durable before it resolves. The audit entries are stored with it, unless it had
   * ended before.
   */
  end(
    name: ValueName,
    keepMs: number,
    nowMs: number,
    auditEntries?: readonly AuditEntry[],
  ): Promise<ValueRecord>
  /** Every value, in batches, also those that are no longer kept and were not removed yet. */
  all(): AsyncIterable<readonly StoredValue[]>
  /** Removes values that are no longer kept; returns their number. Redis does so by itself and returns 0. */
  sweep(nowMs: number): Promise<number>
}

/** The tools with further calls, by name. */
export function addedTools(tools: readonly ToolCalls[], more: readonly ToolCalls[]): ToolCalls[] {
  const counts = new Map(tools.map(({ name, calls }) => [name, calls]))
  for (const { name, calls } of more) {
    const own = counts.has(name) || counts.size < MAX_TOOLS ? name : OTHER_TOOL
    counts.set(own, (counts.get(own) ?? 0) + calls)
  }
  return byName(counts)
}

/** In the order of the names, the same in every engine. */
export function byName(counts: Iterable<readonly [name: string, calls: number]>): ToolCalls[] {
  const tools = Array.from(counts, ([name, calls]) => ({ name, calls }))
  return tools.sort((one, other) => (one.name < other.name ? -1 : 1))
}
