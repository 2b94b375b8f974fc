/**
 * Goal: the coding agents work with a key of the gateway on a model of each vendor, and end with our words if
 * it refuses them, instead of waiting.
 * Method: the programs from npm with an empty home, set up by `sluice connect`, over the emulator: a chat, a
 * loop with a tool of the agent, a picture, a wrong key, an unknown model, a spent rate limit and a spent
 * budget; Codex on a WebSocket, on one that is cut, and without one; those with a helper command for a person
 * who signed in with an identity provider. `UPDATE=1` writes the results to docs/reference/clients.md.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect as openConnection, createServer, type AddressInfo } from 'node:net'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { deflateSync, crc32 } from 'node:zlib'
import t, { type Test } from 'tap'
import type { KeyLimits } from '../../src/accounts/account.js'
import { changeUser } from '../../src/accounts/members.js'
import { objectOf } from '../../src/base/json.js'
import { openStore } from '../../src/store/open-store.js'
import { startLogin, type LoginStage } from '../control/login/login-stage.js'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { createKey } from '../helpers/keys.js'
import { rowsOf } from '../helpers/ledger.js'
import { needing, packagesMissing } from './missing-parts.js'
import { shell, show } from './shell.js'

/** A model of each vendor. */
const MODELS = { openai: 'gpt-5.4', anthropic: 'claude-sonnet-5-5', google: 'gemini-3.5-flash' }
const STEPS = ['chat', 'tools', 'picture', '401', '404', '429', '402'] as const
type Step = (typeof STEPS)[number]

/** A picture is in the example's folder under this name. */
const PICTURE = 'picture.png'
/** A program that waits longer after a refusal repeats the request. */
const LIMIT_MS = 120_000

/** One start of an agent. */
interface Question {
  readonly home: string
  readonly model: string
  readonly prompt: string
  readonly hasPicture: boolean
}

/** How an agent is started without a terminal. */
interface Command {
  readonly args: readonly string[]
  readonly env?: NodeJS.ProcessEnv
  readonly input?: string
}

interface Agent {
  readonly name: string
  readonly package: string
  /** The version that the suite of this release was written with. */
  readonly version: string
  readonly program: string
  /** Its name for `sluice connect`. */
  readonly client: string
  /** A tool that reads and is allowed without a question. */
  readonly tool: string
  readonly command: (question: Question) => Command
}

const AGENTS: readonly Agent[] = [
  {
    name: 'Claude Code',
    package: '@anthropic-ai/claude-code',
    version: '2.1.197',
    program: 'claude',
    client: 'claude-code',
    tool: 'Glob',
    command: ({ prompt, hasPicture, home }) => {
      const picture = {
        type: 'base64',
        media_type: 'image/png',
        data: readFileSync(join(home, PICTURE), 'base64'),
      }
      const content = [
        { type: 'text', text: prompt },
        ...(hasPicture ? [{ type: 'image', source: picture }] : []),
      ]
      const json = ['--input-format', 'stream-json', '--output-format', 'stream-json', '--verbose']
      return {
        args: ['-p', '--allowedTools', 'Glob', ...json],
        input: `${JSON.stringify({ type: 'user', message: { role: 'user', content } })}\n`,
        env: { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' },
      }
    },
  },
  {
    name: 'Codex',
    package: '@openai/codex',
    version: '0.171.0',
    program: 'codex',
    client: 'codex',
    tool: 'update_plan',
    command: ({ prompt, hasPicture }) => {
      const picture = hasPicture ? ['--image', PICTURE] : []
      return { args: ['exec', '--skip-git-repo-check', prompt, ...picture] }
    },
  },
  {
    name: 'Gemini CLI',
    package: '@google/gemini-cli',
    version: '0.61.0',
    program: 'gemini',
    client: 'gemini-cli',
    tool: 'glob',
    command: ({ model, prompt, hasPicture }) => {
      const asked = hasPicture ? `${prompt} @${PICTURE}` : prompt
      return { args: ['--skip-trust', '--model', model, '-p', asked] }
    },
  },
  {
    name: 'opencode',
    package: 'opencode-ai',
    version: '1.18.33',
    program: 'opencode',
    client: 'opencode',
    tool: 'glob',
    command: ({ prompt, hasPicture }) => {
      const picture = hasPicture ? ['--file', PICTURE] : []
      return { args: ['run', prompt, ...picture] }
    },
  },
]

/** The home and the gateway of an agent. */
interface Place {
  readonly model: string
  readonly secret: string
  readonly origin: string
  readonly home: string
  /** Signs a person in with `sluice login`: the agent gets tokens instead of the key. */
  readonly signIn?: (home: string) => Promise<void>
}

/**
 * Writes the agent's files with `sluice connect`. Returns the variable with the key: everything else has to
 * be in the files.
 */
async function connect({ client }: Agent, place: Place): Promise<NodeJS.ProcessEnv> {
  const { model, secret, origin, home, signIn } = place
  const login = signIn === undefined ? [] : ['--login']
  const options = ['--url', origin, '--model', model, '--write', '--yes', '--json', ...login]
  const { status, out, err } = await shell(
    [process.execPath, resolve('dist/main.js'), 'connect', client, ...options],
    { cwd: home, env: { PATH: process.env['PATH'], HOME: home }, secret: true },
  )
  if (status !== 0) throw new Error(`sluice connect ${client}: ${err}`)
  const { env } = objectOf(JSON.parse(out))
  const names = Object.entries(objectOf(env)).filter(([, value]) => value === '${SLUICE_KEY}')
  return Object.fromEntries(names.map(([name]) => [name, secret]))
}

/** A white PNG of one pixel. */
function pixel(): Buffer {
  const chunk = (type: string, data: Buffer): Buffer => {
    const body = Buffer.concat([Buffer.from(type), data])
    const frame = Buffer.alloc(8)
    frame.writeUInt32BE(data.length, 0)
    frame.writeUInt32BE(crc32(body), 4)
    return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)])
  }
  const size = Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0, 0, 0])
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk('IHDR', size),
    chunk('IDAT', deflateSync(Buffer.from([0, 255, 255, 255]))),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

/** Installs the agents in these versions; null if the registry has not all of them. */
async function install(folder: string, packages: readonly string[]): Promise<string | null> {
  const bin = join(folder, 'node_modules/.bin')
  const stamp = join(folder, 'installed')
  const list = packages.join('\n')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === list) return bin
  mkdirSync(folder, { recursive: true })
  const flags = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefix', folder]
  const { status } = await shell(['npm', 'install', ...flags, ...packages])
  if (status !== 0) return null
  // npm may block install scripts; those of these two link the program of the platform's own package.
  const linked = ['@anthropic-ai/claude-code', 'opencode-ai']
  await shell(['npm', 'rebuild', '--ignore-scripts=false', '--prefix', folder, ...linked])
  writeFileSync(stamp, list)
  return bin
}

function notInstalled(t: Test): void {
  t.pass('agents', needing('the agents could not be installed'))
}

/** The keys of an agent. */
interface Keys {
  readonly free: { readonly id: string; readonly secret: string }
  /** By model: one for each, since the refused request is repeated in the next minute. */
  readonly limited: Readonly<Record<string, string>>
  readonly spent: string
}

/** A key without limits, keys with one request a minute, and one whose budget is too small. */
async function keysOf(gateway: TestGateway, { name }: Agent): Promise<Keys> {
  const free = await keyWith(gateway, name, {})
  const limited: Record<string, string> = {}
  for (const model of Object.values(MODELS)) {
    limited[model] = (await keyWith(gateway, `${name} ${model}`, { requestsPerMinute: 1 })).secret
  }
  const spent = await keyWith(gateway, `${name} spent`, { nanoUsdPerDay: 1 })
  return { free, limited, spent: spent.secret }
}

async function keyWith(gateway: TestGateway, name: string, limits: KeyLimits): Promise<Keys['free']> {
  const store = await openStore(gateway.store)
  const account = await store.accountByEmail('test@example.com')
  if (account === null) throw new Error('no account')
  const { secret, key } = await createKey(store, { plans: gateway.plans, account, name, limits })
  await store.close()
  return { id: key.id, secret }
}

interface Ended {
  readonly output: string
  readonly seconds: number
  readonly isKilled: boolean
}

async function run(
  bin: string,
  agent: Agent,
  asked: Omit<Question, 'home'> & Omit<Place, 'home'>,
): Promise<Ended> {
  const home = mkdtempSync(join(tmpdir(), 'sluice-agent-'))
  writeFileSync(join(home, PICTURE), pixel())
  await asked.signIn?.(home)
  const ownEnv = await connect(agent, { ...asked, home })
  const { args, env, input } = agent.command({ ...asked, home })
  const beganMs = performance.now()
  const child = spawn(join(bin, agent.program), args, {
    cwd: home,
    detached: true,
    env: { PATH: `${home}:${process.env['PATH'] ?? ''}`, HOME: home, ...certificates(), ...env, ...ownEnv },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  child.stdin.on('error', () => undefined)
  child.stdin.end(input ?? '')
  let isKilled = false
  const timer = setTimeout(() => {
    isKilled = true
    endGroup(child.pid)
  }, LIMIT_MS)
  try {
    const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    return { output: `${out}\n${err}`, seconds: (performance.now() - beganMs) / 1000, isKilled }
  } finally {
    clearTimeout(timer)
    endGroup(child.pid)
    rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
  }
}

/** Agents leave servers of their own behind. */
function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

function certificates(): NodeJS.ProcessEnv {
  const { NODE_EXTRA_CA_CERTS: own } = process.env
  return own === undefined ? {} : { NODE_EXTRA_CA_CERTS: own, SSL_CERT_FILE: own }
}

/** What is wrong with the run of a step; null if it is right. */
type Check = (ended: Ended, requests: number) => string | null

function expects(pattern: RegExp): Check {
  return ({ output, isKilled }) => {
    if (isKilled) return `still running after ${String(LIMIT_MS / 1000)} s`
    return pattern.test(output) ? null : `prints ${JSON.stringify(output.slice(-300))}`
  }
}

const CHECKS: Readonly<Record<Step, Check>> = {
  chat: expects(/emulated reply/),
  tools: (ended, requests) => expects(/returned/)(ended, requests) ?? (requests > 1 ? null : 'calls no tool'),
  picture: expects(/emulated reply/),
  '401': expects(/API key|authenticat|401/i),
  '404': expects(/no-such-model|not found|404|may not exist/i),
  // Waiting is right: the limit is over in a minute, and the request is answered then.
  '429': ({ output, isKilled }) => {
    return isKilled || /limit|429|emulated reply/i.test(output)
      ? null
      : `prints ${JSON.stringify(output.slice(-300))}`
  },
  '402': expects(/budget/i),
}

interface Scene {
  readonly gateway: TestGateway
  readonly bin: string
  readonly keys: ReadonlyMap<Agent, Keys>
}

/** The number of ledger entries of a key. */
async function requestsOf(gateway: TestGateway, keyId: string): Promise<number> {
  return (await rowsOf(gateway)).filter((row) => row.keyId === keyId).length
}

async function step(
  { gateway, bin, keys }: Scene,
  agent: Agent,
  { model, name }: { readonly model: string; readonly name: Step },
): Promise<string | null> {
  const own = keys.get(agent)
  if (own === undefined) throw new Error(`no keys for ${agent.name}`)
  const limited = own.limited[model] ?? ''
  if (name === '429') await useMinute(gateway, limited)
  const secrets: Partial<Record<Step, string>> = {
    '401': `sk_${'x'.repeat(43)}`,
    '429': limited,
    '402': own.spent,
  }
  const before = await requestsOf(gateway, own.free.id)
  const ended = await run(bin, agent, {
    origin: gateway.origin,
    model: name === '404' ? 'no-such-model' : model,
    secret: secrets[name] ?? own.free.secret,
    prompt: name === 'tools' ? `Use the ${agent.tool} tool now.` : 'Say hello.',
    hasPicture: name === 'picture',
  })
  const requests = (await requestsOf(gateway, own.free.id)) - before
  const fault = CHECKS[name](ended, requests)
  show(
    `${agent.name}, ${model}, ${name}: ${fault ?? 'ok'} (${ended.seconds.toFixed(1)} s, ${String(requests)} requests)`,
  )
  return fault
}

/** Uses the one request of the minute. */
async function useMinute(gateway: TestGateway, secret: string): Promise<void> {
  const headers = { authorization: `Bearer ${secret}` }
  const body = { model: MODELS.openai, messages: [{ role: 'user', content: 'Hi' }] }
  await (await gateway.chat(body, { headers })).text()
}

/** The results as the table of the reference. */
function table(versions: ReadonlyMap<Agent, string>, faults: ReadonlyMap<string, string>): string {
  const rows = AGENTS.flatMap((agent) =>
    Object.entries(MODELS).map(([vendor, model]) => {
      const cells = STEPS.map((name) => (faults.has(`${agent.name} ${vendor} ${name}`) ? 'fails' : 'yes'))
      return `| ${agent.name} ${String(versions.get(agent))} | \`${model}\` | ${cells.join(' | ')} |`
    }),
  )
  const head = `| agent | model | chat | tool loop | picture | wrong key | unknown model | rate limit | budget |`
  return [head, '| --- | --- | --- | --- | --- | --- | --- | --- | --- |', ...rows].join('\n')
}

const MARK = /(<!-- Written by `UPDATE=1 npm run journeys`\. -->\n)[\s\S]*?(\n<!-- End\. -->)/

async function journey(
  t: Test,
  bin: string,
  vendors: readonly (keyof typeof MODELS)[],
): Promise<Map<string, string>> {
  const gateway = await startGateway(t)
  const keys = new Map<Agent, Keys>()
  for (const agent of AGENTS) keys.set(agent, await keysOf(gateway, agent))
  const scene: Scene = { gateway, bin, keys }
  const faults = new Map<string, string>()
  const all = (vendor: keyof typeof MODELS, name: Step): Promise<unknown> =>
    Promise.all(
      AGENTS.map(async (agent) => {
        const fault = await step(scene, agent, { model: MODELS[vendor], name })
        t.equal(fault, null, `${agent.name}, ${vendor}, ${name}`)
        if (fault !== null) faults.set(`${agent.name} ${vendor} ${name}`, fault)
      }),
    )
  for (const vendor of vendors) {
    for (const name of STEPS) if (name !== '429') await all(vendor, name)
  }
  // Here they wait for the end of the minute, all at the same time.
  await Promise.all(vendors.map((vendor) => all(vendor, '429')))
  return faults
}

const skip = needing(await packagesMissing())
/** A new release of an agent is no fault of a change: `.ci/run` leaves it to `npm run journeys`. */
const skipNewest =
  process.env['SLUICE_NEWEST'] === '0' ? { skip: 'SLUICE_NEWEST=0: the versions of this release only' } : skip

void t.test('agents in the versions of this release', skip, async (t) => {
  const bin = await install(
    resolve('build/clients/agents'),
    AGENTS.map((agent) => `${agent.package}@${agent.version}`),
  )
  if (bin === null) return notInstalled(t)
  const faults = await journey(t, bin, ['openai', 'anthropic', 'google'])
  if (process.env['UPDATE'] !== '1') return
  const page = 'docs/reference/clients.md'
  const versions = new Map(AGENTS.map((agent) => [agent, agent.version]))
  writeFileSync(page, readFileSync(page, 'utf8').replace(MARK, `$1\n${table(versions, faults)}\n$2`))
  await shell(['npx', 'prettier', '--write', page])
})

/** The number of turns, or of handshakes, in a gateway's log. */
function linesOf({ lines }: TestGateway, method: 'GET' | 'POST', status: number): number {
  return lines.filter((line) => line['method'] === method && line['status'] === status).length
}

/** The place of a cut: the chunk with this text, which the client gets or not. */
interface Cut {
  readonly at: string
  /** The chunks with the text before that one. */
  readonly after: number
  readonly isDelivered: boolean
}

/** The phases of a turn. The first reply of a connection is that of the prewarm. */
const CUTS: Readonly<Record<string, Cut>> = {
  'before the first event': { at: '"type":"response.created"', after: 1, isDelivered: false },
  'in the middle of a reply': { at: '"type":"response.output_item.added"', after: 0, isDelivered: false },
  'after a call of a tool': { at: '"type":"response.completed"', after: 1, isDelivered: true },
}

/** A proxy that cuts its first connection. */
async function cutter(t: Test, { port }: TestGateway, { at, after, isDelivered }: Cut): Promise<string> {
  let hasCut = false
  let seen = 0
  const proxy = createServer((client) => {
    const upstream = openConnection(port, '127.0.0.1')
    client.pipe(upstream)
    upstream.on('data', (chunk: Buffer) => {
      const isHere = !hasCut && chunk.includes(at)
      if (isHere) seen += 1
      hasCut ||= isHere && seen > after
      if (!isHere || !hasCut) client.write(chunk)
      else if (isDelivered) client.end(chunk)
      else client.destroy()
    })
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on('error', () => undefined).once('close', () => other.destroy())
    }
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  t.teardown(() => proxy.close())
  const { port: own } = proxy.address() as AddressInfo
  return `http://127.0.0.1:${String(own)}`
}

/** Turns begin with a message of what is left. */
const SESSIONS = `dimensions: [{ name: session, from: [header:session-id], required: true }]
limits: [{ scope: 'dimension:session', requests_total: 50 }]`

void t.test('Codex over WebSocket', skip, async (t) => {
  const bin = await install(
    resolve('build/clients/agents'),
    AGENTS.map((agent) => `${agent.package}@${agent.version}`),
  )
  const codex = AGENTS.find(({ client }) => client === 'codex')
  if (bin === null || codex === undefined) return notInstalled(t)
  const gateway = await startGateway(t, { more: SESSIONS })
  const { secret, origin } = gateway
  const asked = { secret, origin, hasPicture: false }
  for (const model of Object.values(MODELS)) {
    const [sockets, turns, entries] = [
      linesOf(gateway, 'GET', 101),
      linesOf(gateway, 'POST', 200),
      await rowsOf(gateway),
    ]
    const { output } = await run(bin, codex, { ...asked, model, prompt: `Use the ${codex.tool} tool now.` })
    t.match(output, /returned/, `${model}: a tool loop`)
    t.equal(linesOf(gateway, 'GET', 101) - sockets, 1, `${model}: one connection`)
    const added = (await rowsOf(gateway)).length - entries.length
    t.equal(linesOf(gateway, 'POST', 200) - turns, added + 1, `${model}: the first turn only warms up`)
  }
  for (const model of Object.values(MODELS)) {
    for (const [phase, cut] of Object.entries(CUTS)) {
      const before = { sockets: linesOf(gateway, 'GET', 101), entries: (await rowsOf(gateway)).length }
      const { output } = await run(bin, codex, {
        ...asked,
        origin: await cutter(t, gateway, cut),
        ...{ model, prompt: `Use the ${codex.tool} tool now.` },
      })
      t.match(output, /returned/, `${model}: cut ${phase}`)
      t.ok(linesOf(gateway, 'GET', 101) - before.sockets > 1, 'goes on over another connection')
      const rows = (await rowsOf(gateway)).slice(before.entries)
      const ids = new Set(rows.map(({ requestId }) => requestId))
      t.equal(ids.size, rows.length, 'each turn has one entry')
      const ends = rows.map(({ outcome, costNanoUsd }) => `${outcome} ${String(costNanoUsd)}`).join(', ')
      // The turn and that with the result of the tool, and the one that the agent repeats.
      const isRepeated = cut.isDelivered ? rows.length <= 3 : rows.length === 3
      t.ok(rows.length >= 2 && isRepeated, `nothing is lost, and one turn at most is repeated: ${ends}`)
      show(`Codex, ${model}, cut ${phase}: ${ends}`)
    }
  }
  const other = await startGateway(t, { more: 'responses: { websocket: false }' })
  const overHttp = { ...asked, origin: other.origin, secret: other.secret }
  const fallback = await run(bin, codex, { ...overHttp, model: MODELS.anthropic, prompt: 'Say hello.' })
  t.match(fallback.output, /emulated reply/, 'over HTTP after a 426')
  t.equal(linesOf(other, 'GET', 426), 1)
  t.equal(linesOf(other, 'POST', 200), 1)
})

/** Puts `sluice` into the folder, which is on the agent's path, and signs the person in. */
async function signIn(stage: LoginStage, email: string, home: string): Promise<void> {
  const program = `exec "${process.execPath}" "${resolve('dist/main.js')}" "$@"`
  writeFileSync(join(home, 'sluice'), `#!/bin/sh\n${program}\n`, { mode: 0o755 })
  const env = { PATH: process.env['PATH'], HOME: home }
  const args = ['login', stage.origin, '--no-browser']
  const child = spawn(join(home, 'sluice'), args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  child.stdout.setEncoding('utf8')
  let output = ''
  const ended = once(child, 'close') as Promise<[number | null]>
  for await (const chunk of child.stdout) {
    const hadCode = CODE.test(output)
    output += String(chunk)
    const code = CODE.exec(output)?.[1]
    if (hadCode || code === undefined) continue
    const browser = await stage.person(email)
    await browser.ask('POST', `/device/${code}`, { body: { approve: true } })
  }
  const [status] = await ended
  if (status !== 0) throw new Error(`sluice login exited with ${String(status)}`)
}

const CODE = /approve the code (\S+)\n/

void t.test('agents with a helper command, for a person who signed in', skip, async (t) => {
  const bin = await install(
    resolve('build/clients/agents'),
    AGENTS.map((agent) => `${agent.package}@${agent.version}`),
  )
  if (bin === null) return notInstalled(t)
  const stage = await startLogin(t)
  const { store, origin, gateway } = stage
  const programs = ['claude-code', 'codex']
  for (const [at, agent] of AGENTS.filter(({ client }) => programs.includes(client)).entries()) {
    const email = `dev${String(at)}@example.com`
    const { id } = await stage.account(email)
    const asked = { origin, secret: '', hasPicture: false, prompt: 'Say hello.', model: MODELS.anthropic }
    const ended = await run(bin, agent, { ...asked, signIn: (home) => signIn(stage, email, home) })
    t.match(ended.output, /emulated reply/, agent.name)
    const entries = (await rowsOf(gateway)).filter(({ user }) => user === email)
    t.ok(entries.length > 0, `${agent.name}: entries of the person`)
    t.ok(
      entries.every(({ program }) => program === agent.client),
      `${agent.name}: the program`,
    )
    const disabled = await run(bin, agent, {
      ...asked,
      signIn: async (home) => {
        await signIn(stage, email, home)
        const change = { edit: { disabled: true }, nowMs: Date.now(), audit: () => [] }
        await changeUser(store, id, change)
      },
    })
    t.notMatch(disabled.output, /emulated reply/, `${agent.name}: a disabled person`)
    t.notOk(disabled.isKilled, `${agent.name}: ends when the person is disabled`)
    show(
      `${agent.name}, signed in: ${ended.seconds.toFixed(1)} s; disabled: ${disabled.seconds.toFixed(1)} s`,
    )
  }
})

void t.test('agents in their newest versions', skipNewest, async (t) => {
  const newest = await Promise.all(
    AGENTS.map(async (agent) => (await shell(['npm', 'view', agent.package, 'version'])).out.trim()),
  )
  const changed = AGENTS.filter((agent, at) => newest[at] !== '' && newest[at] !== agent.version)
  if (changed.length === 0) {
    t.pass('the newest versions are those of this release')
    return
  }
  const folder = resolve('build/clients/newest-agents')
  cpSync(resolve('build/clients/agents'), folder, { recursive: true, verbatimSymlinks: true })
  const bin = await install(
    folder,
    AGENTS.map((agent, at) => `${agent.package}@${newest[at] || agent.version}`),
  )
  if (bin === null) return notInstalled(t)
  await journey(t, bin, ['openai'])
})
