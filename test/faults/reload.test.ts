// Goal: a request keeps the generation that it started with, regardless of later ones (G11, I-133, I-134).
// Method: requests that still send their body, wait or stream while the configuration changes twice; the
// upstreams record their requests, and their sockets show when old pools close.
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import t from 'tap'
import { startEmulator } from '../../src/emulator/server.js'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { checkAfter, eventually, isComplete, ask, openClient, question, watchProcess } from './scene.js'

function rewrite(gateway: TestGateway, from: string, to: string): void {
  const text = readFileSync(gateway.configFile, 'utf8')
  writeFileSync(gateway.configFile, text.replaceAll(from, to))
  gateway.reload()
}

void t.test('an upstream that changes while the body of a request arrives', async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t)
  const other = await startEmulator({ models: 'any' })
  t.teardown(() => other.close())
  const body = question('gpt-4o', false)
  const socket = connect(gateway.port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${gateway.secret}\r\n` +
      `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nexpect: 100-continue\r\n\r\n`,
  )
  await eventually(() => text.includes('100 Continue'), 'the body is wanted')
  socket.write(body.slice(0, 10))
  // The second generation shares the first one's pools, and the third has none of them.
  gateway.reload()
  rewrite(gateway, gateway.emulator.origin, other.origin)
  await new Promise((resolve) => setTimeout(resolve, 50))
  socket.write(body.slice(10))
  await eventually(() => text.includes('\r\n\r\n{'), 'an answer')
  t.match(text, /^HTTP\/1\.1 200 /m)
  t.match(text, /x-sluice-generation: 1\r\n/)
  t.equal(gateway.emulator.ledger.length, 1, 'it was sent to the upstream of its generation')
  t.equal(other.ledger.length, 0)
  const next = await ask(gateway, question('gpt-4o', true))
  t.ok(isComplete(next))
  t.equal(next.headers['x-sluice-generation'], '3')
  t.equal(other.ledger.length, 1, 'a new request goes to the new upstream')
})

void t.test('a stream continues while later generations replace each other', async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t)
  const other = await startEmulator({ models: 'any' })
  t.teardown(() => other.close())
  const client = openClient(t, gateway, {
    body: question('gpt-4o', true, { text: '[[words: 20]] [[pace: 20]]' }),
  })
  await eventually(() => client.text().includes('"content":"'), 'content')
  for (let i = 0; i < 20; i += 1) gateway.reload()
  rewrite(gateway, gateway.emulator.origin, other.origin)
  await eventually(() => client.text().includes('data: [DONE]'), 'the end')
  t.match(client.text(), '"finish_reason":"stop"')
  t.notMatch(client.text(), '"error"')
  rewrite(gateway, other.origin, gateway.emulator.origin)
  await checkAfter(t, gateway)
})
