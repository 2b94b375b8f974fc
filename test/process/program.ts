/**
 * Runs the real program in separate processes with an emulator, free ports and a temporary folder. Processes
 * that are left at the end of a test are killed.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import type { KeyLimits } from '../../src/accounts/account.js'
import { createAccount, findAccount } from '../../src/accounts/changes/change-accounts.js'
import { createKey } from '../helpers/keys.js'
import { knownHash, PASSWORD } from '../helpers/password.js'
import type { Labels } from '../../src/accounts/labels.js'
import { startEmulator, type Emulator } from '../../src/emulator/server.js'
import { openStore } from '../../src/store/open-store.js'
import { stopwatch } from '../helpers/stopwatch.js'
import { V8_FLAGS } from '../helpers/test-program.js'

/** The program's entry. */
export const MAIN = fileURLToPath(new URL('../../../dist/main.js', import.meta.url))

/** The upstreams' key: no output may contain it. */
export const CANARY = 'sk-canary0123456789abcdef'
export const EMAIL = 'test@example.com'
export { PASSWORD }

/** A process and its output. */
export interface Program {
  readonly pid: number
  readonly child: ChildProcessByStdio<null, Readable, Readable>
  out(): string
  err(): string
  /** The log so far; lines that are not JSON are omitted. */
  lines(): Record<string, unknown>[]
  /** Resolves with the exit status, or the signal's name, when it has exited and its output is read. */
  readonly ended: Promise<number | string>
  /** Process ids of its children. */
  workers(): number[]
}

/** Runs `sluice` with these arguments. */
export function run(t: Test, args: readonly string[], env: NodeJS.ProcessEnv = {}): Program {
  const child = spawn(process.execPath, [...V8_FLAGS, MAIN, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  })
  let out = ''
  let err = ''
  // Parsed as they arrive: tests read all lines many times while they wait.
  const lines: Record<string, unknown>[] = []
  let parsedTo = 0
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
  const ended = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | string)
  const pid = child.pid ?? 0
  t.teardown(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const orphans = childrenOf(pid)
    child.kill('SIGKILL')
    for (const orphan of orphans) kill(orphan)
    await ended
  })
  return {
    pid,
    child,
    out: () => out,
    err: () => err,
    lines() {
      const end = out.lastIndexOf('\n') + 1
      if (end > parsedTo) lines.push(...out.slice(parsedTo, end).split('\n').flatMap(parsed))
      parsedTo = end
      return [...lines]
    },
    ended,
    workers: () => childrenOf(pid),
  }
}

function parsed(line: string): Record<string, unknown>[] {
  return line.startsWith('{') && line.endsWith('}') ? [JSON.parse(line) as Record<string, unknown>] : []
}

function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  return text === '' ? [] : text.split(' ').map(Number)
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has exited.
  }
}

/** Longest pause between two calls of a condition. */
const LONGEST_PAUSE_MS = 400

/**
 * Polls until the condition is true and returns the milliseconds that this took. Rejects after `ms` with the
 * source of the condition. Waits `pauseMs` between two calls, later a twentieth of the time so far: many
 * conditions ask a gateway, and each question takes CPU time from what they wait for.
 */
export async function until(
  isTrue: () => boolean | Promise<boolean>,
  ms = 60_000,
  pauseMs = 10,
): Promise<number> {
  const began = performance.now()
  const watch = stopwatch()
  while (!(await isTrue())) {
    const waitedMs = performance.now() - began
    if (waitedMs > ms) throw new Error(`not within ${ms} ms: ${isTrue.toString()}`)
    const pause = Math.max(pauseMs, Math.min(waitedMs / 20, LONGEST_PAUSE_MS))
    await new Promise((resolve) => setTimeout(resolve, pause))
  }
  return watch()
}

/** Changes of a test to the gateway's file. */
export interface FileSettings {
  /** Keys of `server:` besides addresses and ports. */
  readonly server?: string
  readonly port?: number
  readonly opsPort?: number
  /** The OpenAI upstream's key. */
  readonly key?: string
  /** The configured upstreams. */
  readonly upstreams?: readonly ('openai' | 'anthropic')[]
  readonly store?: string
  /** Further top-level keys. */
  readonly more?: string
  /** The text of the catalogue; default: the shipped one, whose edited text takes long to read. */
  readonly catalogue?: string
}

/** One process without workers: half the CPU time of a start with two. */
export const ALONE: FileSettings = { server: 'workers: 1, drain_ms: 5000' }

/** The gateway's file: OpenAI and Anthropic behind the emulator. */
export function fileText(emulator: Emulator, settings: FileSettings = {}): string {
  const { server = 'workers: 2, drain_ms: 5000', port = 0, opsPort = 0, key = CANARY } = settings
  const { upstreams = ['openai', 'anthropic'], store = 'sqlite:./data/sluice.db', more = '' } = settings
  const keys = { openai: key, anthropic: CANARY }
  const prefixes = { openai: 'gpt-', anthropic: 'claude-' }
  return `server: { host: 127.0.0.1, port: ${port}, ops_port: ${opsPort}, ${server} }
store: ${store}
${more}
upstreams:
${upstreams
  .map((name) => {
    return `  ${name}: { dialect: ${name}, base_url: ${emulator.baseUrls[name]}, api_key: ${keys[name]} }\n`
  })
  .join('')}routes:
${upstreams.map((name) => `  - { prefix: ${prefixes[name]}, upstream: ${name} }\n`).join('')}`
}

/** `sluice serve`, an emulator and an account with a key. */
export interface Served {
  readonly program: Program
  readonly emulator: Emulator
  readonly file: string
  readonly port: number
  readonly opsPort: number
  readonly secret: string
  /** Starts another process of the program on the same file. */
  again(): Program
  /** Replaces the file in one step, as careful editors do. */
  write(text: string): void
  ops(path: string): Promise<{ status: number; text: string }>
  /** A chat on a new connection, so that the workers serve in turn. */
  chat(body?: object, secret?: string): Promise<Response>
}

/** A valid file with a store; the gateway is not started. */
export async function prepare(t: Test, settings: FileSettings = {}) {
  const emulator = await startEmulator({ models: 'any', ledger: 200_000 })
  t.teardown(() => emulator.close())
  const folder = t.testdir()
  mkdirSync(folder, { recursive: true })
  const file = join(folder, 'gateway.yaml')
  const models = join(folder, 'models.yaml')
  if (settings.catalogue === undefined) copyFileSync('config/models.yaml', models)
  else writeFileSync(models, settings.catalogue)
  writeFileSync(file, fileText(emulator, settings))
  return { emulator, folder, file }
}

/** Starts `sluice serve` and waits until every worker is ready. */
export async function startServe(
  t: Test,
  settings: FileSettings = {},
  env: NodeJS.ProcessEnv = {},
): Promise<Served> {
  const { emulator, folder, file } = await prepare(t, settings)
  const secret = await makeKey(settings.store ?? `sqlite:${join(folder, 'data', 'sluice.db')}`)
  const program = run(t, ['serve', '--config', file], env)
  await until(() => {
    if (program.child.exitCode !== null) throw new Error(`it exited: ${program.err()}`)
    return program.out().includes('"sluice serves"')
  })
  const serves = program.lines().find(({ msg }) => msg === 'sluice serves')
  const port = Number(serves?.['port'])
  const opsPort = Number(serves?.['ops_port'])
  const ops = (path: string) => get(`http://127.0.0.1:${opsPort}${path}`)
  await until(async () => hasAllWorkers(await ops('/readyz')))
  return {
    program,
    emulator,
    file,
    port,
    opsPort,
    secret,
    again: () => run(t, ['serve', '--config', file], env),
    write(text) {
      writeFileSync(`${file}.new`, text)
      renameSync(`${file}.new`, file)
    },
    ops,
    chat: (body = {}, key = secret) => chat(port, key, body),
  }
}

/** Creates a key in the account of `EMAIL`, and the account if it does not exist; returns the secret. */
export async function makeKey(url: string, limits: KeyLimits = {}, labels: Labels = {}): Promise<string> {
  return (await newKey(url, limits, labels)).secret
}

/** The same; also returns the record of the key. */
export async function newKey(
  url: string,
  limits: KeyLimits = {},
  labels: Labels = {},
): Promise<Awaited<ReturnType<typeof createKey>>> {
  const store = await openStore(url)
  try {
    const known = await findAccount(store, EMAIL)
    const wanted = { email: EMAIL, plan: 'max', password: PASSWORD } as const
    const account = known ?? (await createAccount(store, wanted, { hash: knownHash })).account
    const plan = { priceUsd: 0, maxKeys: null }
    const plans = { starter: plan, pro: plan, max: plan }
    return await createKey(store, { plans, account, name: 'a key', limits, labels })
  } finally {
    await store.close()
  }
}

/** A GET on a new connection. */
export async function get(url: string): Promise<{ status: number; text: string }> {
  const response = await fetch(url, { headers: { connection: 'close' } })
  return { status: response.status, text: await response.text() }
}

function chat(port: number, secret: string, body: object): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${secret}`,
      'content-type': 'application/json',
      connection: 'close',
    },
    body: JSON.stringify({
      model: 'gpt-5.4-mini',
      messages: [{ role: 'user', content: 'Hi.' }],
      ...body,
    }),
  })
}

/** Whether a process with this id is running. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Whether a reply of `/readyz` reports that all workers are ready. */
export function hasAllWorkers({ status, text }: { status: number; text: string }): boolean {
  return status === 200 && !/starting|restarting/.test(text)
}

/** Kills the workers first, so that none of them reacts to the exit of the primary. */
export function killAll(program: Program): void {
  for (const pid of [...program.workers(), program.pid]) process.kill(pid, 'SIGKILL')
}
