/**
 * A TCP proxy in front of a Redis server, whose faults a test chooses while connections are open. It counts
 * the commands that arrive, so that it can reply to each with an error.
 */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'

/**
 * `pass`: no fault. `delay`: each reply is late. `hole`: nothing passes in either direction until the fault
 * ends, as with lost packets. `refuse`: existing and new connections are reset. `cut`: each command resets
 * its connection. `garbage`: each command gets bytes that are not a reply. `error`: each command gets this
 * error.
 */
export type Fault =
  | { readonly kind: 'pass' | 'hole' | 'refuse' | 'cut' | 'garbage' }
  | { readonly kind: 'delay'; readonly ms: number }
  | { readonly kind: 'error'; readonly text: string }

/** A running proxy. */
export interface FaultProxy {
  readonly port: number
  /** The fault from now on. */
  set(fault: Fault): void
  /** Resets every open connection. */
  cutAll(): void
}

/** Starts a proxy to a port of the loopback; it ends with the test. */
export async function startFaultProxy(t: Test, target: number): Promise<FaultProxy> {
  let fault: Fault = { kind: 'pass' }
  const sockets = new Set<Socket>()
  let held: (() => void)[] = []
  const server = createServer((client) => {
    if (fault.kind === 'refuse') {
      client.resetAndDestroy()
      return
    }
    const upstream = connect(target, '127.0.0.1')
    join(client, upstream)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')

  const join = (client: Socket, upstream: Socket): void => {
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
      if (fault.kind === 'hole') held.push(() => upstream.write(chunk))
      else if (fault.kind === 'cut') client.resetAndDestroy()
      else if (fault.kind === 'garbage') client.write('\x00\xff!garbage that is no answer\r\n')
      else if (fault.kind === 'error') client.write(`-${fault.text}\r\n`.repeat(commandsIn(chunk)))
      else upstream.write(chunk)
    })
    upstream.on('data', (chunk: Buffer) => {
      if (fault.kind === 'hole') held.push(() => client.write(chunk))
      else if (fault.kind === 'delay') setTimeout(() => client.write(chunk), fault.ms)
      else client.write(chunk)
    })
  }
  const cutAll = (): void => {
    for (const socket of sockets) socket.resetAndDestroy()
  }
  t.teardown(() => {
    server.close()
    cutAll()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    port: address.port,
    set(next) {
      fault = next
      for (const send of held) send()
      held = []
      if (next.kind === 'refuse') cutAll()
    },
    cutAll,
  }
}

/** Counts commands whose arguments have no line breaks. */
function commandsIn(chunk: Buffer): number {
  return chunk.toString('latin1').match(/(?:^|\r\n)\*\d+\r\n/g)?.length ?? 0
}
