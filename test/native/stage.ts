/** Starts a gateway with native access to a provider, for tests. */
import type { Test } from 'tap'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { startProvider, UPSTREAM_KEY, type Provider } from './provider.js'

/** The options of `fetch` that `get` accepts. */
export type StageInit = Omit<RequestInit, 'headers'>

/** The gateway, the provider, and a `fetch` of a native path with a valid key. */
export interface Stage {
  readonly gateway: TestGateway
  readonly provider: Provider
  readonly get: (path: string, init?: StageInit) => Promise<Response>
}

/** Additions to the configuration. */
export interface StageOptions {
  /** YAML members of the upstream, each preceded by a comma. */
  readonly options?: string
  readonly more?: string
  readonly proxy?: string
  readonly server?: string
}

const OPEN = `['POST /v1/files', 'GET /v1/files', 'GET /v1/files/*', 'DELETE /v1/files/*', 'POST /v1/audio/*', 'GET /v1/realtime', 'POST /v1/sink', 'POST /v1/unread', 'GET /v1/silent', 'GET /v1/denied', 'GET /v1/half', 'GET /v1/big', 'GET /v1/other', 'GET /v1/nothing']`

/** Starts both; they stop at the end of the test. */
export async function openStage(
  t: Test,
  { options = '', more = '', proxy = 'none', server }: StageOptions = {},
): Promise<Stage> {
  const provider = await startProvider(t)
  const gateway = await startGateway(t, {
    upstreams: {
      openai: `${provider.baseUrl}, native: ${OPEN}, proxy: '${proxy}', headers: { x-own: one }${options}`,
    },
    more,
    ...(server === undefined ? {} : { server }),
  })
  return {
    gateway,
    provider,
    get: (path, init = {}) =>
      fetch(`${gateway.origin}/native/openai${path}`, {
        ...init,
        headers: { authorization: `Bearer ${gateway.secret}` },
      }),
  }
}

export { UPSTREAM_KEY }
