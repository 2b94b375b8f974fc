/**
 * Shared parts of commands that work on the store: opening it, finding an account, printing lines. They read
 * only `store`, `plans` and the names of models and upstreams of the configuration.
 */
import { withArchive } from '../store/archive/archived-ledger.js'
import type { Account } from '../accounts/account.js'
import { findAccount } from '../accounts/changes/change-accounts.js'
import type { Plans } from '../accounts/plans.js'
import type { Catalogue, Config } from '../config/config.js'
import { historyOf, recordsIn } from '../config/generations/history.js'
import { loadConfig, type Loaded, type LoadResult } from '../config/load-config.js'
import { maskedStore } from '../config/masked-config.js'
import { secretsOf } from '../config/secret-settings.js'
import { protectSecrets } from '../hide-secrets.js'
import { isRedisUrl } from '../store/store-address.js'
import { openExpectedStore } from '../store/store-identity.js'
import type { Store } from '../store/store.js'
import { problemLines } from './problem-lines.js'
import { UsageError } from './command.js'
import { reporting, outputReady, printLine } from './exit-status.js'
import { findGateway, loadGeneration, type FoundGateway } from './running-gateway.js'
import { companiesOf, type Companies } from './companies.js'
import { knownModels } from './unknown-models.js'

/** Input and output of a command; the process's own streams except in tests. */
export interface Terminal {
  /** Prints a result: one line to standard output. */
  out(line: string): void
  /** Waits for a slow reader of standard output. Rejects with `OutputFailed` if it cannot be written. */
  ready(): Promise<void>
  /** Prints a message for the user: one line to standard error. */
  err(line: string): void
  /**
   * Reads all of standard input, by default at most as much as a password may have. Throws `UsageError` if it
   * is a terminal.
   */
  input(maxChars?: number): Promise<string>
}

/** The open store, parts of the configuration, and the terminal of a command. */
export interface StoreSession {
  readonly store: Store
  readonly plans: Plans
  /** The names of the configured upstreams. */
  readonly upstreams: readonly string[]
  /** The company that is paid for an upstream, and the one that made a model, if they are known. */
  readonly companies: Companies
  /** The names of the configured models, see `knownModels`. */
  readonly models: readonly string[]
  /** The names of the configured workload identities. */
  readonly identities: readonly string[]
  /** Whether the gateway accepts keys of other gateways. */
  readonly acceptsImported: boolean
  /** What settings of clients depend on. */
  readonly gateway: GatewayOfClients
  readonly terminal: Terminal
}

/** The address of a gateway, its rules of limits, its models, and the place of files. */
interface GatewayOfClients extends Pick<Config, 'limits' | 'plans' | 'dimensions' | 'files'> {
  readonly dashboard: Pick<Config['dashboard'], 'publicUrl'>
  readonly server: Pick<Config['server'], 'port' | 'tls'>
  readonly catalogue: Catalogue
  readonly escrow: Pick<Config['escrow'], 'key'>
}

/** Longer than any allowed password; a wrong pipe must not fill the memory. */
const MAX_INPUT = 65_536

/** The process's own streams. */
export const processTerminal: Terminal = {
  out: printLine,
  ready: outputReady,
  err: (line) => console.error(line),
  async input(maxChars = MAX_INPUT) {
    if (process.stdin.isTTY) {
      throw new UsageError('standard input is a terminal: pipe the text into this command')
    }
    let text = ''
    process.stdin.setEncoding('utf8')
    for await (const chunk of process.stdin) {
      text += String(chunk)
      if (text.length > maxChars) throw new UsageError('standard input is too long')
    }
    return text
  },
}

interface StoreOpening {
  readonly terminal?: Terminal
  /**
   * Whether a missing embedded store is an error; otherwise the command creates it, with a warning on Redis.
   */
  readonly mustExist?: boolean
}

/**
 * Opens the store of the configuration file for the work and closes it afterwards. Prints errors of the file,
 * the store and the accounts to standard error and returns 1.
 */
export async function withStore(
  configPath: string,
  work: (session: StoreSession) => Promise<number>,
  { terminal = processTerminal, mustExist = true }: StoreOpening = {},
): Promise<number> {
  const inForce = await configInForce(configPath, (line) => terminal.err(line))
  if (inForce === null) return 1
  const { config, catalogue } = inForce
  const { store: url, plans, ledger } = config
  const upstreams = Object.keys(config.upstreams)
  const models = knownModels(config, catalogue)
  const companies = companiesOf(config, catalogue)
  const identities = config.identity.map(({ name }) => name)
  const acceptsImported = config.auth.acceptImportedKeys
  protectSecrets(secretsOf(config))
  const warn = (message: string): void => terminal.err(`sluice: ${message}`)
  return reporting(terminal, async () => {
    const own = await openExpectedStore({
      url,
      folder: ledger.spool,
      warn,
      mustExist: mustExist && !isRedisUrl(url),
    })
    const store = withArchive(own, () => config)
    try {
      const names = { upstreams, companies, models, identities }
      const { dashboard, server, limits, dimensions, files, escrow } = config
      const gateway = { dashboard, server, limits, plans, dimensions, files, escrow, catalogue }
      return await work({ store, plans, ...names, acceptsImported, gateway, terminal })
    } finally {
      await store.close()
    }
  })
}

/** Opens the store for a command; tests give it one that is open. */
export type OpenStore = typeof withStore

/** The account with that name, id or e-mail; null, with a line of advice, if there is none. */
export async function namedAccount(
  { store, terminal }: StoreSession,
  idOrEmail: string,
): Promise<Account | null> {
  const account = await findAccount(store, idOrEmail)
  if (account === null) {
    terminal.err(
      `sluice: no account has the name, id or e-mail address "${idOrEmail}": 'sluice accounts list' shows all`,
    )
  }
  return account
}

/** The value of a required option. Throws `UsageError` naming it. */
export function required(value: string | undefined, command: string, option: string): string {
  if (value === undefined || value === '') throw new UsageError(`'${command}' needs ${option}`)
  return value
}

/** A configuration with its catalogue. */
interface ConfigInForce {
  readonly config: Config
  readonly catalogue: Catalogue
}

/**
 * The file's configuration, with the store and spool of the gateway that runs with this file. If the file is
 * not valid, the generation in force in that gateway, or without one the newest of the history. `err`
 * receives a line for each difference and problem; null if there is no valid configuration.
 *
 * The configuration that a command uses beside a running gateway. A changed `store` takes effect after a
 * restart; until then the command must use the gateway's current store.
 */
export async function configInForce(
  path: string,
  err: (line: string) => void,
): Promise<ConfigInForce | null> {
  const loaded = loadConfig(path, process.env)
  const gateway = await findGateway(loaded, process.env)
  const started = gateway === null ? null : await loadGeneration(loaded, gateway, gateway.startedGeneration)
  if (!loaded.ok) {
    err(problemLines(loaded.errors))
    const stored = gateway === null ? await newestStored(loaded, err) : await inForce(loaded, gateway, err)
    return stored === null || started === null ? stored : withStoreOf(started, stored)
  }
  const { config } = loaded
  if (started !== null && started.config.store !== config.store) {
    const [used, named] = [maskedStore(started.config.store), maskedStore(config.store)]
    err(`sluice: this command uses ${used}, the store of the running gateway`)
    err(`sluice: the file names ${named}, which waits for a restart`)
    return withStoreOf(started, loaded)
  }
  const waiting = gateway?.page['waiting_for_restart']
  if (started === null && Array.isArray(waiting) && waiting.includes('store')) {
    err('sluice: the running gateway uses another store than the file: restart it first')
    return null
  }
  return loaded
}

/** A configuration with the store and spool of the one that the gateway was started with. */
function withStoreOf({ config: { store, ledger } }: Loaded, { config, catalogue }: Loaded): ConfigInForce {
  return {
    config: { ...config, store, ledger: { ...config.ledger, spool: ledger.spool } },
    catalogue,
  }
}

async function inForce(
  loaded: LoadResult,
  gateway: FoundGateway,
  err: (line: string) => void,
): Promise<Loaded | null> {
  const { generation } = gateway
  const stored = await loadGeneration(loaded, gateway, generation)
  if (stored === null) {
    err(
      'sluice: the generation in force in the running gateway cannot be loaded: set its variables, or correct the file',
    )
  } else err(`sluice: using generation ${String(generation)}, which is in force in the running gateway`)
  return stored
}

/** The newest generation of the history that can be loaded. */
async function newestStored(loaded: LoadResult, err: (line: string) => void): Promise<Loaded | null> {
  const folder = historyOf(loaded, process.env)
  for (const { generation } of folder === null ? [] : recordsIn(folder)) {
    const stored = await loadGeneration(loaded, { folder }, generation)
    if (stored === null) continue
    err(`sluice: no gateway runs with this file: using generation ${String(generation)} of its history`)
    return stored
  }
  return null
}
