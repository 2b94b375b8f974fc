/**
 * A gateway in a process of its own with traffic that has every kind of failure, for the boards and the
 * alerts: four upstreams of an emulator, two that do not exist, limits, a budget, hedges, retries, fallbacks,
 * a canary and a shadow.
 */
import { copyFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { startEmulator, type Emulator } from '../../src/emulator/server.js'
import { newAuthority, type Pair } from '../helpers/certificates.js'
import { startOtlpReceiver, type OtlpReceiver } from '../observe/otlp-receiver.js'
import { get, hasAllWorkers, makeKey, run, until } from '../process/program.js'

/** What the requests of a phase meet. */
export type Phase = 'healthy' | 'provider 429' | 'cut streams' | 'limits'

/** A running gateway and its traffic. */
export interface Scene {
  readonly opsPort: number
  /** Receives the traces of the requests. */
  readonly traces: OtlpReceiver
  /** Standard output and standard error, for messages of failed tests. */
  readonly log: () => string
  /** Sends one request of every kind and waits until all have ended. */
  round(): Promise<void>
  /** Sends some requests that succeed. */
  calm(): Promise<void>
  /** Sends requests of a phase in sequence. */
  play(phase: Phase, requests: number): Promise<void>
  /** Loads a changed configuration, then one with a mistake, then the good one again. */
  reload(): Promise<void>
}

/** A breaker that stays closed, so that every round has the same failures. */
const CLOSED = 'breaker: { failures: 1000, min_requests: 100000 }'

function configText({ baseUrls }: Emulator, otlp: string, client: Pair): string {
  const upstream = (name: string, dialect: 'openai' | 'anthropic' | 'gemini'): string =>
    `  ${name}: { dialect: ${dialect}, base_url: ${baseUrls[dialect]}, api_key: emulated, ${CLOSED} }\n`
  return `
server: { host: 127.0.0.1, port: 0, ops_port: 0, workers: 1, drain_ms: 500 }
store: sqlite:./data/sluice.db
upstreams:
${upstream('openai', 'openai')}${upstream('openai-eu', 'openai')}${upstream('anthropic', 'anthropic')}${upstream('google', 'gemini')}
  canary: { dialect: openai, base_url: 'http://127.0.0.1:1/v1', api_key: emulated, ${CLOSED} }
  broken: { dialect: openai, base_url: 'https://127.0.0.1:1/v1', api_key: emulated, breaker: { failures: 2 }, tls: { cert: ${client.cert}, key: ${client.key} } }
routes:
  - prefix: gpt-
    upstream: openai
    retry: { attempts: 6, budget: 0.3, max_wait_ms: 100 }
    fallback: [{ upstream: openai-eu }, { upstream: anthropic, model: claude-sonnet-4-5 }]
  - model: gpt-4.1-mini
    targets: [{ upstream: openai-eu }]
    hedge: { after_ms: 50, extra_spend: 0.5 }
    fallback: [{ upstream: openai }]
  - { model: gpt-4o-mini, upstream: broken }
  - { prefix: claude-, upstream: anthropic }
  - prefix: gemini-
    upstream: google
    shadow: { upstream: openai-eu, model: gpt-5.4-mini, percent: 100 }
  - model: gpt-4.1-nano
    targets: [{ upstream: openai }, { upstream: canary, weight: 5, abort: { min_requests: 1 } }]
models: models.yaml
telemetry: { otlp: '${otlp}' }
metrics: { labels: { team: 2 } }
limits:
  - { scope: key, model: gpt-4o, requests_per_minute: 1 }
  - { scope: account, prefix: claude-, usd_per_month: 1000 }
`
}

/** Starts the scene, which ends with the test. `paceMs` is the time between the events of a stream. */
export async function startScene(t: Test, paceMs = 2): Promise<Scene> {
  const emulator = await startEmulator({ models: 'any', paceMs })
  t.teardown(() => emulator.close())
  const folder = t.testdir()
  const file = join(folder, 'gateway.yaml')
  const traces = await startOtlpReceiver(t)
  const good = configText(emulator, traces.url, newAuthority(folder, 'client'))
  copyFileSync('config/models.yaml', join(folder, 'models.yaml'))
  writeFileSync(file, good)
  const store = `sqlite:${join(folder, 'data', 'sluice.db')}`
  const secret = await makeKey(store, {}, { team: 'search' })
  const program = run(t, ['serve', '--config', file], { OTEL_BSP_SCHEDULE_DELAY: '500' })
  const log = (): string => `${program.out().slice(-3000)}${program.err()}`
  await until(() => {
    if (program.child.exitCode !== null) throw new Error(`the gateway ended: ${log()}`)
    return program.out().includes('"sluice serves"')
  }, 60_000)
  const serves = program.lines().find(({ msg }) => msg === 'sluice serves')
  const opsPort = Number(serves?.['ops_port'])
  const origin = `http://127.0.0.1:${Number(serves?.['port'])}`
  await until(async () => hasAllWorkers(await get(`http://127.0.0.1:${opsPort}/readyz`)), 60_000)
  const write = (text: string): void => {
    writeFileSync(`${file}.new`, text)
    renameSync(`${file}.new`, file)
  }
  const shows = async (line: RegExp): Promise<boolean> =>
    line.test((await get(`http://127.0.0.1:${opsPort}/metrics`)).text)
  return {
    opsPort,
    traces,
    log,
    round: async () => {
      await Promise.all(REQUESTS.map((send) => send({ origin, secret })))
    },
    calm: async () => {
      await Promise.all(REQUESTS.slice(0, GOOD).map((send) => send({ origin, secret })))
    },
    play: async (phase, requests) => {
      const send = PHASES[phase]
      for (let at = 0; at < requests; at += 1) await send[at % send.length]?.({ origin, secret })
    },
    async reload() {
      write(good.replace('drain_ms: 500', 'drain_ms: 600'))
      await until(() => shows(/^sluice_config_reloads_total\{result="ok"\} [1-9]/m), 60_000)
      write(`${good}nonsense: true\n`)
      await until(() => shows(/^sluice_config_reloads_total\{result="refused"\} [1-9]/m), 60_000)
      write(good)
    },
  }
}

interface Client {
  readonly origin: string
  readonly secret: string
}

type Send = (client: Client) => Promise<void>

/** Reads the reply to its end; some requests expect a truncated stream. */
async function post(
  url: string,
  secret: string,
  { body, signal }: { body: object; signal?: AbortSignal | undefined },
): Promise<void> {
  try {
    const reply = await fetch(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      ...(signal === undefined ? {} : { signal }),
    })
    await reply.text()
  } catch {
    // The stream was cut, or the client left.
  }
}

/** A chat whose prompt has the emulator's directives. */
function chat(model: string, prompt: string, more: object = {}): Send {
  return ({ origin, secret }) => {
    const messages = [{ role: 'user', content: prompt }]
    return post(`${origin}/v1/chat/completions`, secret, { body: { model, messages, ...more } })
  }
}

const STREAM = { stream: true, stream_options: { include_usage: true } }

/** The number of requests at the start that succeed. */
const GOOD = 5

const REQUESTS: readonly Send[] = [
  chat('gpt-5.4-mini', 'Hi. [[words: 40]]', STREAM),
  chat('gpt-5.4-mini', 'Hi.'),
  chat('claude-sonnet-4-5', 'Hi. [[words: 40]]', STREAM),
  chat('claude-sonnet-4-5', 'Hi.', { seed: 7, max_completion_tokens: 100 }),
  chat('gemini-2.5-flash', 'Hi. [[words: 40]]', STREAM),
  // The provider fails: retries, then the next targets.
  chat('gpt-5.4', '[[fault: status code=500]] Hi.', STREAM),
  chat('gpt-5.4', '[[fault: status code=503 times=1]] Hi.', STREAM),
  chat('gpt-5.4-mini', '[[fault: status code=429 retry-after=1]] Hi.'),
  chat('claude-sonnet-4-5', '[[fault: status code=401]] Hi.'),
  chat('claude-sonnet-4-5', '[[fault: cut event=4 mode=eof]] Hi. [[words: 40]]', STREAM),
  chat('gemini-2.5-flash', '[[fault: garbage event=3]] Hi. [[words: 40]]', STREAM),
  chat('gpt-4o-mini', 'Hi.'),
  chat('gpt-4.1-nano', 'To a canary that fails.'),
  // The first content is late: a hedge.
  chat('gpt-4.1-mini', '[[fault: delay ms=150 mode=first]] Hi.', STREAM),
  // Failures of the client.
  chat('gpt-4o', 'Over its limit.'),
  chat('unheard-of', 'Hi.'),
  ({ origin }) => post(`${origin}/v1/chat/completions`, 'sk-sluice-wrong', { body: { model: 'gpt-5.4' } }),
  ({ origin, secret }) =>
    post(`${origin}/v1/chat/completions`, secret, {
      body: {
        model: 'claude-sonnet-4-5',
        messages: [{ role: 'user', content: '[[words: 150]] [[pace: 20]]' }],
        ...STREAM,
      },
      signal: AbortSignal.timeout(300),
    }),
  // Other formats.
  ({ origin, secret }) =>
    post(`${origin}/v1/messages`, secret, {
      body: {
        model: 'gpt-5.4-mini',
        max_tokens: 50,
        messages: [{ role: 'user', content: 'Hi.' }],
      },
    }),
  ({ origin, secret }) =>
    post(`${origin}/v1beta/models/claude-sonnet-4-5:generateContent`, secret, {
      body: {
        contents: [{ role: 'user', parts: [{ text: 'Hi.' }] }],
      },
    }),
]

/** No route of these has a fallback. */
const PHASES: Readonly<Record<Phase, readonly Send[]>> = {
  healthy: REQUESTS.slice(0, GOOD),
  'provider 429': [
    chat('gemini-2.5-flash', '[[fault: status code=429]] Hi.'),
    chat('claude-sonnet-4-5', '[[fault: status code=429]] Hi.', STREAM),
  ],
  'cut streams': [chat('claude-sonnet-4-5', '[[fault: cut event=4 mode=eof]] Hi. [[words: 40]]', STREAM)],
  limits: [
    chat('gpt-4o', 'Over its limit.'),
    chat('unheard-of', 'Hi.'),
    chat('gemini-2.5-flash', 'Hi.'),
    chat('claude-sonnet-4-5', 'Hi.', { max_completion_tokens: -1 }),
  ],
}
