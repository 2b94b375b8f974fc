/** Outcomes of reloads and rollbacks, and the initial state of a configuration source. */
import type { Snapshot } from '../config.js'
import type { ConfigSources, Loaded } from '../load-config.js'
import type { ConfigProblem } from '../problem.js'
import type { GenerationRecord, History } from './history.js'

/** The outcome of a check of the files. */
export type ReloadOutcome =
  | { readonly result: 'applied'; readonly snapshot: Snapshot }
  | { readonly result: 'unchanged'; readonly snapshot: Snapshot }
  | { readonly result: 'refused'; readonly errors: readonly ConfigProblem[] }

/** A change that listeners are called for. */
export type ConfigChange = Exclude<ReloadOutcome, { result: 'unchanged' }>

/**
 * The outcome of a rollback. `unknown`: no such generation. `unreadable`: its content is lost. `current`: it
 * is in force.
 */
export type RollbackOutcome =
  ConfigChange | { readonly result: 'unknown' | 'unreadable' | 'current' }

/** Why the generation in force does not have the content of the files. */
export type Override = 'rollback' | 'last_good'

/** The initial state of a source; `open-config.ts` finds it. */
export interface InitialState {
  readonly loaded: Loaded
  /** The files, valid or not. */
  readonly files: ConfigSources
  readonly errors: readonly ConfigProblem[] | null
  readonly override: Override | null
  readonly record: GenerationRecord
  readonly history: History
}
