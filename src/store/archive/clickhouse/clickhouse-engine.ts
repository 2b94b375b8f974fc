/**
 * An archive in ClickHouse, by its HTTP interface. Inserts wait until the rows are stored, also of the
 * tables of each shard, and carry a token, by which the server drops a repeated block.
 */
import { readFileSync } from 'node:fs'
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { Readable } from 'node:stream'
import {
  ClickHouseLogLevel,
  createClient,
  type ClickHouseClient,
  type ClickHouseSettings,
} from '@clickhouse/client'
import type { ArchiveConfig } from '../../../config/config.js'
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
  type TableRows,
} from '../columns.js'
import { tabSeparated } from '../tab-separated.js'

const TYPES = {
  text: 'String',
  texts: 'Array(String)',
  number: 'Int64',
  numbers: 'Array(Int64)',
  decimal: 'Float64',
} as const

const SORT_VALUES = {
  status: 'toNullable(status)',
  model: "toNullable(if(model = 'other' AND model_asked <> '', toString(model_asked), toString(model)))",
  upstream: "nullIf(toString(upstream), '')",
  tokens:
    'if(input_tokens IS NULL AND output_tokens IS NULL, NULL, ifNull(input_tokens, 0) + ifNull(output_tokens, 0))',
  costNanoUsd: 'cost_nano_usd',
  firstTokenMs: 'first_content_ms',
  durationMs: 'toNullable(duration_ms)',
} as const satisfies Readonly<Record<OwnColumn, string>>

function expressions(prefix: string): Expressions {
  return {
    entries: `${prefix}entries FINAL`,
    hours: `${prefix}hours`,
    archive: `${prefix}archive FINAL`,
    placeholder: (at, type) => `{p${at}:${TYPES[type]}}`,
    millis: (column) => `toUnixTimestamp64Milli(toDateTime64(${column}, 3, 'UTC'))`,
    time: (millis) => `fromUnixTimestamp64Milli(${millis}, 'UTC')`,
    stepOf: (column, stepMs, addedMs = 0) =>
      `intDiv(toUnixTimestamp64Milli(toDateTime64(${column}, 3, 'UTC')) + ${addedMs}, ${stepMs}) * ${stepMs}`,
    hourOf: (column) => `toStartOfHour(${column})`,
    isOneOf: (text, placeholder) => `has(${placeholder}, ${text})`,
    hasPair: (column, placeholder) => `hasAny(splitByChar(' ', ${column}), ${placeholder})`,
    isBelow: (placeholder) => `has(arrayPopBack(splitByChar('/', account_path)), ${placeholder})`,
    countIf: (condition) => `countIf(${condition})`,
    units: (unit, times) =>
      `toInt64(round(toFloat64OrZero(extract(units, '(?:^| )${unit}=([0-9.]+)')) * ${times}))`,
    numbersText: (expressions) =>
      `arrayStringConcat([${expressions.map((each) => `toString(ifNull(${each}, 0))`).join(', ')}], ',')`,
    listSumsText: (column) =>
      `arrayStringConcat(arrayMap(each -> toString(each), sumForEach(${column})), ',')`,
    plain: (column) => column,
    sortValue: (column) => SORT_VALUES[column],
    quoted: (column) => `\`${column}\``,
  }
}

/** Kinds of failures by the type of the server's error. */
const KINDS: Readonly<Record<string, FailureKind>> = {
  AUTHENTICATION_FAILED: 'password',
  REQUIRED_PASSWORD: 'password',
  WRONG_PASSWORD: 'password',
  UNKNOWN_USER: 'password',
  UNKNOWN_DATABASE: 'database',
  UNKNOWN_TABLE: 'missing',
  UNKNOWN_IDENTIFIER: 'missing',
  NO_SUCH_COLUMN_IN_TABLE: 'missing',
  ACCESS_DENIED: 'denied',
  READONLY: 'denied',
  TIMEOUT_EXCEEDED: 'slow',
  TOO_SLOW: 'slow',
  TYPE_MISMATCH: 'refused',
  CANNOT_PARSE_INPUT_ASSERTION_FAILED: 'refused',
  INCORRECT_DATA: 'refused',
  ARGUMENT_OUT_OF_BOUND: 'refused',
}
const MAX_REASON = 300
/** Of the month in the text of a time. */
const MONTH_LENGTH = 'YYYY-MM'.length
const COLUMNS = {
  entries: ENTRY_COLUMNS.map(({ name }) => name),
  hours: SUM_COLUMNS.map(({ name }) => name),
} as const

/** One database. */
export class ClickhouseEngine implements ArchiveEngine {
  readonly kind = 'clickhouse'
  readonly is: Expressions
  private readonly client: ClickHouseClient
  private readonly prefix: string
  private readonly settings: ClickHouseSettings

  constructor({ prefix, tls, settings }: ArchiveConfig, address: ArchiveAddress) {
    const { host, port, database, user, password } = address
    const name = host.includes(':') ? `[${host}]` : host
    const read = (file: string | null) => (file === null ? undefined : readFileSync(file))
    const { serverName } = tls
    const files = { ca: read(tls.ca), cert: read(tls.cert), key: read(tls.key) }
    const pooled = { keepAlive: true, maxSockets: 10 } as const
    const agent = address.tls
      ? new HttpsAgent({ ...pooled, ...files, ...(serverName === null ? {} : { servername: serverName }) })
      : new HttpAgent(pooled)
    this.prefix = prefix
    this.is = expressions(prefix)
    this.settings = Object.fromEntries(
      Object.entries(settings).map(([key, value]) => [
        key,
        typeof value === 'boolean' ? Number(value) : value,
      ]),
    )
    this.client = createClient({
      url: `${address.tls ? 'https' : 'http'}://${name}:${port}`,
      username: user,
      password,
      database,
      application: 'sluice',
      http_agent: agent,
      set_basic_auth_header: false,
      http_headers: {
        'X-ClickHouse-User': user,
        'X-ClickHouse-Key': password,
        ...(serverName === null ? {} : { host: serverName }),
      },
      request_timeout: (STATEMENT_SECONDS + 10) * 1000,
      compression: { request: true, response: true },
      // It writes every error to standard error.
      log: { level: ClickHouseLogLevel.OFF },
    })
  }

  async query(
    sql: string,
    parameters: readonly Parameter[] = [],
    seconds = STATEMENT_SECONDS,
  ): Promise<ArchiveRow[]> {
    const values = parameters.map(({ value }, at) => [`p${at + 1}`, value] as const)
    try {
      const result = await this.client.query({
        query: sql,
        format: 'JSONEachRow',
        query_params: Object.fromEntries(values),
        clickhouse_settings: {
          // Compiling a statement with fifty sums takes longer than running it.
          compile_aggregate_expressions: 0,
          ...this.limits(seconds),
          output_format_json_quote_64bit_integers: 1,
        },
      })
      return rowsOf(await result.json())
    } catch (error) {
      throw failureOf(error)
    }
  }

  async run(sql: string): Promise<void> {
    try {
      await this.client.command({ query: sql, clickhouse_settings: this.limits(STATEMENT_SECONDS) })
    } catch (error) {
      throw failureOf(error)
    }
  }

  /**
   * Rows of each month are an insert: the server adds a block of one partition whole or not at all. Its reply
   * does not prove that the rows are there: a table may be of another engine, or have dropped the block.
   */
  async insert(table: 'entries' | 'hours', rows: TableRows, token: string): Promise<false> {
    const [first = '', ...names] = COLUMNS[table]
    const months = new Map<string, string[]>()
    for (const row of rows) {
      const line = tabSeparated(row, { list: ['[', ']'], zone: '' })
      const month = line.slice(0, MONTH_LENGTH)
      const lines = months.get(month)
      if (lines === undefined) months.set(month, [line])
      else lines.push(line)
    }
    try {
      for (const [month, lines] of months) {
        await this.client.insert({
          table: `${this.prefix}${table}`,
          columns: [first, ...names],
          values: Readable.from([Buffer.from(lines.join(''))], { objectMode: false }),
          format: 'TabSeparated',
          clickhouse_settings: {
            ...this.limits(STATEMENT_SECONDS),
            async_insert: 0,
            distributed_foreground_insert: 1,
            input_format_tsv_detect_header: 0,
            insert_deduplicate: 1,
            insert_deduplication_token: `${token}/${month}`,
          },
        })
      }
      return false
    } catch (error) {
      throw failureOf(error)
    }
  }

  async put(values: Readonly<Record<string, string>>, version: number): Promise<void> {
    const rows = Object.entries(values).map(([name, value]) => ({ name, value, version }))
    try {
      await this.client.insert({
        table: `${this.prefix}archive`,
        values: rows,
        format: 'JSONEachRow',
        clickhouse_settings: { ...this.limits(STATEMENT_SECONDS), async_insert: 0 },
      })
    } catch (error) {
      throw failureOf(error)
    }
  }

  async countBatch(batch: number) {
    const [row] = await this.query(
      `SELECT uniqExact(request_id) AS count, toString(sum(cost)) AS cost FROM (
         SELECT request_id, cost_nano_usd AS cost FROM ${this.prefix}entries WHERE batch = {p1:Int64} LIMIT 1 BY request_id)`,
      [{ type: 'number', value: batch }],
    )
    return { count: numberIn(row, 'count'), cost: BigInt(textIn(row, 'cost') || '0') }
  }

  async prepare(): Promise<void> {
    // Partitions are made by inserts.
  }

  async size() {
    const tables = ['entries', 'hours'].map((name) => `'${this.prefix}${name}'`).join(', ')
    const sizes = await this.query(
      `SELECT sum(bytes_on_disk) AS bytes FROM system.parts WHERE
         active AND database = currentDatabase() AND table IN (${tables})`,
    ).catch(() => [])
    const [row] = await this.query(
      `SELECT count() AS rows, toUnixTimestamp64Milli(min(at)) AS oldest FROM ${this.prefix}entries`,
    )
    const rows = numberIn(row, 'rows')
    return { bytes: numberIn(sizes[0], 'bytes'), rows, oldestMs: rows === 0 ? null : numberIn(row, 'oldest') }
  }

  async close(): Promise<void> {
    await this.client.close()
  }

  private limits(seconds: number): ClickHouseSettings {
    return { ...this.settings, max_execution_time: seconds }
  }
}

function failureOf(error: unknown): ArchiveFailure {
  if (error instanceof ArchiveFailure) return error
  const type = typeof error === 'object' && error !== null && 'type' in error ? String(error.type) : ''
  const message = error instanceof Error ? error.message : String(error)
  const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : ''
  const kind = KINDS[type] ?? (type === '' || /Timeout error/i.test(message) ? 'away' : 'refused')
  // A value that is not accepted is quoted in the message.
  const reason = kind === 'refused' ? type.toLowerCase() : message.slice(0, MAX_REASON)
  return new ArchiveFailure(kind, reason || code || 'no reply', { cause: error })
}
