/**
 * The keys of the ledger and of what happens when a client leaves: types, bounds, defaults, words.
 * Part of `schema.ts`; reads no file.
 */
import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import type { AfterDisconnectConfig, LedgerConfig } from '../config.js'

const whole = (min: number, max: number) => z.int().min(min).max(max)

/** `ledger:` */
export const ledgerSchema = z.strictObject({
  keep_days: whole(1, 3_650)
    .default(30)
    .describe('How long each request’s row is kept; `usage export` has what is kept.'),
  hours_days: whole(1, 3_650).default(90).describe('How long sums of an hour are kept.'),
  days_days: whole(1, 36_500).default(1_100).describe('How long sums of a day are kept.'),
  spool: z
    .string()
    .min(1)
    .max(4_096)
    .optional()
    .describe(
      'The folder where rows wait while the store does not answer; of one machine, for all its processes. A relative folder starts at this file. Left out: `spool` beside the file of a `sqlite:` store, else beside this file.',
    ),
  spool_max_bytes: whole(65_536, 68_719_476_736)
    .default(268_435_456)
    .describe('Most bytes that rows of one process may have there; a row has about 700.'),
  error_messages: z
    .boolean()
    .default(true)
    .describe(
      'Whether an entry keeps the message that a refused or failed request was answered with. A provider may quote the prompt in one; of those, 200 characters are kept.',
    ),
  when_full: z
    .enum(['serve', 'refuse'])
    .default('refuse')
    .describe(
      'While the store does not answer and the spool takes no more. `refuse`: requests that cost money are answered 503, and rows of those that ran are held in memory until there is room. `serve`: requests are answered, and rows that are lost are counted and logged.',
    ),
})

/** `after_disconnect:` */
export const afterDisconnectSchema = z.strictObject({
  max_streams: whole(0, 100_000)
    .default(100)
    .describe('Most answers of one process that are read on; beyond them `cancel` applies.'),
  max_ms: whole(1, 3_600_000).default(120_000).describe('How long one is read on at most.'),
})

/** `on_disconnect:`, for all upstreams or one. */
export const onDisconnectSchema = z.enum(['cancel', 'drain', 'drain_until_usage'])

/** In the code's own spelling; `store` is the resolved setting of that name. */
export function ledgerOf(
  values: z.output<typeof ledgerSchema>,
  folder: string,
  store: string,
): LedgerConfig {
  const beside = store.startsWith('sqlite:') ? dirname(store.slice('sqlite:'.length)) : folder
  return {
    keepDays: values.keep_days,
    hoursDays: values.hours_days,
    daysDays: values.days_days,
    spool: values.spool === undefined ? resolve(beside, 'spool') : resolve(folder, values.spool),
    spoolMaxBytes: values.spool_max_bytes,
    errorMessages: values.error_messages,
    whenFull: values.when_full,
  }
}

/** In the code's own spelling. */
export function afterDisconnectOf(
  values: z.output<typeof afterDisconnectSchema>,
): AfterDisconnectConfig {
  return { maxStreams: values.max_streams, maxMs: values.max_ms }
}
