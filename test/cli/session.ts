/** An open store in a temporary folder and a terminal that remembers, for the commands' tests. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import type { StoreSession } from '../../src/cli/with-store.js'
import { openSqlite } from '../../src/store/sqlite/store.js'

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url))

const MODELS = fileURLToPath(new URL('../../../config/models.yaml', import.meta.url))

/** What a configuration needs to be good and to name a store; no upstream is ever asked. */
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

export interface TestSession extends StoreSession {
  /** What was written to standard output since the last call, a line each. */
  output(): string[]
  /** The same of standard error. */
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
    plans: {
      starter: { priceUsd: 20, maxKeys: 2 },
      pro: { priceUsd: 50, maxKeys: 20 },
      max: { priceUsd: 100, maxKeys: null },
    },
    terminal: {
      out: (line) => out.push(line),
      err: (line) => err.push(line),
      input: () => Promise.resolve(session.input),
    },
    output: () => out.splice(0),
    errors: () => err.splice(0),
    input: '',
  }
  return session
}

/** A folder with a good configuration, and a bad one. */
export function configFolder(t: Test): { good: string; bad: string } {
  const path = t.testdir({ 'good.yaml': CONFIG, 'bad.yaml': `${CONFIG}stores: 1\n` })
  return { good: join(path, 'good.yaml'), bad: join(path, 'bad.yaml') }
}

/** The real program, in a process of its own; `isHeard`: somebody reads what it prints. */
export async function sluice(args: readonly string[], input = '', isHeard = true) {
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: 'pipe' })
  child.stdin.end(input)
  if (!isHeard) child.stdout.destroy()
  const [out, err] = await Promise.all([
    isHeard ? text(child.stdout) : '',
    text(child.stderr),
    child.exitCode === null ? once(child, 'close') : undefined,
  ])
  return { status: child.exitCode, out, err }
}
