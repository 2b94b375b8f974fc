/**
 * How a client of Redis is set up: time-outs, reconnects, TLS, sentinels. Knows no command.
 */
import { readBoundedFile } from '../../../files/bounded-file.js'
import type { Cluster, Redis, RedisOptions } from 'ioredis'
import { unavailable } from '../../errors.js'
import type { RedisAddress } from './address.js'

/** The client's options, but for the one whose type does not admit that it may be left out. */
type Options = Omit<RedisOptions, 'replyMapping'>

const CONNECT_TIMEOUT_MS = 1_000
const HANDSHAKE_MS = 250
const SOCKET_TIMEOUT_MS = 5_000
const KEEP_ALIVE_MS = 10_000
const RETRY_FIRST_MS = 50
/** A server that is back is noticed within this and its jitter, and a revocation that was missed. */
const RETRY_MOST_MS = 500
const JITTER = 0.25
const TRY_AGAIN_MS = 10
/** To other nodes; as the client has it by itself. */
const REDIRECTIONS = 16

/** Waits of a growing, jittered length. */
export function retryDelayMs(times: number): number {
  const delayMs = Math.min(RETRY_FIRST_MS * 2 ** Math.min(times - 1, 20), RETRY_MOST_MS)
  return delayMs * (1 + Math.random() * JITTER)
}

/** The options that every client has; also of the one that listens for news. */
export function clientOptions(address: RedisAddress, name: string, timeoutMs: number): Options {
  const tls = address.tls ? tlsOptions(address) : null
  return {
    username: address.username ?? undefined,
    password: address.password ?? undefined,
    db: address.db,
    // The newer protocol gives us nothing, and proxies know the older one.
    protocol: 2,
    connectionName: `sluice-${name}`,
    // For what the client asks by itself when it connects; `RedisLink` has its own.
    commandTimeout: Math.max(timeoutMs, HANDSHAKE_MS),
    connectTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SOCKET_TIMEOUT_MS,
    keepAlive: KEEP_ALIVE_MS,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    lazyConnect: true,
    retryStrategy: retryDelayMs,
    // A primary that became a replica answers so; whoever is primary now is found on the next connect.
    reconnectOnError: (error) => error.message.includes('READONLY '),
    ...(tls === null ? {} : { tls }),
    ...(address.kind === 'sentinel' ? sentinelOptions(address, tls) : {}),
    ...(address.kind === 'single' ? address.hosts[0] : {}),
  }
}

function tlsOptions({ tlsCa, tlsCert, tlsKey }: RedisAddress) {
  return {
    ...(tlsCa === null ? {} : { ca: pemIn(tlsCa) }),
    ...(tlsCert === null ? {} : { cert: pemIn(tlsCert) }),
    ...(tlsKey === null ? {} : { key: pemIn(tlsKey) }),
  }
}

/** Bundles of a system's certificate authorities have 200 KiB. */
const MAX_PEM_BYTES = 4 * 1024 * 1024

function pemIn(file: string): Buffer {
  try {
    return readBoundedFile(file, MAX_PEM_BYTES)
  } catch (error) {
    throw unavailable(
      'opening the store failed',
      error instanceof Error ? error : new Error(String(error)),
    )
  }
}

function sentinelOptions(address: RedisAddress, tls: object | null): Options {
  return {
    sentinels: [...address.hosts],
    name: address.master,
    sentinelUsername: address.sentinelUsername ?? undefined,
    sentinelPassword: address.sentinelPassword ?? undefined,
    sentinelRetryStrategy: retryDelayMs,
    sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
    failoverDetector: true,
    ...(tls === null ? {} : { enableTLSForSentinelMode: true, sentinelTLS: tls }),
  }
}

/**
 * Those of a Cluster's client, which makes one of each node. While a slot moves, its new node refuses scripts
 * that would make a key: they are sent again until the slot has moved or their time is over.
 */
export function clusterOptions(address: RedisAddress, name: string, timeoutMs: number) {
  return {
    enableOfflineQueue: false,
    lazyConnect: true,
    clusterRetryStrategy: retryDelayMs,
    clusterNodeRetryStrategy: retryDelayMs,
    retryDelayOnTryAgain: TRY_AGAIN_MS,
    maxRedirections: REDIRECTIONS + Math.ceil(timeoutMs / TRY_AGAIN_MS),
    slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
    slotsRefreshInterval: SOCKET_TIMEOUT_MS,
    redisOptions: clientOptions({ ...address, db: 0 }, name, timeoutMs),
  }
}

/** For the first connection: sentinels that do not answer are tried one after the other. */
const OPEN_DEADLINE_MS = 3_000

/**
 * Connects for the first time. Rejects if that takes too long or the server refuses the credentials; the client
 * goes on trying.
 */
export async function firstReady(client: Redis | Cluster): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const ready = new Promise<void>((resolve, reject) => {
    client.once('ready', resolve)
    client.on('error', (error: Error) => {
      if (/^(?:WRONGPASS|NOAUTH|NOPERM|ERR) /.test(error.message)) reject(error)
    })
    timer = setTimeout(() => reject(new Error('it takes too long')), OPEN_DEADLINE_MS)
  })
  client.connect().catch(() => undefined)
  await ready.finally(() => clearTimeout(timer))
}
