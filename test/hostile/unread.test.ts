/**
 * Goal: 1,000 streams whose clients read nothing delay other requests by less than 250 ms.
 * Method: the gateway in this process; the clients and an upstream without a pause in another one. Each
 * stream is translated. The delay is the processor time of this process while another request is served.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { startGateway } from '../helpers/gateway.js'
import { anotherDay } from '../helpers/long-suite.js'

const STREAMS = 1_000
const MOST_MS = 250
const REQUESTS = 12
const CHILD = fileURLToPath(new URL('unread-child.js', import.meta.url))
t.setTimeout(170_000)

void t.test('streams that are not read', { skip: anotherDay(3, 6) }, async (t) => {
  const child = fork(CHILD)
  t.teardown(() => child.disconnect())
  const [{ port }] = (await once(child, 'message')) as [{ port: number }]
  const gateway = await startGateway(t, { upstreams: { openai: `http://127.0.0.1:${port}/v1` } })
  child.send({ port: gateway.port, secret: gateway.secret, count: STREAMS })
  await once(child, 'message')
  const body = { model: 'claude-sonnet-4-5', messages: [{ role: 'user', content: 'Hello' }] }
  // Node accepts one connection in each turn of the event loop, so this one comes after all others.
  await (await gateway.chat(body)).arrayBuffer()
  const delaysMs: number[] = []
  for (let sent = 0; sent < REQUESTS; sent += 1) {
    await sleep(100)
    const began = performance.now()
    const cpu = process.cpuUsage()
    const reply = await gateway.chat(body)
    await reply.arrayBuffer()
    const { user, system } = process.cpuUsage(cpu)
    delaysMs.push(Math.min(performance.now() - began, (user + system) / 1000))
    t.equal(reply.status, 200)
  }
  delaysMs.sort((a, b) => a - b)
  // One slow request may be one in which the garbage was collected.
  const slowestMs = delaysMs.at(-2) ?? Infinity
  t.ok(slowestMs < MOST_MS, `${delaysMs.map((ms) => ms.toFixed(0)).join(', ')} ms`)
})
