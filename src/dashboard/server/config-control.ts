/**
 * What a process asks of the one that reads the configuration: how the gateway stands, which generations there are, and
 * a rollback. Questions and answers travel between processes as JSON.
 */
import type { SettingChange } from '../../config/config.js'
import type { GenerationRecord } from '../../config/generations/history.js'
import type { Override } from '../../config/generations/reload-outcome.js'

/** The generations, and how the one in force relates to the files. */
export interface GenerationList {
  readonly inForce: number
  /** Why the content in force is not that of the files; null if it is, or if only a later change was refused. */
  readonly held: Override | null
  /** What is wrong with the files; null if nothing is. */
  readonly problems: readonly string[] | null
  readonly waitingForRestart: readonly string[]
  /** Newest first. */
  readonly generations: readonly GenerationRecord[]
}

/** One generation, compared with another. */
export interface GenerationDetail {
  readonly record: GenerationRecord
  /** Null for the oldest that is kept. */
  readonly comparedWith: number | null
  /** What differs from `comparedWith`, secrets masked. */
  readonly changes: readonly SettingChange[]
}

/** A rollback that somebody wants. */
export interface RollbackRequest {
  readonly generation: number
  readonly author: string
  readonly reason: string
}

/** What came of it. */
export type RollbackResult =
  | { readonly result: 'applied'; readonly generation: number }
  /** `unknown`: there is no such generation. `refused`: it cannot be put in force; the message has the reason. */
  | { readonly result: 'unknown' | 'refused'; readonly message: string }

/** Asks the process that reads the configuration. Each answer is null if that process does not answer in time. */
export interface ConfigControl {
  list(): Promise<GenerationList | null>
  /** Compared with `from`, or with the one before it. Null also if there is no such generation. */
  show(generation: number, from: number | null): Promise<GenerationDetail | null>
  rollBack(wish: RollbackRequest): Promise<RollbackResult | null>
}

/** A request of one process to another. */
export type ControlRequest =
  | { readonly type: 'gatewayStatus' }
  | { readonly type: 'generations' }
  | { readonly type: 'generation'; readonly generation: number; readonly from: number | null }
  | ({ readonly type: 'rollback' } & RollbackRequest)

/** A desk that sends its questions to another process of the same program; null is no answer. */
export function remoteConfigControl(
  ask: (request: ControlRequest) => Promise<unknown>,
): ConfigControl {
  return {
    list: async () => (await ask({ type: 'generations' })) as GenerationList | null,
    show: async (generation, from) =>
      (await ask({ type: 'generation', generation, from })) as GenerationDetail | null,
    rollBack: async (wish) => (await ask({ type: 'rollback', ...wish })) as RollbackResult | null,
  }
}
