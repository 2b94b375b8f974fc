/** A gateway on either store with two accounts that share an account at a provider, for tests. */
import type { Test } from 'tap'
import { createAccount } from '../../src/accounts/changes/change-accounts.js'
import { createKey } from '../helpers/keys.js'
import { openStore } from '../../src/store/open-store.js'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { ofToday } from '../helpers/long-suite.js'
import { startRedis } from '../helpers/redis.js'
import { startObjectProvider, type ObjectProvider } from './object-provider.js'

/** The stores with which every test of shared accounts runs: each day one, in the long suite both. */
export const STORES = [...ofToday(['sqlite', 'redis'] as const, 2)]

/** A request to the gateway: a path with a body, of one of the accounts. */
export type Ask = (
  path: string,
  init?: Omit<RequestInit, 'body' | 'headers'> & {
    readonly json?: unknown
    readonly body?: NonNullable<RequestInit['body']>
    readonly headers?: Record<string, string>
  },
) => Promise<Response>

/** The gateway, the provider, and requests of two accounts `a` and `b`. */
export interface Accounts {
  readonly gateway: TestGateway
  readonly provider: ObjectProvider
  readonly a: Ask
  readonly b: Ask
}

/** Native endpoints as operators list them, for every provider. */
const RULES = [
  ...['files', 'files/*', 'batches', 'batches/*', 'vector_stores', 'vector_stores/*'],
  ...[
    'responses',
    'responses/*',
    'messages/batches',
    'messages/batches/*',
    'batch/jobs',
    'batch/jobs/*',
    'models',
    'models/*',
  ],
  ...['images/*', 'audio/*', 'containers/*', 'chat/completions'],
]
  .flatMap((path) => [`GET /v1/${path}`, `POST /v1/${path}`, `DELETE /v1/${path}`])
  .concat(
    ['GET /v1beta/*', 'POST /v1beta/*', 'DELETE /v1beta/*', 'POST /upload/v1beta/*'],
    ['GET /v1/realtime', 'GET /v1/organization/*', 'GET /v1/shared/files/file-public'],
  )

/** Starts both; they end with the test. `options`: YAML members of each upstream. */
export async function openAccounts(
  t: Test,
  store: (typeof STORES)[number],
  { options = '', more = '' }: { readonly options?: string; readonly more?: string } = {},
): Promise<Accounts> {
  const provider = await startObjectProvider(t)
  const native = `native: ${JSON.stringify(RULES)}${options === '' ? '' : `, ${options}`}`
  const { origin } = provider
  const gateway = await startGateway(t, {
    upstreams: { openai: `${origin}/v1`, anthropic: `${origin}/v1`, gemini: `${origin}/v1beta` },
    upstreamOptions: native,
    more,
    ...(store === 'redis' ? { store: `${(await startRedis(t)).url()}?timeout_ms=2000` } : {}),
  })
  const opened = await openStore(gateway.store)
  const { account } = await createAccount(opened, {
    email: 'other@example.com',
    plan: 'max',
    password: 'correct horse battery staple',
  })
  const { secret } = await createKey(opened, { plans: gateway.plans, account, name: 'other' })
  await opened.close()
  const askAs =
    (key: string): Ask =>
    (path, { json, headers = {}, ...init } = {}) =>
      fetch(`${gateway.origin}${path}`, {
        ...init,
        ...(json === undefined ? {} : { method: 'POST', body: JSON.stringify(json) }),
        ...(init.method === undefined ? {} : { method: init.method }),
        headers: {
          authorization: `Bearer ${key}`,
          ...(json === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
      })
  return { gateway, provider, a: askAs(gateway.secret), b: askAs(secret) }
}
