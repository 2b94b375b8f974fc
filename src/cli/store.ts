/**
 * `sluice store`: moves all that a store keeps into another, whatever their engines, and accepts a store that
 * was emptied. The work is in `store/migrate/copy-store.ts` and `store/store-identity.ts`.
 */
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { loadConfig } from '../config/load.js'
import { passwordsIn } from '../config/secrets.js'
import { protectSecrets } from '../secrets/redact-secrets.js'
import { acceptStore } from '../store/store-identity.js'
import { copyStore } from '../store/migrate/copy-store.js'
import { compareStores, MigrationRefused, type Compared } from '../store/migrate/compare-stores.js'
import type { Part } from '../store/migrate/read-parts.js'
import { openStore } from '../store/open-store.js'
import { isRedisUrl } from '../store/redis/connection/address.js'
import type { Store } from '../store/store.js'
import { problemLines } from './check/check.js'
import { UsageError, type Command } from './command.js'
import { configPath } from './config-option.js'
import { processTerminal, reporting, required, table, type Terminal } from './with-store.js'

/** `sluice store`. */
export const command: Command = {
  name: 'store',
  summary: 'move accounts, keys and usage to another store, or begin a new one',
  help: `
Usage: sluice store migrate --from URL --to URL [--json]
       sluice store accept  [--config FILE]

'accept' begins with the store that is there now. Each machine remembers, in the spool folder, which store
it opened; one that comes back empty, or another one in its place, is refused until it is restored or
accepted. Run it on each machine, then restart the gateway. 'migrate' copies accounts, keys (revoked ones too), the audit trail, usage rows, sums and budgets from one store to another,
reads both back and prints counts and digests of each. Interrupted, or run beside a gateway: run it again,
it goes on. A target that has something else is refused before anything is written. The source is not
changed. Sessions, limits' counters and kept reasoning state are not copied; docs/how-to/back-up-and-restore.md says more.

Options:
  --from URL  the store to read: sqlite:FILE (a relative path starts here), redis://…, redis+sentinel://…,
              redis+cluster://…, as in the configuration's 'store'; env:NAME reads the URL from the
              environment variable NAME, so that its password is not in the list of processes
  --to URL    the store to fill, the same way
  --json      print JSON

  --config FILE
              for accept: the configuration file, whose store is accepted; without it, the one
              that SLUICE_CONFIG names

Exit status: 0 the target has all that the source has, 1 it has not or was refused, 2 wrong use.

Example:
  REDIS=redis://:secret@10.0.0.5 sluice store migrate --from sqlite:./data/sluice.db --to env:REDIS
`,
  run(argv) {
    if (argv[0] === 'accept') {
      const { values } = parseArgs({ args: argv.slice(1), options: { config: { type: 'string' } } })
      const config = configPath(values.config, 'sluice store accept')
      return runAccept(config, processTerminal)
    }
    const values = parseStore(argv, process.env)
    return reporting(processTerminal, () => runMigrate(values, processTerminal))
  },
}

/** Accepts the store of a configuration file as the one to expect; exit status 1 where it cannot be opened. */
export async function runAccept(configPath: string, terminal: Terminal): Promise<number> {
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

/** What is asked, checked as far as words go. */
export interface MigrateValues {
  readonly from: string
  readonly to: string
  readonly json: boolean
}

/** Throws `UsageError` or parseArgs's; never with an address in it, which may hold a password. */
export function parseStore(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): MigrateValues {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: { from: { type: 'string' }, to: { type: 'string' }, json: { type: 'boolean' } },
  })
  const [action, ...surplus] = positionals
  if (action !== 'migrate') throw new UsageError("'sluice store' needs one of: migrate, accept")
  if (surplus.length > 0) throw new UsageError("'sluice store migrate' takes options only")
  const from = addressOf(values.from, '--from', env)
  const to = addressOf(values.to, '--to', env)
  if (placeOf(from) === placeOf(to)) throw new UsageError('--from and --to name the same store')
  return { from, to, json: values.json === true }
}

/** Does the work and says what came of it. Rejects as the stores do. */
export async function runMigrate(
  { from, to, json }: MigrateValues,
  terminal: Terminal,
): Promise<number> {
  const warn = (message: string) => terminal.err(`sluice: ${message}`)
  const options = { warn, patienceMs: PATIENCE_MS }
  protectSecrets([...passwordsIn(from), ...passwordsIn(to)])
  return using(await openStore(from, { ...options, mustExist: true }), async (source) =>
    using(await openStore(to, options), async (target) => {
      try {
        return await migrate(source, target, terminal, json)
      } catch (error) {
        if (!(error instanceof MigrationRefused)) throw error
        terminal.err(`sluice: ${error.message}`)
        return 1
      }
    }),
  )
}

/** A gateway would give up long before; here nobody waits, and the machine may be busy. */
const PATIENCE_MS = 10_000
/** How often a long copy says how far it is. */
const PROGRESS_MS = 5_000

async function migrate(
  source: Store,
  target: Store,
  terminal: Terminal,
  json: boolean,
): Promise<number> {
  const begin = await copyStore(source, target, telling(terminal, 'copied'))
  const parts = await compareStores(source, target, begin, telling(terminal, 'read back'))
  const isSame = parts.every((part) => part.isSame)
  terminal.out(json ? jsonOf(parts, isSame) : tableOf(parts))
  if (isSame) return 0
  terminal.err(
    'sluice: the two differ. Was a gateway still writing to one of them? Stop it and run this again',
  )
  return 1
}

function telling(terminal: Terminal, done: string): (part: Part, count: number) => void {
  let toldMs = performance.now()
  return (part, count) => {
    if (performance.now() - toldMs < PROGRESS_MS) return
    toldMs = performance.now()
    terminal.err(`sluice: ${part}: ${count} ${done} so far`)
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
  const of = parts.map(({ part, source, target, isSame: same }) => ({
    part,
    source: { count: source.count, digest: source.digest },
    target: { count: target.count, digest: target.digest },
    same,
  }))
  return JSON.stringify({ same: isSame, parts: of }, undefined, 2)
}

function addressOf(
  value: string | undefined,
  option: string,
  env: Readonly<Record<string, string | undefined>>,
): string {
  const given = required(value, 'sluice store migrate', `${option} URL`)
  const name = given.startsWith('env:') ? given.slice('env:'.length) : null
  const url = name === null ? given : env[name]
  if (url === undefined || url === '') {
    throw new UsageError(`${option}: the environment variable '${name ?? ''}' is not set`)
  }
  if (isRedisUrl(url) || /^sqlite:./.test(url)) return url
  throw new UsageError(
    `${option} takes sqlite:FILE, redis://…, redis+sentinel://… or redis+cluster://…`,
  )
}

/** The same path may be written in several ways. */
function placeOf(url: string): string {
  return url.startsWith('sqlite:') ? resolve(url.slice('sqlite:'.length)) : url
}

async function using(store: Store, work: (store: Store) => Promise<number>): Promise<number> {
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}
