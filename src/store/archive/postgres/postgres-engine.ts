/** An archive in PostgreSQL 14 or newer. Entries have a partition for each day, sums one for each month. */
import { DAY_MS } from '../../../base/time-units.js'
import { readFileSync } from 'node:fs'
import { isAbsolute, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Pool, PoolConfig } from 'pg'
import type { ArchiveConfig } from '../../../config/config.js'
import type { LedgerEntry } from '../../../ledger/entry.js'
import {
  ArchiveFailure,
  STATEMENT_SECONDS,
  type ArchiveEngine,
  type Expressions,
  type FailureKind,
  type Parameter,
} from '../archive-engine.js'
import type { OwnColumn } from '../../entry-order.js'
import type { ArchiveAddress } from '../archive-address.js'
import {
  ENTRY_COLUMNS,
  numberIn,
  rowsOf,
  SUM_COLUMNS,
  textIn,
  type ArchiveRow,
  type TableRow,
  type TableRows,
} from '../columns.js'
import { tabSeparated } from '../tab-separated.js'

const TYPES = {
  text: 'text',
  texts: 'text[]',
  number: 'bigint',
  numbers: 'bigint[]',
  decimal: 'double precision',
} as const
/** Partitions are made for this number of days ahead. */
const AHEAD_DAYS = 14

const SORT_VALUES = {
  status: 'status',
  model: `(CASE WHEN model = 'other' THEN coalesce(model_asked, model) ELSE model END) COLLATE "C"`,
  upstream: 'upstream COLLATE "C"',
  tokens:
    '(CASE WHEN input_tokens IS NULL AND output_tokens IS NULL THEN NULL ELSE coalesce(input_tokens, 0) + coalesce(output_tokens, 0) END)',
  costNanoUsd: 'cost_nano_usd',
  firstTokenMs: 'first_content_ms',
  durationMs: 'duration_ms',
} as const satisfies Readonly<Record<OwnColumn, string>>

function expressions(prefix: string): Expressions {
  return {
    entries: `${prefix}entries`,
    hours: `${prefix}hours`,
    archive: `${prefix}archive`,
    placeholder: (at, type) => `$${at}::${TYPES[type]}`,
    millis: (column) => `(extract(epoch FROM ${column}) * 1000)::bigint`,
    time: (millis) => `(timestamptz '1970-01-01 00:00:00+00' + ${millis} * interval '1 millisecond')`,
    // `extract` has numeric, which is slower. Steps begin at whole seconds, which are exact.
    stepOf: (column, stepMs, addedMs = 0) =>
      `(floor((date_part('epoch', ${column}) * 1000 + ${addedMs}) / ${stepMs})::bigint * ${stepMs})`,
    hourOf: (column) => `date_trunc('hour', ${column}, 'UTC')`,
    isOneOf: (text, placeholder) => `${text} = ANY (${placeholder})`,
    hasPair: (column, placeholder) => `string_to_array(${column}, ' ') && ${placeholder}`,
    isBelow: (placeholder) => `${placeholder} = ANY (trim_array(string_to_array(account_path, '/'), 1))`,
    countIf: (condition) => `count(*) FILTER (WHERE ${condition})`,
    units: (unit, times) =>
      `round(coalesce(substring(units from '(?:^| )${unit}=([0-9.]+)'), '0')::numeric * ${times})::bigint`,
    numbersText,
    listSumsText: (column, length) =>
      numbersText(Array.from({ length }, (_, at) => `sum(${column}[${at + 1}])`)),
    plain: (column) => `coalesce(${column}, '')`,
    sortValue: (column) => SORT_VALUES[column],
    quoted: (column) => `"${column}"`,
  }
}

function numbersText(expressions: readonly string[]): string {
  return `array_to_string(ARRAY[${expressions.join(', ')}]::numeric[], ',', '0')`
}

/** Kinds of failures by SQLSTATE, or its first two characters. */
const KINDS: Readonly<Record<string, FailureKind>> = {
  '28P01': 'password',
  '28000': 'password',
  '3D000': 'database',
  '42P01': 'missing',
  '42703': 'missing',
  '42883': 'missing',
  '42501': 'denied',
  '25006': 'denied',
  '57014': 'slow',
  '22': 'refused',
  '23': 'refused',
}
const NO_PARTITION = '23514'
const KNOWN_ROW = '23505'
const MAX_REASON = 300
/** Columns with their names in JSON; times, which are in UTC, first. */
const COLUMNS = {
  entries: ENTRY_COLUMNS.map(namedInJson),
  hours: SUM_COLUMNS.map(namedInJson),
} as const

/** One database. */
export class PostgresEngine implements ArchiveEngine {
  readonly kind = 'postgresql'
  readonly is: Expressions
  private readonly prefix: string
  private readonly settings: PoolConfig
  private pool: Promise<Pool> | null = null
  private readonly merges: Readonly<Record<'entries' | 'hours', string>>

  constructor(config: ArchiveConfig, address: ArchiveAddress) {
    const { host, port, database, user, password } = address
    this.prefix = config.prefix
    this.is = expressions(config.prefix)
    this.settings = {
      ...{ host, port, database, user, password },
      ssl: address.tls ? tlsOf(config, address) : false,
      max: 5,
      connectionTimeoutMillis: 5_000,
      idleTimeoutMillis: 30_000,
      query_timeout: (STATEMENT_SECONDS + 10) * 1_000,
      statement_timeout: STATEMENT_SECONDS * 1_000,
      application_name: 'sluice',
    }
    const names = (list: typeof ENTRY_COLUMNS) => list.map(({ name }) => this.is.quoted(name))
    const [entries, hours] = [names(ENTRY_COLUMNS), names(SUM_COLUMNS)]
    const into = (table: string, columns: readonly string[]) =>
      `INSERT INTO ${this.prefix}${table} AS former (${columns.join(', ')})
       SELECT ${columns.join(', ')} FROM json_populate_recordset(NULL::${this.prefix}${table}, $1::json)`
    this.merges = {
      entries: `${into('entries', entries)} ON CONFLICT (at, request_id) DO UPDATE SET
        ${entries.map((name) => `${name} = excluded.${name}`).join(', ')} WHERE excluded.version > former.version`,
      hours: `${into('hours', hours)} ON CONFLICT DO NOTHING`,
    }
  }

  async query(
    sql: string,
    parameters: readonly Parameter[] = [],
    seconds = STATEMENT_SECONDS,
  ): Promise<ArchiveRow[]> {
    const values = parameters.map(({ value }) => value)
    try {
      const pool = await this.opened()
      if (seconds === STATEMENT_SECONDS) return rowsOf((await pool.query(sql, values)).rows)
      const client = await pool.connect()
      try {
        await client.query('BEGIN READ ONLY')
        // Sums of many groups fit into memory, and are added up before a compiler is ready. A group has sixty
        // sums, which take longer to hand over from another process than to add up.
        await client.query(
          `SET LOCAL statement_timeout = ${seconds * 1_000}; SET LOCAL work_mem = '64MB'; SET LOCAL jit = off;
           SET LOCAL parallel_tuple_cost = 1`,
        )
        const { rows } = await client.query(sql, values)
        await client.query('COMMIT')
        client.release()
        return rowsOf(rows)
      } catch (error) {
        // The connection has an open transaction.
        client.release(true)
        throw error
      }
    } catch (error) {
      throw failureOf(error)
    }
  }

  async run(sql: string): Promise<void> {
    await this.query(sql)
  }

  /** Rows are copied; those that the table may have are merged, after which the caller has to count them. */
  async insert(table: 'entries' | 'hours', rows: TableRows): Promise<boolean> {
    const insert = async (): Promise<boolean> => {
      try {
        return (await this.copied(table, rows)) === rows.length
      } catch (error) {
        if (codeOf(error) !== KNOWN_ROW) throw error
        const text = `[${Array.from(rows, (row) => jsonOf(row, COLUMNS[table])).join(',')}]`
        await (await this.opened()).query(this.merges[table], [text])
        return false
      }
    }
    try {
      return await insert().catch(async (error: unknown) => {
        if (codeOf(error) !== NO_PARTITION) throw error
        const timeIn = ([time]: TableRow) => Date.parse(`${String(time).replace(' ', 'T')}Z`)
        await this.prepare(Array.from(rows, timeIn))
        return insert()
      })
    } catch (error) {
      throw failureOf(error)
    }
  }

  /** The number of rows that the server added, all or none. */
  private async copied(table: 'entries' | 'hours', rows: TableRows): Promise<number> {
    const columns = COLUMNS[table].map(({ name }) => name)
    const lines = Array.from(rows, (row) => tabSeparated(row, { list: ['{', '}'], zone: 'Z' }))
    const { from } = await import('pg-copy-streams')
    const client = await (await this.opened()).connect()
    const names = columns.map((name) => this.is.quoted(name)).join(', ')
    const copy = from(`COPY ${this.prefix}${table} (${names}) FROM STDIN`)
    let isWhole = false
    try {
      const stream = client.query(copy)
      await pipeline([Buffer.from(lines.join(''))], stream)
      isWhole = true
      return copy.rowCount
    } finally {
      // After a failure the connection may still have a part of the rows to send.
      client.release(!isWhole)
    }
  }

  async put(values: Readonly<Record<string, string>>, version: number): Promise<void> {
    const names = Object.keys(values)
    await this.query(
      `INSERT INTO ${this.prefix}archive AS former (name, value, version)
       SELECT name, value, $3::bigint FROM unnest($1::text[], $2::text[]) AS given (name, value)
       ON CONFLICT (name) DO UPDATE SET value = excluded.value, version = excluded.version WHERE
         excluded.version >= former.version`,
      [
        { type: 'texts', value: names },
        { type: 'texts', value: names.map((name) => values[name] ?? '') },
        { type: 'number', value: version },
      ],
    )
  }

  async countBatch(_batch: number, entries: readonly Pick<LedgerEntry, 'requestId' | 'atMs'>[]) {
    let [from, to] = [Infinity, -Infinity]
    for (const { atMs } of entries) [from, to] = [Math.min(from, atMs), Math.max(to, atMs)]
    const [row] = await this.query(
      `SELECT count(*) AS count, coalesce(sum(cost_nano_usd), 0)::text AS cost FROM ${this.prefix}entries WHERE
         at >= ${this.is.time('$1::bigint')} AND at < ${this.is.time('$2::bigint')} AND request_id = ANY ($3::text[])`,
      [
        { type: 'number', value: Math.floor(from) },
        { type: 'number', value: Math.floor(to) + 1 },
        { type: 'texts', value: entries.map(({ requestId }) => requestId) },
      ],
    )
    return { count: numberIn(row, 'count'), cost: BigInt(textIn(row, 'cost') || '0') }
  }

  async prepare(timesMs: readonly number[]): Promise<void> {
    const today = Math.floor(Date.now() / DAY_MS)
    const days = new Set(timesMs.map((ms) => Math.floor(ms / DAY_MS) - today).filter((day) => day < 0))
    for (const day of [AHEAD_DAYS, ...days]) await this.query(`SELECT ${this.prefix}partitions(${day})`)
  }

  async size() {
    // Before a table's first ANALYZE its size is not known (-1), only what was written since the last crash.
    const rows = 'greatest(child.reltuples, pg_stat_get_live_tuples(child.oid), 0)'
    const [row] = await this.query(
      `SELECT coalesce(sum(pg_total_relation_size(child.oid)), 0) AS bytes,
         coalesce(sum(CASE WHEN inhparent = '${this.prefix}entries'::regclass THEN ${rows} END), 0)::bigint AS rows
       FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid WHERE
         inhparent IN ('${this.prefix}entries'::regclass, '${this.prefix}hours'::regclass)`,
    )
    const [oldest] = await this.query(
      `SELECT ${this.is.millis('at')} AS oldest FROM ${this.prefix}entries ORDER BY at LIMIT 1`,
    )
    return {
      bytes: numberIn(row, 'bytes'),
      rows: numberIn(row, 'rows'),
      oldestMs: oldest === undefined ? null : numberIn(oldest, 'oldest'),
    }
  }

  async close(): Promise<void> {
    await (await this.pool?.catch(() => null))?.end()
  }

  private opened(): Promise<Pool> {
    this.pool ??= openPool(this.settings)
    return this.pool
  }
}

async function openPool(settings: PoolConfig): Promise<Pool> {
  const { default: pg } = await import('pg')
  const pool = new pg.Pool(settings)
  // A connection that is idle when the server ends is replaced by the next statement.
  pool.on('error', () => undefined)
  // The statement of a connection that ends rejects, too; without a listener the process would end.
  pool.on('connect', (client) => client.on('error', () => undefined))
  return pool
}

function tlsOf({ tls, folder }: ArchiveConfig, { caFile, checksName }: ArchiveAddress) {
  const read = (file: string | null) => (file === null ? undefined : readFileSync(file, 'utf8'))
  const ca = caFile === null || isAbsolute(caFile) ? caFile : resolve(folder, caFile)
  return {
    ca: read(tls.ca ?? ca),
    cert: read(tls.cert),
    key: read(tls.key),
    ...(tls.serverName === null ? {} : { servername: tls.serverName }),
    ...(checksName ? {} : { checkServerIdentity: () => undefined }),
  }
}

function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : ''
}

function failureOf(error: unknown): ArchiveFailure {
  if (error instanceof ArchiveFailure) return error
  const code = codeOf(error)
  const message = error instanceof Error ? error.message : String(error)
  const isState = /^[0-9A-Z]{5}$/.test(code)
  const kind = KINDS[code] ?? (isState ? KINDS[code.slice(0, 2)] : undefined) ?? 'away'
  // A value that is not accepted is quoted in the message.
  const reason = kind === 'refused' ? `SQLSTATE ${code}` : message.slice(0, MAX_REASON)
  return new ArchiveFailure(kind, reason || code || 'no reply', { cause: error })
}

interface NamedColumn {
  readonly name: string
  /** What precedes its value in an object that has members. */
  readonly json: string
}

function namedInJson({ name }: (typeof ENTRY_COLUMNS)[number]): NamedColumn {
  return { name, json: `,${JSON.stringify(name)}:` }
}

/** Half of the time of `JSON.stringify` for an object of fifty members. A time without a zone is UTC. */
function jsonOf([time, ...values]: TableRow, [first, ...columns]: readonly NamedColumn[]): string {
  let text = first === undefined ? '' : `"${first.name}":"${String(time)}Z"`
  for (const [at, { json }] of columns.entries()) {
    const value = values[at] ?? null
    if (value !== null) text += json + JSON.stringify(value)
  }
  return `{${text}}`
}
