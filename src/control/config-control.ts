/**
 * Requests of a worker to the process that reads the configuration: its state, its generations, and
 * rollbacks. Requests and results travel between processes as JSON.
 */
import type { SettingChange } from '../config/config.js'
import type { JsonObject } from '../base/json.js'
import type { GenerationRecord } from '../config/generations/history.js'
import type { Override } from '../config/generations/config-source.js'

/** The generations, and how the one in force relates to the files. */
export interface GenerationList {
  /** The path of the file. */
  readonly file: string
  readonly inForce: number
  /** The generation of the settings that need a restart. */
  readonly startedGeneration: number
  /**
   * Why the configuration in force differs from the files; null if it does not, or if only a later change was
   * refused.
   */
  readonly held: Override | null
  /** The problems of the files; null if they are valid. */
  readonly problems: readonly string[] | null
  readonly waitingForRestart: readonly string[]
  /** Newest first. */
  readonly generations: readonly GenerationRecord[]
}

/** One generation, compared with another. */
interface GenerationDetail {
  readonly record: GenerationRecord
  readonly isInForce: boolean
  /** All values, secrets masked. */
  readonly values: JsonObject
  /** Null for the oldest generation that is kept. */
  readonly comparedWith: number | null
  /** The settings that differ from `comparedWith`, secrets masked. */
  readonly changes: readonly SettingChange[]
}

/** A request to put the content of an earlier generation in force. */
export interface RollbackRequest {
  readonly generation: number
  readonly author: string
  readonly reason: string
  /** Whether the caller writes the entry of the audit trail; otherwise the gateway does. */
  readonly isRecorded: boolean
}

export type RollbackResult =
  | {
      readonly result: 'applied'
      readonly generation: number
      /** The name of the only gateway that has rolled back. */
      readonly gateway: string
      /** The settings that it changed, secrets masked. */
      readonly changes: readonly SettingChange[]
      /** For the operator: which gateways have not. */
      readonly message: string
    }
  /**
   * `unknown`: there is no such generation. `refused`: it cannot be put in force; the message has the reason.
   */
  | { readonly result: 'unknown' | 'refused'; readonly message: string }

/**
 * Access to the process that reads the configuration. Each reply is null if that process does not reply in
 * time.
 */
export interface ConfigControl {
  list(): Promise<GenerationList | null>
  /** Compares with `from`, or with the generation before it. Also null if there is no such generation. */
  show(generation: number, from: number | null): Promise<GenerationDetail | null>
  rollBack(wish: RollbackRequest): Promise<RollbackResult | null>
  /** Compares the text of a file with the configuration in force, as `sluice plan` does. */
  plan(text: string): Promise<PlanResult | null>
}

/** The comparison as `sluice plan --json` prints it, or the problems of the file. */
export type PlanResult = { readonly plan: JsonObject } | { readonly problems: readonly string[] }

/** A request from one process to another. */
export type ControlRequest =
  | { readonly type: 'gatewayStatus' }
  | { readonly type: 'generations' }
  | { readonly type: 'generation'; readonly generation: number; readonly from: number | null }
  | ({ readonly type: 'rollback' } & RollbackRequest)
  | { readonly type: 'plan'; readonly text: string }

/** Sends each request to another process of the same program; `ask` resolves to null if it does not reply. */
export function remoteConfigControl(ask: (request: ControlRequest) => Promise<unknown>): ConfigControl {
  return {
    list: async () => (await ask({ type: 'generations' })) as GenerationList | null,
    show: async (generation, from) =>
      (await ask({ type: 'generation', generation, from })) as GenerationDetail | null,
    rollBack: async (wish) => (await ask({ type: 'rollback', ...wish })) as RollbackResult | null,
    plan: async (text) => (await ask({ type: 'plan', text })) as PlanResult | null,
  }
}
