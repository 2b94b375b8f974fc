/** Fixtures for tests of upstream connections: settings, and a request whose reply is one line of text. */
import type { Dispatcher } from 'undici'
import {
  type ConnectionSettings,
  openConnectionPool,
} from '../../../src/gateway/upstreams/connection-pool.js'
import { RequestQueue } from '../../../src/gateway/upstreams/request-queue.js'
import type { UpstreamCall } from '../../../src/gateway/upstreams/upstream-call.js'

/** A local upstream without TLS and proxy. */
export const SETTINGS: Omit<ConnectionSettings, 'baseUrl'> = {
  name: 'up',
  maxConnections: 8,
  allowPrivateAddress: true,
  timeouts: { connectMs: 2000 },
  tls: null,
  http2: false,
  proxy: 'none',
}

/** Opens a pool with these settings. */
export function openPool(settings: Partial<ConnectionSettings> & { baseUrl: string }): RequestQueue {
  const config: ConnectionSettings = { ...SETTINGS, ...settings }
  const { maxConnections } = config
  const { origin } = new URL(config.baseUrl)
  const openFresh = (): Dispatcher => openConnectionPool(config)
  return new RequestQueue({ origin, dispatcher: openFresh(), maxConnections, openFresh })
}

/** A running request. */
export interface RunningRequest {
  readonly call: UpstreamCall
  /** `200 hello`, or the code of the failure. */
  readonly reply: Promise<string>
}

/** Sends `POST /path`. */
export function send(pool: RequestQueue, path: string, body: string | Buffer = '{}'): RunningRequest {
  let resolve: (text: string) => void = () => undefined
  const reply = new Promise<string>((settle) => {
    resolve = settle
  })
  let text = ''
  const call = pool.send(
    { path: `/${path}`, headers: ['x-a', 'b'], body },
    {
      onRequestStart: () => undefined,
      onResponseStart: (status) => (text = `${status} `),
      onResponseData: (chunk) => (text += chunk.toString()),
      onResponseEnd: () => resolve(text),
      onResponseError: (cause) =>
        resolve('code' in cause && typeof cause.code === 'string' ? cause.code : cause.name),
    },
  )
  return { call, reply }
}

/** The reply to `POST /path`. */
export function replyTo(pool: RequestQueue, path: string, body: string | Buffer = '{}'): Promise<string> {
  return send(pool, path, body).reply
}
