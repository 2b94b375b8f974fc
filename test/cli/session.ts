/**
 * For tests of commands: an open store in a temporary folder, a terminal that records its output, commands in
 * this process, and the built program.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { runCommand } from '../../src/cli/command.js'
import { createCatalogue } from '../../src/config/catalogue.js'
import { COMMANDS } from '../../src/cli/commands.js'
import { printFailure } from '../../src/cli/exit-status.js'
import type { OpenStore, StoreSession } from '../../src/cli/with-store.js'
import { openSqlite } from '../../src/store/sqlite/open-sqlite.js'
import { V8_FLAGS } from '../helpers/test-program.js'

const MAIN = fileURLToPath(new URL('../../../dist/main.js', import.meta.url))

const MODELS = fileURLToPath(new URL('../../../config/models.yaml', import.meta.url))

/** A valid configuration with a store. Its upstream receives no requests. */
const CONFIG = `
store: sqlite:./data/sluice.db
models: ${MODELS}
upstreams:
  one: { dialect: openai-chat, base_url: https://example.com/v1, api_key: x }
routes:
  - { prefix: gpt-, upstream: one }
plans:
  starter: { price_usd: 20, max_keys: 2 }
  pro: { price_usd: 50, max_keys: 20 }
  max: { price_usd: 100, max_keys: unlimited }
`

/** A gateway on its default address without limits, and with the models of the session. */
export const GATEWAY: StoreSession['gateway'] = {
  dashboard: { publicUrl: null },
  server: { port: 8080, tls: null },
  limits: [],
  dimensions: [],
  files: null,
  escrow: { key: null },
  plans: {
    starter: { priceUsd: 20, maxKeys: 2, limits: {} },
    pro: { priceUsd: 50, maxKeys: 20, limits: {} },
    max: { priceUsd: 100, maxKeys: null, limits: {} },
  },
  catalogue: createCatalogue([
    { id: 'gpt-5.5', family: 'openai', createdAtSeconds: 0, contextWindow: 1_000_000, vision: true },
  ]),
}

export interface TestSession extends StoreSession {
  /** The lines written to standard output since the last call. */
  output(): string[]
  /** The lines written to standard error since the last call. */
  errors(): string[]
  input: string
}

export async function newSession(t: Test): Promise<TestSession> {
  const store = await openSqlite(join(t.testdir(), 'store'))
  t.teardown(() => store.close())
  const out: string[] = []
  const err: string[] = []
  const session: TestSession = {
    store,
    plans: GATEWAY.plans,
    upstreams: ['one'],
    models: ['gpt-5.5', 'gpt-5.4-mini', 'claude-sonnet-5', 'llama*'],
    companies: { providerOf: (upstream) => upstream.toUpperCase(), publisherOf: () => null },
    identities: ['kubernetes'],
    acceptsImported: false,
    gateway: GATEWAY,
    terminal: {
      out: (line) => out.push(line),
      ready: () => Promise.resolve(),
      err: (line) => err.push(line),
      input: () => Promise.resolve(session.input),
    },
    output: () => out.splice(0),
    errors: () => err.splice(0),
    input: '',
  }
  return session
}

/** Runs a command on the open store and returns its exit status. Rejects with `UsageError`. */
export async function runOn(
  session: StoreSession,
  command: (open: OpenStore) => CommandUnknownOpts,
  argv: readonly string[],
): Promise<number> {
  const { SLUICE_CONFIG } = process.env
  process.env['SLUICE_CONFIG'] = SLUICE_CONFIG ?? 'gateway.yaml'
  try {
    return await exitStatus(
      command((_, work) => work(session)),
      argv,
    )
  } finally {
    if (SLUICE_CONFIG === undefined) delete process.env['SLUICE_CONFIG']
  }
}

/** Runs a command in this process and returns its exit status. Rejects with `UsageError`. */
export async function exitStatus(command: CommandUnknownOpts, argv: readonly string[]): Promise<number> {
  const { exitCode } = process
  process.exitCode = 0
  try {
    await runCommand(command, argv)
    return process.exitCode
  } finally {
    process.exitCode = exitCode
  }
}

/** What a command that runs in this process sees: variables to add, and the working folder. */
interface Place {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

/**
 * Runs a command in this process, as the program does, and returns what it printed. One at a time; for
 * commands that end and do not read standard input. A start of the program takes ten times as long.
 */
export async function sluiceHere(args: readonly string[], { env = {}, cwd }: Place = {}) {
  const [name = '', ...rest] = args
  const load = COMMANDS[name]
  if (load === undefined) throw new Error(`there is no command ${name}`)
  const { stdout, stderr } = process
  const real = { env: process.env, cwd: process.cwd() }
  const writes: unknown[] = [stdout, stderr].map((stream) => Reflect.get(stream, 'write'))
  let [out, err] = ['', '']
  process.env = { ...process.env, ...env }
  if (cwd !== undefined) process.chdir(cwd)
  stdout.write = (chunk: unknown) => ((out += String(chunk)), true)
  stderr.write = (chunk: unknown) => ((err += String(chunk)), true)
  let status: number
  try {
    status = await exitStatus(await load(), rest).catch((error: unknown) => printFailure(error, name))
  } finally {
    for (const [at, stream] of [stdout, stderr].entries()) Reflect.set(stream, 'write', writes[at])
    process.chdir(real.cwd)
    process.env = real.env
  }
  return { status, out, err }
}

/** Arguments of a command line. */
export function argvOf(options: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(options).flatMap(([name, value]) => {
    if (value === undefined) return []
    if (value === true) return [`--${name}`]
    return (Array.isArray(value) ? value : [value]).flatMap((each) => [`--${name}`, String(each)])
  })
}

/** The paths of a valid and of an invalid configuration. */
export function configFolder(t: Test): { good: string; bad: string } {
  const path = t.testdir({ 'good.yaml': CONFIG, 'bad.yaml': `${CONFIG}stores: 1\n` })
  return { good: join(path, 'good.yaml'), bad: join(path, 'bad.yaml') }
}

/**
 * Runs the built program until it exits. `reader` reads all of standard output, or closes it after a chunk or
 * at once.
 */
export async function sluice(
  args: readonly string[],
  input = '',
  reader: 'all' | 'first chunk' | 'none' = 'all',
) {
  const child = spawn(process.execPath, [...V8_FLAGS, MAIN, ...args], { stdio: 'pipe' })
  child.stdin.end(input)
  if (reader === 'none') child.stdout.destroy()
  if (reader === 'first chunk') child.stdout.once('data', () => child.stdout.destroy())
  const [out, err] = await Promise.all([
    reader === 'all' ? text(child.stdout) : '',
    text(child.stderr),
    child.exitCode === null ? once(child, 'close') : undefined,
  ])
  return { status: child.exitCode, out, err }
}
