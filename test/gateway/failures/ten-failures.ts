/**
 * Produces ten failures of requests with different causes on one gateway with the emulator. The log test and
 * the pictures of the dashboard's request drawer use the same ten.
 */
import { connect } from 'node:net'
import type { Test } from 'tap'
import type { KeyLimits } from '../../../src/accounts/account.js'
import { createKey } from '../../helpers/keys.js'
import { loadConfig } from '../../../src/config/load-config.js'
import type { Cause, ErrorKind } from '../../../src/errors.js'
import { openStore } from '../../../src/store/open-store.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { until } from '../../helpers/upstream.js'

/** One of the ten failures. */
export interface PreparedFailure {
  /** The heading in the documentation. */
  readonly name: string
  readonly outcome: ErrorKind
  readonly cause: Cause
  /**
   * Produces the failure. Resolves with the gateway's id of the failed request when its log line is written.
   */
  readonly make: (scene: FailureScene) => Promise<string>
}

/** The gateway on which failures are made. */
export interface FailureScene {
  readonly gateway: TestGateway
  /** A new key of the account `test@example.com`. */
  readonly newKey: (name: string, limits?: KeyLimits) => Promise<string>
}

/** Time limit for the first byte of upstreams; long enough for a busy machine. */
const FIRST_BYTE_MS = 3000

/** A gateway with an account, a key and the emulator as every provider. It ends with the test. */
export async function openFailureScene(t: Test): Promise<FailureScene> {
  const timeouts = `first_byte_ms: ${FIRST_BYTE_MS}, first_byte_whole_ms: ${FIRST_BYTE_MS}`
  const gateway = await startGateway(t, { upstreamOptions: `timeouts: { ${timeouts} }` })
  return { gateway, newKey: (name, limits) => newKey(gateway, name, limits ?? {}) }
}

/** The log line of a request. Throws if it is not written within 20 seconds. */
export async function lineOf({ gateway }: FailureScene, requestId: string): Promise<Record<string, unknown>> {
  const find = (): Record<string, unknown> | undefined =>
    gateway.lines.find((line) => line['msg'] === 'exchange' && line['request_id'] === requestId)
  await until(() => find() !== undefined)
  return find() ?? {}
}

/** Produces all ten in sequence; returns the ids of the requests in the order of the list. */
export async function makeAll(scene: FailureScene): Promise<string[]> {
  const ids: string[] = []
  for (const failure of TEN_FAILURES) ids.push(await failure.make(scene))
  return ids
}

/** The ten failures, in the order of the documentation. */
export const TEN_FAILURES: readonly PreparedFailure[] = [
  {
    name: 'A rate limit of the gateway',
    outcome: 'rate_limited',
    cause: 'limits',
    make: async (scene) => {
      const secret = await scene.newKey('rate-limited', { requestsPerMinute: 1 })
      await ask(scene, { secret })
      return ask(scene, { secret })
    },
  },
  {
    name: 'A budget that does not cover the request',
    outcome: 'budget_exceeded',
    cause: 'limits',
    make: async (scene) => {
      // One request costs more than half of the budget.
      const secret = await scene.newKey('nearly-spent', { nanoUsdPerDay: 2_000_000 })
      const more = { max_tokens: 150 }
      for (let tries = 0; tries < 20; tries += 1) {
        const [status, id] = await reply(scene, { secret, prompt: '[[words: 100]] Hi.', more })
        if (status === 402) return id
      }
      throw new Error('the budget is never used up')
    },
  },
  {
    name: 'A model without a route',
    outcome: 'unknown_model',
    cause: 'client',
    make: (scene) => ask(scene, { model: 'no-such-model' }),
  },
  {
    name: 'The provider limits the gateway (429)',
    outcome: 'upstream_busy',
    cause: 'provider',
    make: (scene) => ask(scene, { prompt: '[[fault: status code=429 retry-after=60]] Hi.' }),
  },
  {
    name: 'The provider fails (500)',
    outcome: 'upstream_failed',
    cause: 'provider',
    make: (scene) => ask(scene, { prompt: '[[fault: status code=500]] Hi.' }),
  },
  {
    name: 'A stream that ends too early',
    outcome: 'upstream_truncated',
    cause: 'provider',
    make: (scene) =>
      ask(scene, {
        prompt: '[[words: 50]] [[fault: cut event=8 mode=eof]] Hi.',
        more: { stream: true },
      }),
  },
  {
    name: 'The provider does not answer in time',
    outcome: 'upstream_timeout',
    cause: 'provider',
    make: (scene) => ask(scene, { prompt: '[[fault: hang]] Hi.' }),
  },
  {
    name: 'The provider refuses the credential of the gateway',
    outcome: 'upstream_denied',
    cause: 'gateway',
    make: (scene) => ask(scene, { prompt: '[[fault: status code=401]] Hi.' }),
  },
  {
    name: "A field that the upstream's format cannot express",
    outcome: 'untranslatable',
    cause: 'client',
    make: (scene) => {
      const audio = { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } }
      const messages = [{ role: 'user', content: [audio] }]
      return ask(scene, { model: 'claude-sonnet-4-5', more: { messages } })
    },
  },
  {
    name: 'A client that leaves',
    outcome: 'client_gone',
    cause: 'client',
    make: leaves,
  },
]

/** The parameters of a chat; the defaults are those of a request that succeeds. */
interface Chat {
  readonly secret?: string
  readonly model?: string
  readonly prompt?: string
  readonly more?: object
}

function bodyOf({ model = 'gpt-4o', prompt = 'Hi.', more = {} }: Chat): string {
  return JSON.stringify({ model, messages: [{ role: 'user', content: prompt }], ...more })
}

async function reply(scene: FailureScene, chat: Chat): Promise<[number, string]> {
  const { gateway } = scene
  const headers = { authorization: `Bearer ${chat.secret ?? gateway.secret}` }
  const response = await gateway.chat(bodyOf(chat), { headers })
  // The connection of a failed stream is closed.
  await response.text().catch(() => '')
  const id = response.headers.get('x-request-id') ?? ''
  await lineOf(scene, id)
  return [response.status, id]
}

async function ask(scene: FailureScene, chat: Chat): Promise<string> {
  const [, id] = await reply(scene, chat)
  return id
}

/** Reads the beginning of a slow stream and closes the connection. */
async function leaves(scene: FailureScene): Promise<string> {
  const { gateway } = scene
  const prompt = '[[words: 2000]] [[pace: 20]] Hi.'
  const body = bodyOf({ prompt, more: { stream: true } })
  const socket = connect(gateway.port, '127.0.0.1')
  socket.on('error', () => undefined)
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${gateway.secret}\r\n` +
      `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
  await until(() => text.includes('"content":"'))
  socket.destroy()
  const id = /\r\nx-request-id: (\S+)/i.exec(text)?.[1] ?? ''
  await lineOf(scene, id)
  return id
}

async function newKey(gateway: TestGateway, name: string, limits: KeyLimits): Promise<string> {
  const loaded = loadConfig(gateway.configFile, process.env)
  if (!loaded.ok) throw new Error('the configuration is not valid')
  const { store: url, plans } = loaded.config
  const store = await openStore(url)
  try {
    const account = await store.accountByEmail('test@example.com')
    if (account === null) throw new Error('no account')
    return (await createKey(store, { plans, account, name, limits })).secret
  } finally {
    await store.close()
  }
}
