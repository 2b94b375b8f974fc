/**
 * Compares the tables of an archive with what this release needs: `sluice check`, the start of a gateway and
 * `sluice archive status` say the same.
 */
import { ArchiveFailure, Sql, type ArchiveEngine } from './archive-engine.js'
import { ENTRY_COLUMNS, numberIn, SUM_COLUMNS, textIn } from './columns.js'
import { SCHEMA } from './schema-statements.js'

/** What is wrong with an archive; `away`: it does not reply, so nothing else is known. */
export interface ArchiveFinding {
  readonly kind: 'away' | 'password' | 'database' | 'missing' | 'newer' | 'denied' | 'store' | 'columns'
  readonly message: string
}

/** The tables of an archive. */
interface Inspected {
  /** Empty: it can be used. `columns` alone does not prevent that. */
  readonly findings: readonly ArchiveFinding[]
  /** The version of the tables; null if it is not known. */
  readonly schema: number | null
  /** The columns that the tables have, by table. */
  readonly columns: Readonly<Record<'entries' | 'hours', ReadonlySet<string>>>
}

const CHECK_SECONDS = 3
const ADVICE = "'sluice archive schema --apply' makes the tables, with the rights of an administrator"

/** `storeId` null: any store's tables. Never rejects. */
export async function inspectArchive(engine: ArchiveEngine, storeId: string | null): Promise<Inspected> {
  const none = { entries: new Set<string>(), hours: new Set<string>() }
  try {
    const values = await valuesIn(engine)
    const schema = Number(values.get('schema') ?? '0')
    const findings = findingsOf(values, storeId)
    const columns = { entries: await columnsOf(engine, 'entries'), hours: await columnsOf(engine, 'hours') }
    const missing = [
      ...ENTRY_COLUMNS.filter(({ name }) => !columns.entries.has(name)),
      ...SUM_COLUMNS.filter(({ name }) => !columns.hours.has(name)),
    ].map(({ name }) => name)
    if (missing.length > 0) {
      findings.push({
        kind: 'columns',
        message: `the tables lack the columns ${missing.join(', ')}: ${ADVICE}`,
      })
    }
    return { findings, schema, columns }
  } catch (error) {
    return { findings: [findingOf(error)], schema: null, columns: none }
  }
}

/** What the values of the table `archive` say about its version and its owner. */
function findingsOf(values: ReadonlyMap<string, string>, storeId: string | null): ArchiveFinding[] {
  const schema = Number(values.get('schema') ?? '0')
  const findings: ArchiveFinding[] = []
  const owner = values.get('store')
  if (schema > SCHEMA) {
    findings.push({
      kind: 'newer',
      message: `the tables have version ${schema}, made by a newer release; this one needs ${SCHEMA}`,
    })
  }
  if (schema === 0) findings.push({ kind: 'missing', message: `the tables have no version: ${ADVICE}` })
  if (storeId !== null && owner !== undefined && owner !== storeId) {
    findings.push({
      kind: 'store',
      message:
        "the tables belong to another store: take another prefix, or 'sluice archive backfill --accept' to use them",
    })
  }
  return findings
}

/**
 * The values of tables that are of this store and of no newer release. Rejects with `ArchiveFailure` if that
 * has changed while the gateway runs.
 */
export async function ownValues(engine: ArchiveEngine, storeId: string): Promise<Map<string, string>> {
  const values = await valuesIn(engine)
  const [finding] = findingsOf(values, storeId)
  if (finding !== undefined) throw new ArchiveFailure('missing', finding.message)
  return values
}

/**
 * Makes tables of another store those of this one; a gateway that runs goes on with them. Rejects with
 * `ArchiveFailure` if they cannot be used.
 */
export async function acceptTables(engine: ArchiveEngine, storeId: string): Promise<void> {
  const { findings } = await inspectArchive(engine, null)
  const finding = findings.find(({ kind }) => kind !== 'columns')
  if (finding !== undefined) {
    throw new ArchiveFailure(finding.kind === 'away' ? 'away' : 'missing', finding.message)
  }
  await engine.put({ store: storeId }, Date.now())
}

/** The values of the table `archive`. Rejects with `ArchiveFailure`. */
export async function valuesIn(engine: ArchiveEngine): Promise<Map<string, string>> {
  const rows = await engine.query(`SELECT name, value FROM ${engine.is.archive}`, [], CHECK_SECONDS)
  return new Map(rows.map((row) => [textIn(row, 'name'), textIn(row, 'value')]))
}

/** The columns of a table; a table that cannot be read rejects. */
async function columnsOf(engine: ArchiveEngine, table: 'entries' | 'hours'): Promise<ReadonlySet<string>> {
  const sql = new Sql(engine.is)
  const name = engine.is[table].split(' ')[0] ?? ''
  const schema = engine.kind === 'clickhouse' ? 'currentDatabase()' : 'current_schema()'
  const rows = await engine.query(
    `SELECT column_name AS name FROM information_schema.columns WHERE
       table_schema = ${schema} AND table_name = ${sql.text(name)}`,
    sql.parameters,
    CHECK_SECONDS,
  )
  const [row] = await engine.query(`SELECT count(*) AS count FROM ${name} WHERE 1 = 0`, [], CHECK_SECONDS)
  return new Set(numberIn(row, 'count') === 0 ? rows.map((each) => textIn(each, 'name')) : [])
}

/** The finding of a failed statement. */
export function findingOf(error: unknown): ArchiveFinding {
  const message = error instanceof Error ? error.message : String(error)
  if (!(error instanceof ArchiveFailure)) return { kind: 'away', message }
  switch (error.kind) {
    case 'password':
      return { kind: 'password', message: 'the database refuses the user or its password' }
    case 'database':
      return { kind: 'database', message: 'the server has no such database' }
    case 'missing':
      return { kind: 'missing', message: `a table is missing: ${ADVICE}` }
    case 'denied':
      return {
        kind: 'denied',
        message: `the user lacks a right (${message}): see 'sluice archive schema --grants'`,
      }
    default:
      return { kind: 'away', message: `the database does not reply (${message})` }
  }
}
