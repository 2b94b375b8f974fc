/**
 * A TCP proxy in front of Redis that holds one command or its reply, and reports when it does. It recognises
 * the command by a word in it.
 */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'

/** A running proxy. */
export interface HoldingProxy {
  readonly port: number
  /** Resolves when the next command with that word, or its reply, has arrived and is held. */
  hold(word: string, what: 'command' | 'reply'): Promise<void>
  /** Stops holding. Held data is dropped and its connection is closed. */
  release(): void
}

interface Order {
  readonly word: string
  readonly what: 'command' | 'reply'
  readonly reached: () => void
}

/** Starts a proxy to a port of the loopback interface and closes it when the test ends. */
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
