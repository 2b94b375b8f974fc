/**
 * Shared parts of commands that work on the store: opening it, finding an account, printing lines. They read
 * only `store`, `plans` and the names of models and upstreams of the configuration.
 */
import type { Account } from '../accounts/account.js'
import { findAccount, type Plans } from '../accounts/accounts.js'
import { secretsOf } from '../config/secret-settings.js'
import { protectSecrets } from '../secrets/redact-secrets.js'
import { openExpectedStore } from '../store/store-identity.js'
import { isRedisUrl } from '../store/redis/connection/parse-address.js'
import type { Store } from '../store/store.js'
import { configInForce } from './config-in-force.js'
import { configPath } from './config-option.js'
import { knownModels } from './keys/unknown-models.js'
import { reporting } from './exit-status.js'
import { outputReady, printLine } from './output/standard-output.js'
import { UsageError } from './usage-error.js'

/** Input and output of a command; the process's own streams except in tests. */
export interface Terminal {
  /** Prints a result: one line to standard output. */
  out(line: string): void
  /** Waits for a slow reader of standard output. Rejects with `OutputFailed` if it cannot be written. */
  ready(): Promise<void>
  /** Prints a message for the user: one line to standard error. */
  err(line: string): void
  /** Reads all of standard input. Throws `UsageError` if it is a terminal. */
  input(): Promise<string>
}

/** The open store, parts of the configuration, and the terminal of a command. */
export interface StoreSession {
  readonly store: Store
  readonly plans: Plans
  /** The names of the configured upstreams. */
  readonly upstreams: readonly string[]
  /** The names of the configured models, see `knownModels`. */
  readonly models: readonly string[]
  readonly terminal: Terminal
}

/** The store that a command opens. */
export interface StoreOpening {
  readonly configPath: string
  readonly terminal: Terminal
  /**
   * Whether a missing embedded store is an error; otherwise the command creates it, with a warning on Redis.
   */
  readonly mustExist: boolean
}

/**
 * The store of the configuration file of `command`, such as `sluice keys`. Throws `UsageError` without a
 * file.
 */
export function openingFor(
  command: string,
  config: string | undefined,
  mustExist = true,
): StoreOpening {
  return { configPath: configPath(config, command), terminal: processTerminal, mustExist }
}

/** Longer than any allowed password; a wrong pipe must not fill the memory. */
const MAX_INPUT = 65_536

/** The process's own streams. */
export const processTerminal: Terminal = {
  out: printLine,
  ready: outputReady,
  err: (line) => console.error(line),
  async input() {
    if (process.stdin.isTTY) {
      throw new UsageError('standard input is a terminal: pipe the password into this command')
    }
    let text = ''
    process.stdin.setEncoding('utf8')
    for await (const chunk of process.stdin) {
      text += String(chunk)
      if (text.length > MAX_INPUT) throw new UsageError('standard input is longer than a password')
    }
    return text
  },
}

/**
 * Opens the store of the configuration file for the work and closes it afterwards. Prints errors of the file,
 * the store and the accounts to standard error and returns 1.
 */
export async function withStore(
  { configPath: path, terminal, mustExist }: StoreOpening,
  work: (session: StoreSession) => Promise<number>,
): Promise<number> {
  const inForce = await configInForce(path, (line) => terminal.err(line))
  if (inForce === null) return 1
  const { config, catalogue } = inForce
  const { store: url, plans, ledger } = config
  const upstreams = Object.keys(config.upstreams)
  const models = knownModels(config, catalogue)
  protectSecrets(secretsOf(config))
  const warn = (message: string): void => terminal.err(`sluice: ${message}`)
  return reporting(terminal, async () => {
    const store = await openExpectedStore({
      url,
      folder: ledger.spool,
      warn,
      mustExist: mustExist && !isRedisUrl(url),
    })
    try {
      return await work({ store, plans, upstreams, models, terminal })
    } finally {
      await store.close()
    }
  })
}

/** The account with that id or e-mail; null, with a line of advice, if there is none. */
export async function namedAccount(
  { store, terminal }: StoreSession,
  idOrEmail: string,
): Promise<Account | null> {
  const account = await findAccount(store, idOrEmail)
  if (account === null) {
    terminal.err(
      `sluice: no account has the id or e-mail address "${idOrEmail}": 'sluice accounts list' shows all`,
    )
  }
  return account
}

/** The value of a required option. Throws `UsageError` naming it. */
export function required(value: string | undefined, command: string, option: string): string {
  if (value === undefined || value === '') throw new UsageError(`'${command}' needs ${option}`)
  return value
}
