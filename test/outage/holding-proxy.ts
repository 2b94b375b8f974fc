/**
 * A TCP proxy in front of Redis that stops at one command: it keeps the command from the server, or the
 * server's reply from the client, and reports when it does. It recognises a command by a word in it.
 */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'

/** A running proxy. */
export interface HoldingProxy {
  readonly port: number
  /** Resolves when the next command with that word has come, and is held, or its answer is. */
  hold(word: string, what: 'command' | 'answer'): Promise<void>
  /** Holds nothing more; what was held is gone with its connection. */
  release(): void
}

interface Order {
  readonly word: string
  readonly what: 'command' | 'answer'
  readonly reached: () => void
}

/** Starts a proxy to a port of the loopback; it ends with the test. */
export async function startHoldingProxy(t: Test, target: number): Promise<HoldingProxy> {
  const sockets = new Set<Socket>()
  const held = new Set<Socket>()
  let order: Order | null = null

  const reach = (client: Socket): void => {
    held.add(client)
    order?.reached()
    order = null
  }
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1')
    let awaits: Order | null = null
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
    client.on('data', (chunk: Buffer) => {
      if (held.has(client)) return
      const isIt = order !== null && awaits === null && chunk.includes(order.word)
      if (isIt && order?.what === 'command') {
        reach(client)
        return
      }
      if (isIt) awaits = order
      upstream.write(chunk)
    })
    upstream.on('data', (chunk: Buffer) => {
      if (held.has(client)) return
      if (awaits === null) client.write(chunk)
      else reach(client)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const release = (): void => {
    order = null
    for (const client of held) client.destroy()
    held.clear()
  }
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    port: address.port,
    release,
    hold: (word, what) => new Promise((reached) => (order = { word, what, reached })),
  }
}
