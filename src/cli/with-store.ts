/**
 * What the commands that work on the store share: its opening, the account that is meant, lines.
 * Knows none of the commands. Of the configuration it reads `store` and `plans`, nothing else.
 */
import type { Account } from '../accounts/account.js'
import { findAccount, type Plans } from '../accounts/accounts.js'
import { secretsOf } from '../config/secrets.js'
import { GatewayError } from '../errors.js'
import { hideSecrets, protectSecrets } from '../secrets/redact-secrets.js'
import { openExpectedStore } from '../store/store-identity.js'
import { isRedisUrl } from '../store/redis/connection/address.js'
import type { Store } from '../store/store.js'
import { configInForce } from './config-in-force.js'
import { UsageError } from './command.js'

/** Where a command reads and writes; the process's own streams, save in tests. */
export interface Terminal {
  /** Answers: one line to standard output. */
  out(line: string): void
  /** What a person should know besides: one line to standard error. */
  err(line: string): void
  /** All of standard input. Throws `UsageError` where it is a keyboard. */
  input(): Promise<string>
}

/** What the work of a command is given. */
export interface StoreSession {
  readonly store: Store
  readonly plans: Plans
  readonly terminal: Terminal
}

/** Which store a command opens. */
export interface StoreOpening {
  readonly configPath: string
  readonly terminal: Terminal
  /** An embedded store that is not there is an error; otherwise the command makes it, with a warning on Redis. */
  readonly mustExist: boolean
}

/** Far beyond any password that would be taken; only keeps a wrong pipe from filling the memory. */
const MAX_INPUT = 65_536

/** As a shell tells of who was ended by a broken pipe. */
const BROKEN_PIPE = 141

/** Who read has what it wanted (`… | head`): the rest is for nobody, and no failure. */
function readerLeft(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
  process.exit(BROKEN_PIPE)
}

/** The process's own streams. */
export const processTerminal: Terminal = {
  out(line) {
    if (process.stdout.listenerCount('error') === 0) process.stdout.on('error', readerLeft)
    console.log(line)
  },
  err: (line) => console.error(line),
  async input() {
    if (process.stdin.isTTY) {
      throw new UsageError('standard input is a keyboard; pipe the password into this command')
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
 * Opens the store of the configuration file for the work and closes it after. A file that is no
 * good and an error of the store or of the accounts are lines on standard error and status 1.
 */
export async function withStore(
  { configPath, terminal, mustExist }: StoreOpening,
  work: (session: StoreSession) => Promise<number>,
): Promise<number> {
  const config = await configInForce(configPath, (line) => terminal.err(line))
  if (config === null) return 1
  const { store: url, plans, ledger } = config
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
      return await work({ store, plans, terminal })
    } finally {
      await store.close()
    }
  })
}

/** The work's status, or 1 with a line on standard error where it threw a `GatewayError`. */
export async function reporting(terminal: Terminal, work: () => Promise<number>): Promise<number> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    // A client must not see the cause; the operator at this terminal needs it.
    const cause = error.cause instanceof Error ? ` (${error.cause.message})` : ''
    terminal.err(hideSecrets(`sluice: ${error.message}${cause}`))
    return 1
  }
}

/** The account with that id or e-mail; null, and a line that says where to look, if there is none. */
export async function namedAccount(
  { store, terminal }: StoreSession,
  idOrEmail: string,
): Promise<Account | null> {
  const account = await findAccount(store, idOrEmail)
  if (account === null) {
    terminal.err(
      `sluice: no account has the id or e-mail '${idOrEmail}'; 'sluice accounts list' shows all`,
    )
  }
  return account
}

/** The value of an option that an action cannot do without. Throws `UsageError` naming it. */
export function required(value: string | undefined, command: string, option: string): string {
  if (value === undefined || value === '') throw new UsageError(`'${command}' needs ${option}`)
  return value
}

/** Rows as columns, each as wide as its widest cell. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths: number[] = []
  for (const row of rows) {
    row.forEach((cell, at) => (widths[at] = Math.max(widths[at] ?? 0, cell.length)))
  }
  return rows
    .map((row) => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  '))
    .map((line) => line.trimEnd())
    .join('\n')
}
