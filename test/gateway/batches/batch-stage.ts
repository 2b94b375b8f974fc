/** A gateway that keeps files, with an OpenAI client of each of two accounts, for tests of batches. */
import OpenAI, { toFile } from 'openai'
import type { Test } from 'tap'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { openStore } from '../../../src/store/open-store.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { createKey } from '../../helpers/keys.js'
import { startRedis } from '../../helpers/redis.js'

/** Both stores, and both places of files. */
export const PLACES = [
  { store: 'sqlite', to: './files' },
  { store: 'redis', to: 'store' },
] as const

/** A store, and where files are. */
export interface BatchPlace {
  readonly store: 'sqlite' | 'redis'
  readonly to: string
}

/** Settings that every gateway with batches has. */
export const FILES = `escrow: { key: 0Zk9xQ2vLw8RmT5yBn7CdF4gHj6Kp3Sa }
batches: { poll_seconds: 0.2 }
files: { to: `

/** A running gateway with batches. */
export interface BatchStage {
  readonly gateway: TestGateway
  readonly client: OpenAI
  /** Of another account. */
  readonly other: OpenAI
}

/** Options of the gateway. */
interface StageOptions {
  readonly upstreamOptions?: string
  /** Settings of `server`. */
  readonly server?: string
  readonly upstreams?: { openai?: string; anthropic?: string; gemini?: string }
  readonly more?: string
  /** Settings of a further upstream, `cloud`. */
  readonly cloud?: string
  readonly routes?: string
  readonly files?: string
  /** More settings of `batches`. */
  readonly batches?: string
  /** A gateway whose store and accounts this one shares. */
  readonly with?: BatchStage
}

/** Starts the gateway, which ends with the test. */
export async function openBatchStage(
  t: Test,
  place: BatchPlace,
  { files = '', batches = '', more = '', with: shared, ...settings }: StageOptions = {},
): Promise<BatchStage> {
  const gateway = await startGateway(t, {
    ...settings,
    more: `${FILES.replace('0.2', `0.2${batches}`)}${place.to}${files} }\n${more}`,
    ...(shared !== undefined && { store: shared.gateway.store, hasAccount: true }),
    ...(shared === undefined && place.store === 'redis'
      ? { store: `${(await startRedis(t)).url()}?timeout_ms=2000` }
      : {}),
  })
  const clientOf = (apiKey: string): OpenAI => new OpenAI({ apiKey, baseURL: gateway.baseUrl, maxRetries: 0 })
  if (shared !== undefined) {
    return {
      gateway,
      client: clientOf(shared.client.apiKey ?? ''),
      other: clientOf(shared.other.apiKey ?? ''),
    }
  }
  const store = await openStore(gateway.store)
  const login = { email: 'other@example.com', plan: 'max', password: 'correct horse battery staple' } as const
  const { account } = await createAccount(store, login)
  const { secret } = await createKey(store, { plans: gateway.plans, account, name: 'other' })
  await store.close()
  return { gateway, client: clientOf(gateway.secret), other: clientOf(secret) }
}

/** The text of a file with these requests. */
export function textOf(bodies: readonly object[], url = '/v1/chat/completions'): string {
  return bodies
    .map((body, at) => `${JSON.stringify({ custom_id: `c${at}`, method: 'POST', url, body })}\n`)
    .join('')
}

/** Uploads a file of a batch. */
export async function uploaded(client: OpenAI, text: string): Promise<string> {
  const file = await toFile(Buffer.from(text), 'lines.jsonl')
  return (await client.files.create({ file, purpose: 'batch' })).id
}

/** Makes a batch of these lines. */
export async function batchOf(
  client: OpenAI,
  text: string,
  endpoint: OpenAI.BatchCreateParams['endpoint'] = '/v1/chat/completions',
): Promise<OpenAI.Batch> {
  const id = await uploaded(client, text)
  return client.batches.create({ input_file_id: id, endpoint, completion_window: '24h' })
}

/** The batch when it has ended. */
export async function ended(client: OpenAI, id: string): Promise<OpenAI.Batch> {
  for (;;) {
    const batch = await client.batches.retrieve(id)
    if (['completed', 'failed', 'expired', 'cancelled'].includes(batch.status)) return batch
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** A line of a file with results. */
export interface ResultLine {
  readonly id: string
  readonly custom_id: string
  readonly response: {
    readonly status_code: number
    readonly request_id: string
    readonly body: {
      readonly choices?: readonly { readonly message: { readonly content: string } }[]
      readonly error?: { readonly message: string; readonly kind?: string; readonly code?: string }
    }
  } | null
  readonly error: { readonly code: string; readonly message: string } | null
}

/** The lines of a file with results; empty without a file. */
export async function resultsIn(client: OpenAI, id: string | null | undefined): Promise<ResultLine[]> {
  if (id === null || id === undefined) return []
  const text = await (await client.files.content(id)).text()
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as ResultLine)
}

/** The status of the error with which a request of the SDK ends; null if it does not fail. */
export async function statusOf(request: Promise<unknown>): Promise<unknown> {
  const error: unknown = await request.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  return typeof error === 'object' && error !== null && 'status' in error ? error.status : null
}
