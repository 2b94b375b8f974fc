/**
 * `sluice store`: moves the content of a store to another one of any engine, and accepts a store that was
 * emptied. `store/migrate/copy-store.ts` and `store/store-identity.ts` do the work.
 */
import { resolve } from 'node:path'
import { loadConfig } from '../config/load-config.js'
import { passwordsIn } from '../config/secret-settings.js'
import { protectSecrets } from '../hide-secrets.js'
import { acceptStore } from '../store/store-identity.js'
import { copyStore } from '../store/migrate/copy-store.js'
import { compareStores, MigrationRefused, type Compared } from '../store/migrate/compare-stores.js'
import type { Progress } from '../store/migrate/read-parts.js'
import { openStore } from '../store/open-store.js'
import { isRedisUrl } from '../store/store-address.js'
import type { Store } from '../store/store.js'
import { problemLines } from './problem-lines.js'
import { configOption, declare, UsageError } from './command.js'
import { processTerminal, type Terminal } from './with-store.js'
import { reporting } from './exit-status.js'
import { table } from './print-table-or-json.js'

/** `sluice store`. */
export function command(terminal = processTerminal) {
  const store = declare({
    name: 'store',
    summary: 'move accounts, keys and usage to another store, or accept a new one',
    description: `
'migrate' copies accounts, users, members, keys (also revoked ones), admin tokens, denials, the audit
trail, ledger entries, sums, budgets, values of dimensions, sign-ins of programs and recordings from one
store to another, reads both back and prints counts and digests of each. If it is interrupted, or a gateway writes meanwhile, run it again: it
continues. A target with other content is refused before anything is written. The source is not changed.
Sessions of the dashboard, counters of limits, cached replies and reasoning state are not copied; see
docs/how-to/back-up-and-restore.md.

'accept' accepts the present store. Each machine records in the spool folder which store it opened; an empty
or different store is refused until it is restored or accepted. Run it on each machine, then restart the
gateway.`,
    exitStatus: '0 the target has the content of the source, 1 failure, 2 wrong usage.',
    example:
      'REDIS=redis://:secret@10.0.0.5 sluice store migrate --from sqlite:./data/sluice.db --to env:REDIS',
  })
  store
    .command('migrate')
    .requiredOption(
      '--from <URL>',
      "the store to read: sqlite:PATH (relative to the working directory), redis://…, redis+sentinel://…, redis+cluster://…, as in the configuration's 'store'; env:NAME reads the URL from the environment variable NAME, which keeps its password out of the process list",
      (text) => addressOf(text, '--from'),
    )
    .requiredOption('--to <URL>', 'the store to write, in the same forms', (text) => addressOf(text, '--to'))
    .option('--json', 'print JSON')
    .action(async ({ from, to, json }) => {
      if (sameForm(from) === sameForm(to)) {
        throw new UsageError('--from and --to name the same store')
      }
      const options = { from, to, json: json === true }
      process.exitCode = await reporting(terminal, () => runMigrate(options, terminal))
    })
  store
    .command('accept')
    .addOption(configOption('the configuration file, whose store is accepted'))
    .action(async ({ config }) => {
      process.exitCode = await runAccept(config, terminal)
    })
  return store
}

/** Accepts the store of a configuration file as the expected one; exit status 1 if it cannot be opened. */
async function runAccept(configPath: string, terminal: Terminal): Promise<number> {
  const loaded = loadConfig(configPath, process.env)
  if (!loaded.ok) {
    terminal.err(problemLines(loaded.errors))
    return 1
  }
  const { store: url, ledger } = loaded.config
  const warn = (message: string): void => terminal.err(`sluice: ${message}`)
  return reporting(terminal, async () => {
    const store = await acceptStore({ url, folder: ledger.spool, warn })
    terminal.out(`accepted store ${store.id}; restart the gateway on this machine`)
    await store.close()
    return 0
  })
}

interface MigrateOptions {
  readonly from: string
  readonly to: string
  readonly json: boolean
}

/** Copies, verifies and prints the result. Rejects as the stores do. */
export async function runMigrate({ from, to, json }: MigrateOptions, terminal: Terminal): Promise<number> {
  const warn = (message: string) => terminal.err(`sluice: ${message}`)
  const options = { warn, minTimeoutMs: STORE_TIMEOUT_MS }
  protectSecrets([...passwordsIn(from), ...passwordsIn(to)])
  return using(await openStore(from, { ...options, mustExist: true }), async (source) =>
    using(await openStore(to, options), async (target) => {
      try {
        return await migrate(source, target, { terminal, json })
      } catch (error) {
        if (!(error instanceof MigrationRefused)) throw error
        terminal.err(`sluice: ${error.message}`)
        return 1
      }
    }),
  )
}

/** Longer than in the gateway, because no client waits and the machine may be busy. */
const STORE_TIMEOUT_MS = 10_000
/** Interval of progress lines within a part. */
const PROGRESS_MS = 2_000

async function migrate(
  source: Store,
  target: Store,
  { terminal, json }: { readonly terminal: Terminal; readonly json: boolean },
): Promise<number> {
  const progress = new MigrationProgress(terminal)
  await copyStore(source, target, progress.report)
  const parts = await compareStores(source, target, progress.report)
  progress.end()
  const isSame = parts.every((part) => part.isSame)
  terminal.out(json ? jsonOf(parts, isSame) : tableOf(parts))
  if (isSame) return 0
  terminal.err('sluice: the two stores differ: stop the gateways that write to them and run this again')
  return 1
}

/** Prints a line at the end of each part of a step, and one every two seconds within it. */
class MigrationProgress {
  private readonly terminal: Terminal
  private last: Parameters<Progress> | null = null
  private reportedMs = performance.now()

  constructor(terminal: Terminal) {
    this.terminal = terminal
  }

  readonly report: Progress = (...now) => {
    const [step, part] = now
    if (this.last?.[0] !== step || this.last[1] !== part) this.end()
    this.last = now
    if (performance.now() - this.reportedMs >= PROGRESS_MS) this.print(' so far')
  }

  /** The part is done. */
  end(): void {
    if (this.last !== null) this.print('')
    this.last = null
  }

  private print(suffix: string): void {
    if (this.last === null) return
    this.reportedMs = performance.now()
    const [step, part, count] = this.last
    this.terminal.err(`sluice: ${part}: ${count} ${step}${suffix}`)
  }
}

function tableOf(parts: readonly Compared[]): string {
  const head = ['', 'source', 'target', 'digest of source', 'digest of target', '']
  const rows = parts.map(({ part, source, target, isSame }) => [
    part,
    String(source.count),
    String(target.count),
    source.digest,
    target.digest,
    isSame ? 'same' : 'DIFFERENT',
  ])
  return table([head, ...rows])
}

function jsonOf(parts: readonly Compared[], isSame: boolean): string {
  const comparisons = parts.map(({ part, source, target, isSame: same }) => ({
    part,
    source: { count: source.count, digest: source.digest },
    target: { count: target.count, digest: target.digest },
    same,
  }))
  return JSON.stringify({ same: isSame, parts: comparisons }, undefined, 2)
}

/** Throws `UsageError`; never with a URL in it, which may contain a password. */
function addressOf(given: string, option: string): string {
  const name = given.startsWith('env:') ? given.slice('env:'.length) : null
  const url = name === null ? given : process.env[name]
  if (given === '') throw new UsageError(`'sluice store migrate' needs ${option} URL`)
  if (url === undefined || url === '') {
    throw new UsageError(`${option}: the environment variable ${name ?? ''} is not set`)
  }
  if (isRedisUrl(url) || /^sqlite:./.test(url)) return url
  const former = url.startsWith('lmdb:') ? 'lmdb: is no longer supported: ' : ''
  throw new UsageError(
    `${former}${option} must be sqlite:PATH, redis://…, redis+sentinel://…, redis+cluster://… or env:NAME`,
  )
}

/** Normalises different spellings of the same path. */
function sameForm(url: string): string {
  return url.startsWith('sqlite:') ? resolve(url.slice('sqlite:'.length)) : url
}

async function using(store: Store, work: (store: Store) => Promise<number>): Promise<number> {
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}
