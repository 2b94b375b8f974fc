/** The keys of the ledger and of the handling of client disconnects. Part of `config-file-schema.ts`. */
import { dirname, resolve } from 'node:path'
import * as z from 'zod'
import { section } from './section.js'
import { share, whole } from './value-types.js'

/** A share in percent, or a size. */
const MEMORY =
  /^((?:100|\d{1,2})(?:\.\d{1,6})?(?=\s?%)|\d{1,15}(?:\.\d{1,6})?(?=\s?[KMGT]))\s?(%|[KMGT]i?B)$/i
const BAD_MEMORY = 'must be a share such as 50%, or a size such as 2GB'
const UNITS = ['KB', 'MB', 'GB', 'TB']

/** `ledger:` */
export const ledgerSchema = z.strictObject({
  keep_days: whole(1, 3_650)
    .default(30)
    .describe('How long the ledger entry of a request is kept, also for `usage export`.'),
  hours_days: whole(1, 3_650).default(90).describe('How long hourly sums are kept.'),
  days_days: whole(1, 36_500).default(1_100).describe('How long daily sums are kept.'),
  max_memory: z
    .union([
      share,
      whole(1_048_576, Number.MAX_SAFE_INTEGER),
      z.string().regex(MEMORY, { error: BAD_MEMORY }),
    ])
    .default(0.5)
    .describe(
      'How much of the memory of Redis entries may use: a share of its `maxmemory` (0.5, `50%`), or a size (`2GB`, bytes). Before it is used up the oldest entries leave, earlier than `keep_days`; their sums stay. Other stores ignore it.',
    ),
  spool: z
    .string()
    .min(1)
    .max(4_096)
    .optional()
    .describe(
      'The folder of ledger entries that wait while the store is unavailable; shared by all processes of one machine. A relative folder starts at this file. Default: `spool` beside the file of a `sqlite:` store, else beside this file.',
    ),
  spool_max_bytes: whole(65_536, 68_719_476_736)
    .default(268_435_456)
    .describe("Maximum size of one process's entries in it; an entry has about 700 bytes."),
  error_messages: z
    .boolean()
    .default(true)
    .describe(
      "Whether an entry contains the error message that the client received, and the log line the upstream's. Of a provider's message, which may quote the prompt, only 200 characters are kept.",
    ),
  when_full: z
    .enum(['serve', 'refuse'])
    .default('refuse')
    .describe(
      'What happens while the store is unavailable and the spool is full. `refuse`: requests that cost money are refused with 503, and entries of running requests stay in memory until there is room. `serve`: requests are served, and lost entries are counted and logged.',
    ),
})

/** `after_disconnect:` */
export const afterDisconnectSchema = z.strictObject({
  max_streams: whole(0, 100_000)
    .default(100)
    .describe('Maximum replies of one process that are read after a disconnect; further ones are cancelled.'),
  max_streams_per_key: whole(0, 100_000)
    .default(10)
    .describe(
      'Maximum replies of one key among them, so that one key cannot take all of them. A request whose reply is not read is charged with the maximum that it may have cost.',
    ),
  max_ms: whole(1, 3_600_000).default(120_000).describe('Maximum time for which one is read.'),
})

/** `on_disconnect:`, for all upstreams or one. */
export const onDisconnectSchema = z.enum(['cancel', 'drain', 'drain_until_usage'])

/** Bytes, or up to 1 a share. */
function memoryOf(value: string | number): number {
  if (typeof value === 'number') return value
  const [, amount = '', unit = ''] = MEMORY.exec(value) ?? []
  if (unit === '%') return Math.min(1, Number(amount) / 100)
  const power = UNITS.indexOf(unit.replace(/i/i, '').toUpperCase()) + 1
  return Number(amount) * (/i/i.test(unit) ? 1_024 : 1_000) ** power
}

/** The resolved values; `store` is the resolved setting of that name. */
export function ledgerOf(values: z.output<typeof ledgerSchema>, folder: string, store: string) {
  const beside = store.startsWith('sqlite:') ? dirname(store.slice('sqlite:'.length)) : folder
  const { spool } = values
  return {
    ...section(ledgerSchema, values),
    maxMemory: memoryOf(values.max_memory),
    spool: spool === undefined ? resolve(beside, 'spool') : resolve(folder, spool),
  }
}
