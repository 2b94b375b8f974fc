/**
 * Goal: large bodies at the same time do not exhaust a worker's memory: they are served or refused with
 * `retry-after`, ordinary requests are served at the same time, and the memory is released.
 * Method: the real program with a heap of 1 GB, 8 bodies of up to 31 MB of several accounts at once, held by
 * an upstream that replies late.
 */
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { isToday } from '../../helpers/long-suite.js'
import { makeKeys, post } from '../large-bodies.js'
import { startServe, until, type Served } from '../program.js'

const HEAP_MB = 1024
const BODY_BYTES = 31 * 1024 * 1024
/** Just below the limit for text. */
const TEXT_BYTES = 8_300_000
/** Delay of the upstream, so that many requests are in progress at once. */
const HELD_MS = 1_500
const REPLY = JSON.stringify({
  id: 'a',
  object: 'chat.completion',
  created: 1,
  model: 'gpt-4o',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
})

/** Reads and drops request bodies, and replies to large requests late. */
async function startSink(t: Test): Promise<string> {
  const server: Server = createServer((req, res) => {
    let bytes = 0
    req.on('data', (chunk: Buffer) => (bytes += chunk.length))
    req.on('end', () => {
      const answer = (): void => void res.setHeader('content-type', 'application/json').end(REPLY)
      setTimeout(answer, bytes > 1_000_000 ? HELD_MS : 0)
    })
    req.on('error', () => undefined)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no address')
  return `http://127.0.0.1:${address.port}/v1`
}

const IMAGE = 'an image'

function bodyOf(model: string, text: string): Buffer {
  const url = 'data:image/png;base64,%'
  const image = [{ type: 'image_url', image_url: { url } }]
  const content = text === IMAGE ? image : '%'
  const [head = '', tail = ''] = JSON.stringify({
    model,
    messages: [{ role: 'user', content }],
  }).split('%')
  const unit = text === IMAGE ? 'iVBO' : text
  const one = Buffer.byteLength(unit)
  const bytes = text === IMAGE ? BODY_BYTES : TEXT_BYTES
  const copies = Math.floor((bytes - head.length - tail.length) / one)
  return Buffer.concat([Buffer.from(head), Buffer.alloc(copies * one, unit), Buffer.from(tail)])
}

async function toSink(t: Test, served: Served): Promise<void> {
  const url = await startSink(t)
  const { openai, anthropic } = served.emulator.baseUrls
  const text = readFileSync(served.file, 'utf8').replaceAll(openai, url).replaceAll(anthropic, url)
  served.write(text)
  await until(async () => (await served.ops('/config')).text.includes('"generation":2'))
}

const TEXTS: Readonly<Record<string, string>> = {
  'two bytes a letter': 'ж',
  'three bytes a letter': '語',
  'ASCII with one letter that is not': `${'a'.repeat(1_000_000)}語`,
  [IMAGE]: IMAGE,
}

void t.test('8 concurrent bodies of up to 31 MB do not exhaust a heap of 1 GB', async (t) => {
  const env = { NODE_OPTIONS: `--max-old-space-size=${HEAP_MB}` }
  const served = await startServe(t, { server: 'workers: 2, drain_ms: 5000' }, env)
  await toSink(t, served)
  const keys = await makeKeys(served.file, 4)
  const workers = served.program.workers()
  t.equal(workers.length, 2)
  const small = Buffer.from(JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'Hi' }] }))
  let taken = 0
  let refused = 0
  for (const [row, [name, text]] of Object.entries(TEXTS).entries()) {
    // Each day each text in one of the two formats.
    for (const [turn, model] of ['gpt-4o', 'claude-sonnet-4-5'].entries()) {
      if (!isToday(row + turn, 2)) continue
      const body = bodyOf(model, text)
      const running = new Set(Array.from({ length: 8 }, (_, at) => at))
      const large = Promise.all(
        [...running].map((at) =>
          post(served.port, keys[at % 4] ?? '', body).finally(() => running.delete(at)),
        ),
      )
      let ordinary = 0
      while (running.size > 0) {
        const [status, wait] = await post(served.port, served.secret, small)
        t.ok(status === 200 || (status === 503 && wait === '1'), `${name}, ${model}: ${status}`)
        if (status === 200) ordinary += 1
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      t.ok(ordinary > 0, `${name}, ${model}: ${ordinary} ordinary requests were served`)
      for (const [status, wait] of await large) {
        // The reply of the sink is not in Anthropic's format; 0 is a refusal before the body was read.
        if (status === 429 || status === 503) t.equal(wait, '1', `${status} with retry-after`)
        t.ok([0, 200, 429, 502, 503].includes(status), `${name}, ${model}: ${status}`)
        if (status === 200 || status === 502) taken += 1
        else refused += 1
      }
      t.same(served.program.workers(), workers, 'the workers still run')
    }
  }
  t.ok(
    taken >= 6,
    `${taken} of ${taken + refused} large requests reached the upstream, ${refused} were refused`,
  )
  t.same(await post(served.port, served.secret, small), [200, undefined], 'the gateway serves as before')
  t.equal((await post(served.port, keys[0] ?? '', bodyOf('gpt-4o', 'ж')))[0], 200)
  t.comment(`${taken} taken, ${refused} refused`)
})
