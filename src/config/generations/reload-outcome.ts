/** What comes of looks at the files and of rollbacks, and what a configuration source starts with. */
import type { Snapshot } from '../config.js'
import type { ConfigSources, Loaded } from '../load.js'
import type { ConfigProblem } from '../problem.js'
import type { GenerationRecord, History } from './history.js'

/** What a look at the files led to. */
export type ReloadOutcome =
  | { readonly result: 'applied'; readonly snapshot: Snapshot }
  | { readonly result: 'unchanged'; readonly snapshot: Snapshot }
  | { readonly result: 'refused'; readonly errors: readonly ConfigProblem[] }

/** A change that listeners are called for. */
export type ConfigChange = Exclude<ReloadOutcome, { result: 'unchanged' }>

/** What a rollback led to: `unknown`: no such generation; `unreadable`: its content is lost; `current`: it is in force. */
export type RollbackOutcome =
  ConfigChange | { readonly result: 'unknown' | 'unreadable' | 'current' }

/** Why the content in force is not that of the files. */
export type Override = 'rollback' | 'last_good'

/** What a source starts with; `open-config.ts` finds it. */
export interface InitialState {
  readonly loaded: Loaded
  /** The files as they are, good or bad. */
  readonly seen: ConfigSources
  readonly errors: readonly ConfigProblem[] | null
  readonly held: Override | null
  readonly record: GenerationRecord
  readonly history: History
}
