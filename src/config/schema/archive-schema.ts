/** The keys of the archive. Part of `config-file-schema.ts`. */
import { resolve } from 'node:path'
import * as z from 'zod'
import { parseArchiveUrl } from '../../store/archive/archive-address.js'
import type { ReportFinding } from '../config-problem.js'
import { text, whole } from './value-types.js'

const tlsSchema = z.strictObject({
  ca: text(4_096)
    .optional()
    .describe('The file of the authority that signed its certificate, PEM. Default: those of the system.'),
  cert: text(4_096).optional().describe("The file of the gateway's own certificate, PEM."),
  key: text(4_096).optional().describe('The file of its private key, PEM.'),
  server_name: text(253)
    .optional()
    .describe("The name that the database's certificate must have. Default: the host of `url`."),
})

/** `archive:` */
export const archiveSchema = z.strictObject({
  url: text(4_096).describe(
    'The database. `clickhouse://USER:PASSWORD@HOST[:8123]/DATABASE` is the HTTP interface of ClickHouse, `clickhouses://` the same with TLS (8443); `postgresql://USER:PASSWORD@HOST[:5432]/DATABASE`, with TLS `?sslmode=verify-full&sslrootcert=FILE`. Take the password from `${NAME}` or `${file:PATH}`.',
  ),
  keep_days: whole(1, 36_500).default(400).describe('How long entries are kept in the archive.'),
  sums_days: whole(1, 36_500)
    .optional()
    .describe(
      'How long sums are kept there, at least `keep_days`. Default: 1100, or `keep_days` if that is more.',
    ),
  hot_hours: z
    .number()
    .min(0.01)
    .max(720)
    .default(24)
    .describe('How long entries stay in the store at least; then they leave it once the archive has them.'),
  waiting_max_bytes: whole(1_048_576, 1_099_511_627_776)
    .default(1_073_741_824)
    .describe(
      'Redis only: the memory of the entries that wait for an archive that is away. More go to files in `ledger.spool`, also if `ledger.max_memory` is nearly used up, and leave Redis after `hot_hours`.',
    ),
  spool_max_bytes: whole(1_048_576, 1_099_511_627_776)
    .default(10_737_418_240)
    .describe('The maximum size of these files on one machine.'),
  prefix: z
    .string()
    .regex(/^[a-z_][a-z0-9_]{0,30}$/, {
      error: 'must be 1 to 31 small letters, digits and underscores, and start with no digit',
    })
    .default('sluice_')
    .describe('The prefix of the tables: another fleet in the same database takes another one.'),
  tls: tlsSchema.prefault({}).describe('Files for TLS; relative paths start at this file.'),
  settings: z
    .record(
      z.string().regex(/^[a-z][a-z0-9_]{0,63}$/),
      z.union([z.string().max(256), z.number(), z.boolean()]),
    )
    .default({})
    .describe('ClickHouse only: settings of every statement, such as `insert_quorum: auto`.'),
})

/** Reports rules that the schema cannot express. */
export function checkArchive(
  values: z.output<typeof archiveSchema> | undefined,
  report: ReportFinding,
): void {
  if (values === undefined) return
  const address = parseArchiveUrl(values.url)
  if ('problem' in address) report(['archive', 'url'], address.problem)
  else if (address.engine === 'postgresql' && Object.keys(values.settings).length > 0) {
    report(['archive', 'settings'], 'must not be set for PostgreSQL: they are settings of ClickHouse')
  }
  if (values.sums_days !== undefined && values.sums_days < values.keep_days) {
    report(['archive', 'sums_days'], 'must not be less than keep_days')
  }
  if ((values.tls.cert === undefined) !== (values.tls.key === undefined)) {
    report(['archive', 'tls'], 'must have cert and key together')
  }
}

const DEFAULT_SUMS_DAYS = 1_100

/** The resolved values; files as absolute paths. Null: there is no archive. */
export function archiveOf(values: z.output<typeof archiveSchema> | undefined, folder: string) {
  if (values === undefined) return null
  const { ca, cert, key, server_name: serverName } = values.tls
  const file = (path: string | undefined): string | null =>
    path === undefined ? null : resolve(folder, path)
  return {
    url: values.url,
    keepDays: values.keep_days,
    sumsDays: values.sums_days ?? Math.max(DEFAULT_SUMS_DAYS, values.keep_days),
    hotHours: values.hot_hours,
    waitingMaxBytes: values.waiting_max_bytes,
    spoolMaxBytes: values.spool_max_bytes,
    prefix: values.prefix,
    tls: { ca: file(ca), cert: file(cert), key: file(key), serverName: serverName ?? null },
    settings: values.settings,
    /** The folder of the configuration file, at which relative paths in `url` start. */
    folder,
  }
}
