/**
 * Goal: connections still reconnect if a failover is announced while they look up the primary.
 * Method: a real server and a simulated sentinel, which replies late and announces a failover meanwhile.
 */
import { putAccount, putKey } from '../../helpers/store-changes.js'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { openStore } from '../../../src/store/open-store.js'
import { redisMissing, startRedis, until } from '../../helpers/redis.js'
import { anAdmission, requests } from '../ledger/sample-entries.js'
import { aKey, anAccount } from '../contract/sample-records.js'

const missing = redisMissing()
const options = missing === false ? {} : { skip: missing }
const CHANNEL = '+switch-master'

/** The replies of a sentinel whose primary does not change; `hold` delays them until `release`. */
async function startSentinelLike(t: Test, primary: number) {
  const sockets = new Set<Socket>()
  const listeners = new Set<Socket>()
  let held: (() => void)[] | null = null
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => {
      sockets.delete(socket)
      listeners.delete(socket)
    })
    socket.on('data', (chunk: Buffer) => {
      for (const words of commandsIn(chunk.toString())) {
        const [name = '', what = ''] = words
        if (name === 'subscribe') {
          listeners.add(socket)
          socket.write(`${texts('subscribe', CHANNEL).replace('*2', '*3')}:1\r\n`)
        } else if (what === 'get-master-addr-by-name') {
          const answer = (): unknown => socket.write(texts('127.0.0.1', String(primary)))
          if (held === null) answer()
          else held.push(answer)
        } else {
          socket.write(name === 'sentinel' ? '*0\r\n' : '+OK\r\n')
        }
      }
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    listening: (): number => listeners.size,
    asking: (): number => held?.length ?? 0,
    hold: (): void => void (held = []),
    announce: (): void => {
      for (const socket of listeners) socket.write(texts('message', CHANNEL, 'mymaster moved'))
    },
    release: (): void => {
      const answers = held ?? []
      held = null
      for (const answer of answers) answer()
    },
  }
}

function texts(...words: string[]): string {
  const each = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`)
  return `*${words.length}\r\n${each.join('')}`
}

/** The arguments of each command in lower case; the loopback delivers a command in one chunk. */
function commandsIn(text: string): string[][] {
  const commands = text.split(/^\*\d+\r\n/m).slice(1)
  return commands.map((command) =>
    command
      .toLowerCase()
      .split('\r\n')
      .filter((_, line) => line % 2 === 1),
  )
}

void t.test('reconnects after an early announcement', { ...options }, async (t) => {
  const server = await startRedis(t)
  const sentinel = await startSentinelLike(t, server.port)
  const url = `redis+sentinel://127.0.0.1:${sentinel.port}/mymaster?wait_replicas=0&timeout_ms=2000`
  const store = await openStore(url)
  t.teardown(() => store.close())
  const account = anAccount()
  await putAccount(store, account)
  const key = aKey(account.id)
  await putKey(store, key, null)
  const admit = () => store.ledger.admit(anAdmission([requests(1_000)], { accountId: account.id }))
  await admit()
  // The connections for reads, changes, look-ups and the ledger.
  const links = 4
  await until(() => Promise.resolve(sentinel.listening() >= links), 'all listen for failovers')
  sentinel.hold()
  await server.ask('client', 'kill', 'type', 'normal')
  await until(() => Promise.resolve(sentinel.asking() >= links), 'all ask for the primary')
  sentinel.announce()
  await until(() => Promise.resolve(sentinel.listening() === 0), 'the announcement is received')
  sentinel.release()
  const works = (what: string, work: () => Promise<unknown>): Promise<void> =>
    until(() => work().then(() => true), what)
  await works('asking', () => store.probe())
  await works('changing', () => putKey(store, aKey(account.id), null))
  await works('looking up', async () => (await store.findKey(key.digest))?.key.id === key.id)
  await works('the ledger', admit)
  t.pass('every connection is there again')
})
