/** The configuration, for administrators: generations, their changes, rollbacks, and the fleet. */
import * as z from 'zod'
import { count, numberText, timeMs, wanted } from './shared-types.js'

/** A stored generation. */
export const generationRecord = z.strictObject({
  generation: count,
  /** Hash of the configuration and its catalogue, hex. */
  hash: z.string(),
  /** Hash of the files at that time; differs from `hash` after a rollback. */
  filesHash: z.string(),
  atMs: timeMs,
  /** An OS user or the e-mail address of an administrator. */
  author: z.string(),
  reason: z.string(),
  origin: z.enum(['start', 'change', 'rollback']),
  /** The generation whose content a rollback restored; null for others. */
  contentOf: count.nullable(),
})

/** A gateway that shares the store. */
export const fleetMember = z.strictObject({
  id: z.string(),
  host: z.string(),
  generation: count,
  hash: z.string(),
})

/** `GET /configuration`. */
export const configurationReply = z.strictObject({
  inForce: count,
  /** Hash of the generation in force, hex. */
  hash: z.string(),
  /**
   * Why the configuration in force differs from the files: a rollback, or files that were invalid at the
   * start.
   */
  held: z.enum(['rollback', 'last_good']).nullable(),
  /** The problems of the files; null if they are valid. */
  problems: z.array(z.string()).nullable(),
  /** Settings whose new values need a restart. */
  waitingForRestart: z.array(z.string()),
  /** Newest first. */
  generations: z.array(generationRecord),
  /** Null without a Redis store, or while it does not reply. */
  fleet: z.array(fleetMember).nullable(),
  /** All values in force as JSON, secrets masked. */
  values: z.string(),
})

/** `GET /configuration/{id}`, compared with `from`, or with the generation before it. */
export const generationQuery = z.strictObject({ from: numberText(1, 1e15).optional() })
/** What a generation changed. */
export const generationReply = z.strictObject({
  record: generationRecord,
  /** Null for the oldest stored generation. */
  comparedWith: count.nullable(),
  changes: z.array(
    z.strictObject({
      path: z.string(),
      /** JSON; null: absent. */
      before: z.string().nullable(),
      /** JSON; null: removed. */
      after: z.string().nullable(),
    }),
  ),
})

/** `POST /configuration/{id}/rollback`: makes the content of that generation a new generation. */
export const rollbackBody = z.strictObject({ reason: wanted.optional() })
/** The new generation of the only gateway that has rolled back, as the message states. */
export const rollbackReply = z.strictObject({
  generation: count,
  /** Its name, `server.name`. */
  gateway: z.string(),
  message: z.string(),
})

/** A stored generation. */
export type GenerationRecord = z.output<typeof generationRecord>
/** A gateway that shares the store. */
export type FleetMember = z.output<typeof fleetMember>
/** The reply of `GET /configuration`. */
export type ConfigurationReply = z.output<typeof configurationReply>
/** The reply of `GET /configuration/{id}`. */
export type GenerationReply = z.output<typeof generationReply>
export type RollbackBody = z.input<typeof rollbackBody>
export type RollbackReply = z.output<typeof rollbackReply>
