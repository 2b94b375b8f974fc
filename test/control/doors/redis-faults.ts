/**
 * Faults of the writes of a Redis store: a proxy counts the commands of changes, and sends one that Redis
 * refuses in place of one of them.
 */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { Redis } from 'ioredis'
import type { Test } from 'tap'
import { openStore } from '../../../src/store/open-store.js'
import type { Store } from '../../../src/store/store.js'
import { SIGN_IN_TOKEN_KINDS } from '../../../src/store/sign-in-tokens.js'
import { accountPages, keyPages, userPages } from '../../../src/store/list-all.js'
import type { RedisServer } from '../../helpers/redis.js'
import { shape, type Faults } from './faults.js'

/** Commands that change the store, on the connections for changes and for the dashboard. */
const WRITES = /^(?:EVALSHA|EVAL|SET|HSET|HDEL|ZADD|ZREM|SADD|SREM|DEL)$/i
const CONNECTION = /sluice-(?:changes|admin)/
const REFUSED = '*1\r\n$5\r\nFAULT\r\n'

/** The proxy, the server behind it and a store of its own. */
export class RedisFaults implements Faults {
  /** The address of the store through the proxy. */
  readonly url: string
  private readonly direct: Redis
  private readonly store: Store
  private readonly address: string
  private kept: (readonly [string, Buffer, number])[] = []
  private count = 0
  private at: number | null = null
  private places: string[] = []

  private constructor(
    direct: Redis,
    store: Store,
    places: { readonly port: number; readonly address: string },
  ) {
    this.direct = direct
    this.store = store
    this.address = places.address
    const { port } = places
    this.url = `redis://127.0.0.1:${port}/0?timeout_ms=5000`
  }

  static async start(t: Test, server: RedisServer): Promise<RedisFaults> {
    const sockets = new Set<Socket>()
    const parts: { faults: RedisFaults | null } = { faults: null }
    const proxy = createServer((client) => {
      const upstream = connect(server.port, '127.0.0.1')
      for (const socket of [client, upstream]) {
        sockets.add(socket)
        socket.setNoDelay(true)
        socket.on('error', () => undefined)
        socket.once('close', () => {
          sockets.delete(socket)
          client.destroy()
          upstream.destroy()
        })
      }
      const commands = new Commands((words, raw) => {
        const isRefused = parts.faults?.isRefused(words, commands.name) === true
        upstream.write(isRefused ? REFUSED : raw)
      })
      client.on('data', (chunk: Buffer) => commands.add(chunk))
      upstream.on('data', (chunk: Buffer) => client.write(chunk))
    }).listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    const address = proxy.address()
    if (address === null || typeof address === 'string') throw new Error('no port')
    const direct = new Redis(server.port, '127.0.0.1')
    const store = await openStore(server.url())
    const faults = new RedisFaults(direct, store, { port: address.port, address: server.url() })
    parts.faults = faults
    t.teardown(async () => {
      await store.close()
      faults.close()
      proxy.close()
      for (const socket of sockets) socket.destroy()
    })
    return faults
  }

  /** Keeps the state that `arm` puts back. */
  async keep(): Promise<void> {
    const names = await this.direct.keys('*')
    this.kept = await Promise.all(
      names.map(async (name) => {
        const [value, left] = await Promise.all([this.direct.dumpBuffer(name), this.direct.pttl(name)])
        return [name, value, Math.max(0, left)] as const
      }),
    )
  }

  async arm(at: number | null): Promise<void> {
    this.at = null
    const restored = this.direct.multi().flushdb()
    for (const [name, value, left] of this.kept) restored.restore(name, left, value)
    restored.publish(`sluice:news:${this.store.id}`, '*')
    await restored.exec()
    this.count = 0
    this.places = []
    this.at = at ?? -1
  }

  disarm(): void {
    this.at = null
  }

  written(): readonly string[] {
    return this.places
  }

  async state(): Promise<Record<string, string[]>> {
    // A store of its own: one that has seen a revocation refuses the key also if the store has lost it.
    const store = await openStore(this.address)
    try {
      return await this.stateOf(store)
    } finally {
      await store.close()
    }
  }

  private async stateOf(store: Store): Promise<Record<string, string[]>> {
    const found: Record<string, unknown[]> = {}
    const add = (kind: string, ...items: unknown[]): void => void (found[kind] ??= []).push(...items)
    for await (const accounts of accountPages(store)) {
      for (const account of accounts) {
        add('accounts', { ...account, live: await store.countKeys(account.id) })
        add('members', ...(await store.membersOf(account.id)))
        for await (const keys of keyPages(store, account.id)) add('keys', ...keys)
      }
    }
    for await (const users of userPages(store)) {
      for (const user of users) {
        add('users', user)
        for (const kind of SIGN_IN_TOKEN_KINDS) {
          const tokens = await store.signInTokens.tokensOf(kind, user.id, Date.now())
          add('passes', ...tokens.map(({ accountId, text }) => ({ kind, accountId, text })))
        }
      }
    }
    add('tokens', ...(await store.adminTokens.page(null, 500)).items)
    add('denials', ...(await store.denials.list({ order: 'oldest_first', after: null, limit: 500 })).items)
    const recordings = await store.sealedRecords.list('recording', {}, Date.now())
    add('recordings', ...recordings.map((head) => ({ ...head })))
    add('trail', ...(await store.auditTrail.page({ accountId: null, after: null, limit: 500 })))
    return Object.fromEntries(
      Object.entries(found).map(([kind, items]) => [
        kind,
        items.map((item) => shape(item as Record<string, unknown>)).sort(),
      ]),
    )
  }

  async digests(): Promise<Set<string>> {
    const digests = new Set<string>()
    for await (const accounts of accountPages(this.store)) {
      for (const { id } of accounts) {
        for await (const keys of keyPages(this.store, id)) for (const key of keys) digests.add(key.digest)
      }
    }
    for (const token of (await this.store.adminTokens.page(null, 500)).items) digests.add(token.digest)
    return digests
  }

  close(): void {
    this.direct.disconnect()
  }

  private isRefused([command = '']: readonly string[], name: string): boolean {
    if (this.at === null || !WRITES.test(command) || !CONNECTION.test(name)) return false
    this.places.push(command)
    this.count += 1
    return this.count - 1 === this.at
  }
}

/** Splits what a client sends into commands. */
class Commands {
  /** The name that the client gave its connection. */
  name = ''
  private readonly each: (words: readonly string[], raw: Buffer) => void
  private rest = Buffer.alloc(0)

  constructor(each: (words: readonly string[], raw: Buffer) => void) {
    this.each = each
  }

  add(chunk: Buffer): void {
    this.rest = Buffer.concat([this.rest, chunk])
    for (;;) {
      const found = this.next()
      if (found === null) return
      const [words, length] = found
      if (/^client$/i.test(words[0] ?? '') && /^setname$/i.test(words[1] ?? '')) this.name = words[2] ?? ''
      const raw = this.rest.subarray(0, length)
      this.rest = this.rest.subarray(length)
      this.each(words, raw)
    }
  }

  /** The first three words of the first command, and its length in bytes; null: it is not complete. */
  private next(): readonly [readonly string[], number] | null {
    let at = this.rest.indexOf('\r\n')
    if (at === -1) return null
    const count = Number(this.rest.toString('latin1', 1, at))
    const words: string[] = []
    at += 2
    for (let word = 0; word < count; word += 1) {
      const end = this.rest.indexOf('\r\n', at)
      if (end === -1) return null
      const length = Number(this.rest.toString('latin1', at + 1, end))
      if (this.rest.length < end + 2 + length + 2) return null
      if (word < 3) words.push(this.rest.toString('utf8', end + 2, end + 2 + length))
      at = end + 2 + length + 2
    }
    return [words, at]
  }
}
