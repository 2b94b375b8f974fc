/** `sluice archive`: the tables of the archive and its state. */
import { counted } from '../base/counted.js'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { ArchiveFailure, type ArchiveEngine } from '../store/archive/archive-engine.js'
import { addressOf, openArchiveEngine } from '../store/archive/open-archive-engine.js'
import { ArchiveCopier } from '../store/archive/copier.js'
import { changeProgress } from '../store/archive/change-progress.js'
import { progressAfterRestore, restoredNotice } from '../store/archive/find-restored.js'
import { eraseEntries } from '../store/archive/erase-entries.js'
import { acceptTables, findingOf, inspectArchive, valuesIn } from '../store/archive/inspect-archive.js'
import { grantStatements, schemaStatements } from '../store/archive/schema-statements.js'
import { missingEntries, repairEntries, verifyHours } from '../store/archive/verify.js'
import { WaitingFiles } from '../store/archive/waiting-files.js'
import type { ArchiveConfig, Config } from '../config/config.js'
import { loadConfig } from '../config/load-config.js'
import { passwordsIn, secretsOf } from '../config/secret-settings.js'
import { hideSecrets, protectSecrets } from '../hide-secrets.js'
import { findAccount } from '../accounts/changes/change-accounts.js'
import { openExpectedStore } from '../store/store-identity.js'
import { isRedisUrl } from '../store/store-address.js'
import type { ArchiveProgress } from '../store/archive-feed.js'
import type { Store } from '../store/store.js'
import { configOption, declare, UsageError } from './command.js'
import { reporting } from './exit-status.js'
import { problemLines } from './problem-lines.js'
import { sinceOf } from './time-range.js'
import { configInForce, processTerminal, type Terminal } from './with-store.js'
import { timeText } from '../base/time-units.js'

/** `sluice archive`. */
export function command(terminal = processTerminal) {
  const archive = declare({
    name: 'archive',
    summary: 'make the tables of the archive, and see its state',
    description: `
The archive is a database (ClickHouse or PostgreSQL) that keeps entries and sums for years, while the store
keeps those of the last hours; see docs/how-to/archive.md.

'schema' prints the statements that make its tables, for review by an administrator of the database; with
--apply it runs them. It can be repeated. --url names the database with the rights of an administrator:
the gateway's own user needs only SELECT and INSERT (PostgreSQL: also UPDATE), which --grants prints.`,
    exitStatus: '0 success, 1 failure, 2 wrong usage.',
    example: 'sluice archive schema --apply --url env:DBA_URL --config config/gateway.yaml',
  })
  archive
    .command('schema')
    .option('--apply', 'run the statements')
    .option(
      '--url <URL>',
      "the database, with another user; env:NAME reads it from a variable. Default: 'archive.url'",
    )
    .option(
      '--engine <ENGINE>',
      "ClickHouse: the engine of the tables, such as ReplicatedReplacingMergeTree('…','{replica}',version)",
    )
    .option('--cluster <NAME>', 'ClickHouse: the cluster in which the tables are made')
    .option('--grants <USER>', 'print the statements that give a user the rights of the gateway')
    .addOption(configOption())
    .action(async ({ config, ...options }) => {
      const loaded = archiveIn(config, terminal)
      process.exitCode = loaded === null ? 1 : await runSchema(loaded, options, terminal)
    })
  archive
    .command('status')
    .option('--json', 'print JSON')
    .addOption(configOption())
    .action(async ({ config, json }) => {
      process.exitCode = await using(config, terminal, (session) => runStatus(session, json === true))
    })
  archive
    .command('backfill')
    .option('--accept', 'use tables that belong to another store')
    .option('--json', 'print JSON')
    .addOption(configOption())
    .action(async ({ config, accept, json }) => {
      const flags = { accepts: accept === true, json: json === true }
      process.exitCode = await using(config, terminal, (session) => runBackfill(session, flags))
    })
  archive
    .command('verify')
    .option('--since <TIME>', 'from this time on: a date, a time, or a duration such as 7d. Default: all')
    .option('--until <TIME>', 'before this time')
    .option('--repair', 'write entries again that the store still has')
    .option('--json', 'print JSON')
    .addOption(configOption())
    .action(async ({ config, since, until, repair, json }) => {
      const range = { fromMs: timeOf(since, '--since') ?? 0, toMs: timeOf(until, '--until') ?? Infinity }
      const flags = { ...range, repairs: repair === true, json: json === true }
      process.exitCode = await using(config, terminal, (session) => runVerify(session, flags))
    })
  archive
    .command('erase')
    .requiredOption('--account <ACCOUNT>', 'the account, by its name or id; also a removed one, by its id')
    .option('--until <TIME>', 'only entries before this time')
    .option('--yes', 'erase; without it nothing is erased')
    .addOption(configOption())
    .action(async ({ config, account, until, yes }) => {
      const flags = { account, untilMs: timeOf(until, '--until') ?? Date.now(), isSure: yes === true }
      process.exitCode = await using(config, terminal, (session) => runErase(session, flags))
    })
  return archive
}

function timeOf(text: string | undefined, option: string): number | null {
  return text === undefined ? null : sinceOf(text, Date.now(), option)
}

/** The configured archive; null after a message. */
function archiveIn(path: string, terminal: Terminal): ArchiveConfig | null {
  const loaded = loadConfig(path, process.env)
  if (!loaded.ok) {
    terminal.err(problemLines(loaded.errors))
    return null
  }
  return archiveOf(loaded.config, terminal)
}

function archiveOf(config: Config, terminal: Terminal): ArchiveConfig | null {
  protectSecrets(secretsOf(config))
  if (config.archive === null)
    terminal.err("sluice: the configuration has no 'archive': add one with the 'url' of a database")
  return config.archive
}

interface SchemaFlags {
  readonly apply?: true | undefined
  readonly url?: string | undefined
  readonly engine?: string | undefined
  readonly cluster?: string | undefined
  readonly grants?: string | undefined
}

const SAFE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

async function runSchema(archive: ArchiveConfig, flags: SchemaFlags, terminal: Terminal): Promise<number> {
  const config = flags.url === undefined ? archive : { ...archive, url: urlOf(flags.url) }
  const { engine, database } = addressOf(config)
  for (const [name, value] of [
    ['--cluster', flags.cluster],
    ['--grants', flags.grants],
  ] as const) {
    if (value !== undefined && !SAFE_NAME.test(value)) {
      throw new UsageError(`${name} must be a name of letters, digits and underscores`)
    }
  }
  if (engine !== 'clickhouse' && (flags.engine ?? flags.cluster) !== undefined) {
    throw new UsageError('--engine and --cluster are for ClickHouse')
  }
  const options = {
    ...{ engine, config },
    ...(flags.engine === undefined ? {} : { tableEngine: flags.engine }),
    ...(flags.cluster === undefined ? {} : { cluster: flags.cluster }),
  }
  const statements =
    flags.grants === undefined
      ? schemaStatements(options)
      : grantStatements(options, { user: flags.grants, database })
  if (flags.apply !== true) {
    for (const statement of statements) terminal.out(`${withSemicolon(statement)}\n`)
    return 0
  }
  const opened = await openArchiveEngine(config)
  try {
    for (const statement of statements) await opened.run(statement.replace(/ -- .*$/, ''))
    terminal.out(`${statements.length} statements applied`)
    return 0
  } catch (error) {
    terminal.err(hideSecrets(`sluice: ${error instanceof Error ? error.message : String(error)}`, '***'))
    return 1
  } finally {
    await opened.close()
  }
}

function urlOf(text: string): string {
  const url = text.startsWith('env:') ? (process.env[text.slice('env:'.length)] ?? '') : text
  if (url === '') throw new UsageError(`--url ${text}: the variable is not set`)
  protectSecrets(passwordsIn(url))
  return url
}

/** The end of a statement precedes its comment. */
function withSemicolon(statement: string): string {
  return statement.includes(' -- ') ? statement.replace(' -- ', '; -- ') : `${statement};`
}

/** The store and the archive of a configuration. */
interface ArchiveSession {
  readonly store: Store
  readonly engine: ArchiveEngine
  readonly config: ArchiveConfig
  /** The folder of this machine's data. */
  readonly spool: string
  readonly terminal: Terminal
}

/** Opens both for the work, and closes them; the exit status. */
async function using(
  path: string,
  terminal: Terminal,
  work: (session: ArchiveSession) => Promise<number>,
): Promise<number> {
  const inForce = await configInForce(path, (line) => terminal.err(line))
  const config = inForce === null ? null : archiveOf(inForce.config, terminal)
  if (inForce === null || config === null) return 1
  const { store: url, ledger } = inForce.config
  const warn = (message: string): void => terminal.err(`sluice: ${message}`)
  return reporting(terminal, async () => {
    const options = { url, folder: ledger.spool, warn, minTimeoutMs: 10_000 }
    const store = await openExpectedStore({ ...options, mustExist: !isRedisUrl(url) })
    const engine = await openArchiveEngine(config)
    try {
      return await work({ store, engine, config, spool: ledger.spool, terminal })
    } catch (error) {
      if (!(error instanceof ArchiveFailure)) throw error
      terminal.err(hideSecrets(`sluice: ${findingOf(error).message}`, '***'))
      return 1
    } finally {
      await engine.close()
      await store.close()
    }
  })
}

async function runStatus({ store, engine, terminal }: ArchiveSession, json: boolean): Promise<number> {
  const feed = store.ledger.archive
  const { findings, schema } = await inspectArchive(engine, store.id)
  const finding = findings.find(({ kind }) => kind !== 'columns') ?? null
  const progress = await feed.progress()
  const { rows, oldestAtMs } = await feed.waiting()
  const leader = await feed.leader()
  const size = finding === null ? await engine.size() : null
  const notice = finding === null ? await noticeOf(engine, progress) : null
  const status = {
    engine: engine.kind,
    schema,
    reachable: finding === null,
    error: finding === null ? null : hideSecrets(finding.message, '***'),
    leader: leader === null ? null : { gateway: leader.gateway, pid: leader.pid },
    confirmed: progress?.confirmed ?? 0,
    round: progress?.round ?? 0,
    hot_from: progress === null || progress.hotFromMs === 0 ? null : timeText(progress.hotFromMs),
    rows_waiting: rows,
    lag_seconds: oldestAtMs === null ? 0 : Math.max(0, Math.round((Date.now() - oldestAtMs) / 1_000)),
    spooled_rows: progress?.onDisk.reduce((sum, each) => sum + each.rows, 0) ?? 0,
    late_rows: progress?.lateRows ?? 0,
    repeated_rows: progress?.repeatedRows ?? 0,
    rows: size?.rows ?? null,
    oldest: size === null || size.oldestMs === null ? null : timeText(size.oldestMs),
    bytes: size?.bytes ?? null,
    notes: [
      ...findings.filter(({ kind }) => kind === 'columns').map(({ message }) => message),
      ...(notice === null ? [] : [notice]),
    ],
  }
  if (json) terminal.out(JSON.stringify(status))
  else {
    for (const [name, value] of Object.entries(status)) {
      const plain = typeof value === 'object' ? '-' : String(value)
      const text = name === 'leader' && leader !== null ? `${leader.gateway} (process ${leader.pid})` : plain
      terminal.out(`${name.padEnd(14)}${text}`)
    }
  }
  return finding === null ? 0 : 1
}

/** What an operator reads about a restored archive, also before the gateway has found it out. */
async function noticeOf(engine: ArchiveEngine, progress: ArchiveProgress | null): Promise<string | null> {
  if (progress === null) return null
  const restored = await progressAfterRestore(engine, await valuesIn(engine), progress, Date.now())
  return restoredNotice(restored ?? progress)
}

interface BackfillFlags {
  readonly accepts: boolean
  readonly json: boolean
}

/** Moves what is due, beside or without a gateway: another leader is waited for. */
async function runBackfill(session: ArchiveSession, { accepts, json }: BackfillFlags): Promise<number> {
  const { store, engine, config, spool, terminal } = session
  // Without the lead: a gateway that runs holds it, and waits for its tables.
  if (accepts) await acceptTables(engine, store.id)
  const copier = new ArchiveCopier({
    ...{ store, engine, config },
    files: new WaitingFiles(join(spool, 'archive'), store.id, config.spoolMaxBytes),
    leader: { id: randomUUID(), gateway: 'sluice archive backfill', pid: process.pid },
    refused: (entry, reason) => terminal.err(`sluice: entry ${entry.requestId} was refused (${reason})`),
    warn: (message) => terminal.err(`sluice: ${message}`),
  })
  const first = await store.ledger.archive.progress()
  let printedAtMs = performance.now()
  try {
    for (let idle = 0; idle < MOST_IDLE;) {
      const more = await copier.step()
      if (more === null && idle === 0) terminal.err('sluice: a gateway moves entries: waiting for it')
      if (performance.now() - printedAtMs > PROGRESS_MS) {
        printedAtMs = performance.now()
        const { rows } = await store.ledger.archive.waiting()
        terminal.err(`sluice: ${counted(copier.counts.written, 'entry', 'entries')} moved, ${rows} left`)
      }
      const { rows } = more === true ? { rows: 1 } : await store.ledger.archive.waiting()
      idle = more === true ? 0 : idle + 1
      if (rows === 0 && idle >= 2) break
      if (more !== true) await delay(IDLE_MS)
    }
  } finally {
    await copier.close()
  }
  const after = await store.ledger.archive.progress()
  const isRestored = after !== null && after.restored !== null
  const again = isRestored ? await repairRestored(session, 'backfill', 0, Infinity) : 0
  const { rows: left } = await store.ledger.archive.waiting()
  const sums = ((await store.ledger.archive.progress())?.round ?? 0) - (first?.round ?? 0)
  const result = { entries: copier.counts.written + again, sums, left }
  if (json) terminal.out(JSON.stringify(result))
  else {
    const moved = `${counted(result.entries, 'entry', 'entries')} and ${counted(sums, 'transfer')} of sums`
    terminal.out(`${moved} moved, ${counted(left, 'entry', 'entries')} left`)
  }
  return left === 0 ? 0 : 1
}

const PROGRESS_MS = 2_000
const IDLE_MS = 1_000
/** About as long as the lease of a leader that has ended. */
const MOST_IDLE = 90

interface VerifyFlags {
  readonly fromMs: number
  readonly toMs: number
  readonly repairs: boolean
  readonly json: boolean
}

async function runVerify(session: ArchiveSession, flags: VerifyFlags): Promise<number> {
  const { store, engine, terminal } = session
  const { fromMs, toMs, repairs, json } = flags
  const notice = await noticeOf(engine, await store.ledger.archive.progress())
  if (notice !== null) terminal.err(`sluice: ${notice}`)
  const result = await verifyHours(store, engine, fromMs, toMs)
  let missing = 0
  if (!repairs)
    for await (const entries of missingEntries(store, engine, fromMs, toMs)) missing += entries.length
  const repaired = repairs ? await repairRestored(session, 'verify', fromMs, toMs) : null
  if (json) terminal.out(JSON.stringify({ ...result, missing, ...(repaired === null ? {} : { repaired }) }))
  else {
    for (const { start, account_id, key_id, model, of, entries, sums, ...more } of result.different) {
      const named = Object.entries(more).map(([name, value]) => `${name}=${JSON.stringify(value)}`)
      const names = [start, account_id, key_id, model, ...named]
      terminal.out(`${names.join(' ')}: ${of} of entries ${entries}, of sums ${sums}`)
    }
    const verdict = result.different.length === 0 ? 'equal' : counted(result.different.length, 'difference')
    terminal.out(`${counted(result.hours, 'hour')} of ${counted(result.accounts, 'account')}: ${verdict}`)
    if (missing > 0) {
      terminal.out(
        `Not in the archive: ${counted(missing, 'entry', 'entries')} of the store: 'sluice archive verify --repair'`,
      )
    }
    if (repaired !== null) terminal.out(`${counted(repaired, 'entry', 'entries')} written again`)
  }
  return result.different.length === 0 && missing === 0 ? 0 : 1
}

/** Writes entries again that the archive lacks; what a restored one has lost is known then. Their number. */
async function repairRestored(
  { store, engine, terminal }: ArchiveSession,
  by: 'backfill' | 'verify',
  fromMs: number,
  toMs: number,
): Promise<number> {
  const count = await repairEntries(store, engine, fromMs, toMs, {
    refused: (entry, reason) => terminal.err(`sluice: entry ${entry.requestId} was refused (${reason})`),
  })
  const progress = await store.ledger.archive.progress()
  if (progress !== null && progress.restored !== null) {
    await changeProgress(store, `sluice archive ${by}`, (each) => ({ ...each, restored: null }))
  }
  return count
}

interface EraseFlags {
  readonly account: string
  readonly untilMs: number
  readonly isSure: boolean
}

async function runErase({ store, engine, terminal }: ArchiveSession, flags: EraseFlags): Promise<number> {
  const { account: name, untilMs, isSure } = flags
  const account = await findAccount(store, name)
  if (account === null && !name.startsWith('acc_')) {
    terminal.err(`sluice: no account has the name or id "${name}"; name a removed one by its id`)
    return 1
  }
  const accountId = account?.id ?? name
  if (!isSure) {
    terminal.err(`sluice: --yes erases the entries of ${accountId} before ${timeText(untilMs)}; sums stay`)
    return 2
  }
  const erased = await eraseEntries({ store, engine, accountId, untilMs })
  if (erased.statement !== null) {
    terminal.err(`sluice: reads leave the entries out; an administrator of the database removes them:`)
    terminal.out(`${erased.statement};`)
    return 0
  }
  terminal.out(`erased the entries of ${accountId} before ${timeText(untilMs)}`)
  return 0
}
