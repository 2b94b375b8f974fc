/**
 * `sluice demo`: a gateway without any preparation. The emulator replaces all three providers; the
 * configuration is a file that can be edited live, in a temporary folder or in `--folder`.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { existsSync, rmSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import * as z from 'zod'
import { openConfig } from '../config/generations/config-at-start.js'
import type { Catalogue } from '../config/config.js'
import type { ConfigSource } from '../config/generations/config-source.js'
import { openDataPlane, type DataPlane } from '../process/data-plane.js'
import { EMULATED_KEYS } from '../emulator/cloud-credentials.js'
import { startEmulator, type Emulator } from '../emulator/server.js'
import { createLogger, type Logger } from '../observe/log.js'
import { Metrics } from '../observe/metrics/metrics.js'
import { ownProcess } from '../process/process-identity.js'
import { openOps } from '../process/ops/ops-listener.js'
import { packageFile } from '../config/package-file.js'
import { gatewayStatusOf } from '../control/gateway-status.js'
import { AdminTokens, answerGenerations } from '../process/ops/generations-endpoints.js'
import { localConfigControl } from '../process/ops/answer-control-requests.js'
import { configPage, followConfig, lastRefusal } from '../process/ops/configuration-page.js'
import { onSignals } from '../process/signals.js'
import { openStore } from '../store/open-store.js'
import { declare, UsageError } from './command.js'
import { ADMIN, createDemoAccounts, DEMO_USERS, type SampleKey, type SampleName } from './demo-accounts.js'
import { limitDemoKey, writeDemoTraffic } from './demo-traffic.js'

/** `sluice demo`. */
export function command() {
  return declare({
    name: 'demo',
    summary: 'try the gateway with emulated providers, without preparation',
    description: `
Starts the gateway on an embedded store in a temporary folder, with the built-in emulator as OpenAI,
Anthropic, Google and three clouds, creates two sample accounts with members, keys and traffic, and prints their
sign-ins and curl commands to paste. Replies are emulated. The demo deletes its files when it ends.`,
    example: 'sluice demo --port 8080',
  })
    .option('--port <N>', "the gateway's port (default: 8080, or a free one if that is in use)")
    .option('--ops-port <N>', 'the port of metrics, health and readiness (default: 9464, or a free one)')
    .option(
      '--folder <DIR>',
      'keep the files in DIR, and use its account, keys and traffic again at the next start',
    )
    .action(async (options) => {
      const port = await portOf(options.port, 8080, '--port')
      const opsPort = await portOf(options.opsPort, 9464, '--ops-port')
      const files = await openFolder(options.folder)
      try {
        const demo = await startDemo(files, port, opsPort)
        console.log(demo.text)
        await demo.ended
      } finally {
        if (!files.isKept) await rm(files.folder, { recursive: true, force: true })
      }
    })
}

interface DemoFiles {
  readonly folder: string
  /** Whether the files stay when the demo ends (`--folder`). */
  readonly isKept: boolean
}

async function openFolder(kept: string | undefined): Promise<DemoFiles> {
  if (kept === undefined) {
    return { folder: await mkdtemp(join(tmpdir(), 'sluice-demo-')), isKept: false }
  }
  await mkdir(kept, { recursive: true, mode: 0o700 })
  return { folder: resolve(kept), isKept: true }
}

/** The given port; without one, the default port or, if that is in use, a free one. */
async function portOf(text: string | undefined, usual: number, option: string): Promise<number> {
  if (text !== undefined) {
    const port = Number(text)
    if (/^\d+$/.test(text) && port <= 65_535) return port
    throw new UsageError(`${option} must be a port number from 0 to 65535, not "${text}"`)
  }
  if (await isFree(usual)) return usual
  console.error(`sluice: port ${usual} is in use: using a free one`)
  return 0
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen({ port, host: '127.0.0.1' }, () => probe.close(() => resolve(true)))
  })
}

interface Demo {
  readonly text: string
  /** Resolves when a signal has ended it and its files are removed. */
  readonly ended: Promise<void>
}

async function startDemo(files: DemoFiles, port: number, opsPort: number): Promise<Demo> {
  const { folder } = files
  const file = join(folder, 'gateway.yaml')
  const open: Closable[] = []
  try {
    const emulator = track(open, await startEmulator({ paceMs: 20 }))
    emulator.script({ match: isUnreliable, fault: { kind: 'status', code: 500 } })
    await copyFile(packageFile('config/models.yaml'), join(folder, 'models.yaml'))
    await writeFile(join(folder, GOOGLE_FILE), serviceAccount(emulator), { mode: 0o600 })
    const escrowFile = join(folder, ESCROW_FILE)
    // A kept folder has files that the former key encrypts.
    if (!existsSync(escrowFile)) await writeFile(escrowFile, randomBytes(32).toString('hex'), { mode: 0o600 })
    const text = configText(emulator, { port, opsPort, escrowFile })
    // Two generations, so that there is a difference to show and to roll back.
    await writeFile(file, text.replace(ADDED_LATER, ''))
    const source = track(open, await openConfig(file, process.env))
    await writeFile(file, text)
    await source.reload()
    const log = createLogger({ level: 'warn' })
    const metrics = new Metrics()
    const login = await demoAccount(source, files)
    const refused = lastRefusal(source)
    const plane: DataPlane = await openDataPlane(source.current(), {
      log,
      metrics,
      gatewayStatus: async () => gatewayStatusOf(await metrics.text(), refused(), plane.canaries()),
      configControl: localConfigControl(source, log),
      hasSampleData: true,
    })
    setImmediate(() => void plane.openDashboard())
    open.push({ close: () => plane.drain() })
    followConfig(source, { log, metrics, apply: (snapshot) => plane.adopt(snapshot) })
    const tokens = new AdminTokens(source, log)
    const ops = track(
      open,
      await openOps({
        host: '127.0.0.1',
        port: opsPort,
        hosts: () => source.current().config.server.opsHosts,
        metrics: (format) => metrics.text(format),
        ready: () => plane.ready(),
        recentRequests: () => Promise.resolve(plane.recentHeads()),
        config: () => configPage(source, plane.canaries()),
        workers: () => ({ ...ownProcess(), workers: [], restarts: null }),
        generations: (req) => answerGenerations({ source, log, tokens }, req),
      }),
    )
    if (login.sampleKeys.length > 0) {
      // Their failures are intended, and their lines would follow the printed text.
      log.changeTo({ level: 'error' })
      await sendDemoRequests(plane.port, login.sampleKeys)
      log.changeTo({ level: 'warn' })
    }
    const ended = untilSignal(log, open, files)
    const place = { port: plane.port, opsPort: ops.port, file, isKept: files.isKept }
    return { text: welcome(login, place), ended }
  } catch (error) {
    await closeAll(open)
    throw error
  }
}

interface Closable {
  close(): Promise<void>
}

function track<T extends Closable>(open: Closable[], part: T): T {
  open.push(part)
  return part
}

/** Closes in reverse order: users of a part before the part. */
async function closeAll(open: readonly Closable[]): Promise<void> {
  for (const part of [...open].reverse()) await part.close()
}

/** The credentials of a service account of the emulated Google Cloud, in the folder of the demo. */
const GOOGLE_FILE = 'google-service-account.json'

function serviceAccount({ origin }: Emulator): string {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return JSON.stringify({
    type: 'service_account',
    project_id: 'emulated',
    private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    client_email: 'demo@emulated.iam.gserviceaccount.com',
    token_uri: `${origin}/google/token`,
  })
}

/** The secret that encrypts files of batches, in the folder of the demo. */
const ESCROW_FILE = 'escrow.key'

/** The API key of the upstream whose requests the emulator refuses. */
const UNRELIABLE_KEY = 'emulated-unreliable'

function isUnreliable({ headers }: { readonly headers: IncomingHttpHeaders }): boolean {
  return headers.authorization === `Bearer ${UNRELIABLE_KEY}`
}

/** The lines that the second generation of the demo's configuration has added. */
const ADDED_LATER = `limits:
  - { scope: account, prefix: claude-opus, usd_per_day: 5 }
`

interface ConfigParts {
  readonly port: number
  readonly opsPort: number
  readonly escrowFile: string
}

function configText(emulator: Emulator, { port, opsPort, escrowFile }: ConfigParts): string {
  const { openai, anthropic, gemini } = emulator.baseUrls
  const { origin } = emulator
  const { keyId, secret } = EMULATED_KEYS
  return `# The demo's configuration. Edit it while the demo runs: the change is in force within a second.
server: { host: 127.0.0.1, port: ${port}, ops_port: ${opsPort}, workers: 1, drain_ms: 2000 }
store: sqlite:./data/sluice.db
upstreams: # the built-in emulator, as three providers and three clouds
  openai: { dialect: openai, base_url: ${openai}, api_key: emulated, operations: { rerank: cohere-v1 } }
  anthropic: { dialect: anthropic, base_url: ${anthropic}, api_key: emulated }
  google: { dialect: gemini, base_url: ${gemini}, api_key: emulated }
  # the same models at the clouds, with identities that the emulator verifies
  bedrock: { platform: bedrock, dialect: anthropic, region: eu-west-1, base_url: ${origin}, auth: { aws: { access_key_id: ${keyId}, secret_access_key: ${secret} } } }
  vertex: { platform: vertex, dialect: gemini, project: emulated, location: global, base_url: ${origin}, auth: { google: { credentials_file: ${GOOGLE_FILE} } } }
  azure: { platform: azure, dialect: openai, base_url: ${origin}, api_key: emulated }
  unreliable: { dialect: openai, base_url: ${openai}, api_key: ${UNRELIABLE_KEY} } # it fails every request
routes:
  - { model: unreliable, targets: [ { upstream: unreliable, model: gpt-5.4-mini } ] }
  - { model: resilient, targets: [ { upstream: unreliable, model: gpt-5.4-mini } ], fallback: [ { upstream: openai, model: gpt-5.4-mini } ] }
  - { model: claude-on-bedrock, targets: [ { upstream: bedrock, model: 'eu.anthropic.claude-sonnet-5-5' } ], fallback: [ { upstream: anthropic, model: claude-sonnet-5-5 } ] }
  - { model: gemini-on-vertex, targets: [ { upstream: vertex, model: gemini-3.5-flash } ] }
  - { model: gpt-on-azure, targets: [ { upstream: azure, model: gpt-5.4-mini } ] }
  - { prefix: gpt-, upstream: openai }
  - { prefix: o1-, upstream: openai }
  - { prefix: o3-, upstream: openai }
  - { prefix: o4-, upstream: openai }
  - { prefix: text-embedding-, upstream: openai }
  - { prefix: whisper-, upstream: openai }
  - { prefix: tts-, upstream: openai }
  - { prefix: omni-moderation-, upstream: openai }
  - { prefix: rerank-, upstream: openai }
  - { model: o1, upstream: openai }
  - { model: fast, targets: [ { upstream: google, model: gemini-3.5-flash, weight: 3 }, { upstream: openai, model: gpt-5.4-mini } ] } # a virtual model
  - { model: o3, upstream: openai }
  - { prefix: claude-, upstream: anthropic }
  - { prefix: gemini-, upstream: google }
models: models.yaml
escrow: { key: '\${file:${escrowFile}}' }
files: { to: ./data/files } # for batches and files
batches: { poll_seconds: 1 }
${ADDED_LATER}plans:
  starter: { price_usd: 20, max_keys: 5 }
  pro: { price_usd: 50, max_keys: 20 }
  max: { price_usd: 100, max_keys: unlimited }
`
}

const loginSchema = z.object({ password: z.string(), secret: z.string() })

interface Login extends z.infer<typeof loginSchema> {
  /** Empty if the accounts are those of an earlier start: their requests have been sent. */
  readonly sampleKeys: readonly SampleKey[]
}

/** The sign-in and the key: new ones with sample traffic, or those of the last start in a kept folder. */
async function demoAccount(source: ConfigSource, { folder, isKept }: DemoFiles): Promise<Login> {
  const file = join(folder, 'login.json')
  if (isKept && existsSync(file)) {
    const kept = loginSchema.parse(JSON.parse(await readFile(file, 'utf8')))
    return { ...kept, sampleKeys: [] }
  }
  const login = await createSampleData(source)
  const { password, secret } = login
  if (isKept) await writeFile(file, JSON.stringify({ password, secret }), { mode: 0o600 })
  return login
}

/** The model of OpenAI whose announced end is the latest. */
function endingModel({ models }: Catalogue): string {
  const ending = models.filter(
    ({ family, endpoints, shutdownDate }) =>
      family === 'openai' && endpoints?.includes('chat') === true && shutdownDate !== undefined,
  )
  const [last] = ending.sort((a, b) => (b.shutdownDate ?? '').localeCompare(a.shutdownDate ?? ''))
  if (last === undefined) throw new Error('models.yaml has no model of OpenAI with an announced end')
  return last.id
}

async function createSampleData(source: ConfigSource): Promise<Login> {
  const { config, catalogue } = source.current()
  const store = await openStore(config.store)
  try {
    const { password, secret, keys } = await createDemoAccounts(store, config.plans, endingModel(catalogue))
    const rows = await writeDemoTraffic(store.ledger, {
      ...{ apps: keys, catalogue, nowMs: Date.now() },
      sentToday: REQUESTS.reduce((sum, [, , count]) => sum + count, 0),
    })
    for (const key of keys) {
      if (key.name === 'sample-web-app') {
        await limitDemoKey(store, { key, share: 0.85, limits: { requestsPerMinute: 60 } }, rows)
      } else if (key.name === 'sample-evaluation') {
        await limitDemoKey(store, { key, share: 1 }, rows)
      }
    }
    return { password, secret, sampleKeys: keys }
  } finally {
    await store.close()
  }
}

function untilSignal(log: Logger, open: readonly Closable[], { folder, isKept }: DemoFiles): Promise<void> {
  const remove = { recursive: true, force: true }
  return new Promise((resolve) => {
    onSignals({
      log,
      drain: async () => {
        await closeAll(open)
        if (!isKept) await rm(folder, remove)
        resolve()
      },
      abandon: () => {
        if (!isKept) rmSync(folder, remove)
      },
    })
  })
}

interface DemoPlace {
  readonly port: number
  readonly opsPort: number
  /** The configuration file. */
  readonly file: string
  readonly isKept: boolean
}

function welcome(login: Login, { port, opsPort, file, isKept }: DemoPlace): string {
  const base = `http://127.0.0.1:${port}/v1`
  const bearer = `-H 'authorization: Bearer ${login.secret}'`
  // `-w '\n'`: most whole replies are JSON without a final line break.
  const post = (options: string, path: string, body: object): string =>
    `curl ${options} ${base}/${path} \\
  ${bearer} -H 'content-type: application/json' \\
  -d '${JSON.stringify(body)}'`
  const question = 'Name three rivers.'
  const messages = [{ role: 'user', content: question }]
  const chat = 'chat/completions'
  return `
Sluice is up at ${base}. All replies are EMULATED: no provider is called, nothing is billed.
The dashboard shows SAMPLE DATA: accounts, members and keys named sample-…, and their requests, tokens and costs, are made up.

A whole reply from the Anthropic upstream, in the chat-completions format:

${post(`-s -w '\\n'`, chat, { model: 'claude-sonnet-5-5', messages })}

A stream from the Google upstream:

${post('-sN', chat, { model: 'gemini-3.5-flash', stream: true, messages })}

A reply from the OpenAI upstream, and the list of models:

${post(`-s -w '\\n'`, chat, { model: 'gpt-5.4-mini', messages })}

curl -s -w '\\n' ${base}/models ${bearer}

The same models at Bedrock (signed requests), Vertex AI (tokens of a service account) and Azure:

${['claude-on-bedrock', 'gemini-on-vertex', 'gpt-on-azure']
  .map((model) => post(`-s -w '\\n'`, chat, { model, messages }))
  .join('\n\n')}

Two more client formats, Anthropic Messages and OpenAI Responses; every format reaches every model:

${post(`-s -w '\\n'`, 'messages', { model: 'gemini-3.5-flash', max_tokens: 200, messages })}

${post(`-s -w '\\n'`, 'responses', { model: 'claude-sonnet-5-5', input: question })}

  dashboard      http://127.0.0.1:${port}/dashboard/
  e-mail         ${ADMIN}
  password       ${login.password}
  key            ${login.secret}
  metrics        http://127.0.0.1:${opsPort}/metrics
  configuration  ${file} (edit it: changes take effect within a second)

Sign in with the same password as another user, to see what each role may do:

${DEMO_USERS.map(({ email, role }) => `  ${email.padEnd(28)}${role}`).join('\n')}

Create another key from another terminal. It works at once; 'keys revoke' revokes it:

node ${quoted(process.argv[1] ?? '')} keys create --config ${quoted(file)} --account ${ADMIN} --name mine

Ctrl-C ends the demo${isKept ? '; its files stay' : ' and removes its files'}.
`
}

/** One word of a shell. */
function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

// Requests that the demo sends to its own gateway, so that the state of now is as in a gateway in use: an
// upstream whose circuit breaker is open, a limit and a budget that refuse requests.

/** The keys, the models that they ask for (null: the only one of the key), and the number of requests. */
const REQUESTS: readonly (readonly [key: SampleName, model: string | null, count: number])[] = [
  ['sample-web-app', 'claude-sonnet-5-5', 3],
  ['sample-support-bot', 'unreliable', 8],
  ['sample-support-bot', 'resilient', 3],
  ['sample-reports', null, 2],
  ['sample-nightly-batch', 'gpt-5.4-mini', 5],
  ['sample-evaluation', 'gpt-5.4-mini', 2],
]
const TIMEOUT_MS = 10_000

/** Sends the requests. Some fail on purpose; none rejects. */
async function sendDemoRequests(port: number, keys: readonly SampleKey[]): Promise<void> {
  const sent = REQUESTS.flatMap(([name, model, count]) => {
    const key = keys.find((each) => each.name === name)
    const asked = model ?? key?.model
    if (key === undefined || asked === undefined) return []
    return Array.from({ length: count }, () => send(port, key.secret, asked))
  })
  await Promise.allSettled(sent)
}

async function send(port: number, secret: string, model: string): Promise<void> {
  const reply = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ model, max_completion_tokens: 100 },
      messages: [{ role: 'user', content: 'A sample request.' }],
    }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  await reply.arrayBuffer()
}
