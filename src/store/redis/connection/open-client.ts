/**
 * Makes the clients of ioredis, with their timeouts, reconnects, TLS and sentinels.
 */
import { Socket } from 'node:net'
import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { readBoundedFile } from '../../../config/bounded-file.js'
import { CannotOpen, unavailable } from '../../store-errors.js'
import type { RedisAddress } from '../../store-address.js'

/** ioredis's options without the one that its type requires and its code does not. */
type Options = Omit<RedisOptions, 'replyMapping'>

const CONNECT_TIMEOUT_MS = 1_000
/** Longer than `RedisConnection` waits for a reply while this process is not scheduled. */
const HANDSHAKE_MS = 2_000
const HANDSHAKE_FACTOR = 5
const SOCKET_TIMEOUT_MS = 5_000
const KEEP_ALIVE_MS = 10_000
const RETRY_FIRST_MS = 50
/** Maximum delay, without jitter, until a server that is back, and a missed revocation, are noticed. */
const RETRY_MOST_MS = 500
const JITTER = 0.25
const TRY_AGAIN_MS = 10
/** Redirections to other nodes: the default of ioredis. */
const REDIRECTIONS = 16

/** Exponential backoff with jitter. */
export function retryDelayMs(times: number): number {
  const delayMs = Math.min(RETRY_FIRST_MS * 2 ** Math.min(times - 1, 20), RETRY_MOST_MS)
  return delayMs * (1 + Math.random() * JITTER)
}

/** The options of every client, that of notifications included. */
export function clientOptions(address: RedisAddress, name: string, timeoutMs: number): Options {
  const tls = address.tls ? tlsOptions(address) : null
  return {
    username: address.username ?? undefined,
    password: address.password ?? undefined,
    db: address.db,
    // Proxies support the older protocol, and the newer one has no advantage here.
    protocol: 2,
    connectionName: `sluice-${name}`,
    // For the handshake; `RedisConnection` limits the time of commands.
    commandTimeout: Math.max(HANDSHAKE_FACTOR * timeoutMs, HANDSHAKE_MS),
    connectTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SOCKET_TIMEOUT_MS,
    keepAlive: KEEP_ALIVE_MS,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    lazyConnect: true,
    retryStrategy: retryDelayMs,
    // The reply of a primary that became a replica; the next connection finds the new primary.
    reconnectOnError: (error) => error.message.includes('READONLY '),
    ...(tls === null ? {} : { tls }),
    ...(address.kind === 'sentinel' ? sentinelOptions(address, tls) : {}),
    ...(address.kind === 'single' ? address.hosts[0] : {}),
  }
}

function tlsOptions({ tlsCa, tlsCert, tlsKey }: RedisAddress) {
  const files = Object.entries({ ca: tlsCa, cert: tlsCert, key: tlsKey })
  return Object.fromEntries(files.flatMap(([name, file]) => (file === null ? [] : [[name, pemIn(file)]])))
}

/** The bundle of a system's certificate authorities has 200 KiB. */
const MAX_PEM_BYTES = 4 * 1024 * 1024

function pemIn(file: string): Buffer {
  try {
    return readBoundedFile(file, MAX_PEM_BYTES)
  } catch (error) {
    throw unavailable('opening the store failed', error)
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

/** A client that is not connected yet; `timeoutMs` is for each command. */
export function newClient(address: RedisAddress, name: string, timeoutMs: number): Redis | Cluster {
  if (address.kind !== 'cluster') {
    return withLateErrors(new Redis(clientOptions(address, name, timeoutMs)))
  }
  const cluster = new Cluster([...address.hosts], {
    enableOfflineQueue: false,
    lazyConnect: true,
    clusterRetryStrategy: retryDelayMs,
    clusterNodeRetryStrategy: retryDelayMs,
    // While a slot moves, its new node refuses scripts that create a key: ioredis sends them again until the
    // slot has moved or the time limit is over.
    retryDelayOnTryAgain: TRY_AGAIN_MS,
    maxRedirections: REDIRECTIONS + Math.ceil(timeoutMs / TRY_AGAIN_MS),
    slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
    slotsRefreshInterval: SOCKET_TIMEOUT_MS,
    redisOptions: clientOptions({ ...address, db: 0 }, name, timeoutMs),
  })
  return cluster.on('+node', withLateErrors)
}

/**
 * Node emits a TLS alert also on a socket that has failed. ioredis listens to the first error of a socket
 * only: the second one would end the process.
 */
export function withLateErrors(client: Redis): Redis {
  return client.on('error', () => {
    // There is none if no sentinel has an address.
    const socket: unknown = client.stream
    if (socket instanceof Socket) socket.on('error', () => undefined)
  })
}

/** Replies to the commands that begin a connection: the address is wrong, and trying again does not help. */
const REFUSED = /^(?:WRONGPASS|NOAUTH|NOPERM|ERR) /
const WRONG_LOGIN = /^(?:WRONGPASS|NOAUTH|NOPERM) /

/** The reason why the first connection failed, with the address of the servers and without credentials. */
export function connectFailure(reason: string, { hosts }: RedisAddress): Error {
  const servers = hosts.map(({ host, port }) => `${host}:${port}`).join(', ')
  const text = hosts.some(({ host }) => reason.includes(host)) ? reason : `${reason} (${servers})`
  if (!REFUSED.test(reason)) return new Error(text)
  const setting = WRONG_LOGIN.test(reason) ? 'the user and the password' : 'the address'
  return new CannotOpen(`${text}; check ${setting} in "store"`)
}

/** Time limit of the first connection: ioredis tries the sentinels in sequence. */
const OPEN_DEADLINE_MS = 3_000

/**
 * Connects for the first time. Rejects if that takes too long or the server refuses the credentials; ioredis
 * keeps trying.
 */
export async function firstReady(client: Redis | Cluster): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const ready = new Promise<void>((resolve, reject) => {
    client.once('ready', resolve)
    client.on('error', (error: Error) => {
      if (REFUSED.test(error.message)) reject(error)
    })
    timer = setTimeout(() => reject(new Error('connecting takes too long')), OPEN_DEADLINE_MS)
  })
  client.connect().catch(() => undefined)
  await ready.finally(() => clearTimeout(timer))
}
