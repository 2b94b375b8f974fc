/**
 * Goal: retries on one target follow `attempts`, `Retry-After`, the retry budget and the client's deadline;
 * requests rotate through several credentials; a connection that was closing causes no error for the client.
 * Method: the emulator throttles and fails as scripted; its ledger has the time of each request.
 */
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { ask, checkFailed, isComplete, question, series, watchProcess } from '../../faults/scene.js'
import { httpReply, startSocketUpstream } from '../../faults/socket-upstream.js'
import { breakProvider, CHAIN, counts, entryOf, startWith } from './fixtures.js'
import { stopwatch } from '../../helpers/stopwatch.js'

const ONE = 'targets: [ { upstream: openai, model: gpt-4o } ]'

void t.test('a failed attempt is retried on the same target first', async (t) => {
  const gateway = await startWith(t, [`model: main, ${CHAIN}, retry: { attempts: 3 }`])
  breakProvider(gateway, 'openai', { fault: { kind: 'status', code: 503 }, times: 2 })
  const seen = await ask(gateway, question('main', true))
  t.ok(isComplete(seen))
  const attempts = 'openai:upstream_busy, openai:upstream_busy, openai:ok'
  t.equal(seen.headers['x-sluice-attempts'], attempts)
  const entry = await entryOf(gateway, seen.headers['x-request-id'] ?? '')
  t.match(entry, { attempts: 3, attempted: attempts, outcome: 'ok', source: 'reported' })
  const retries = 'sluice_retries_total{upstream="openai",reason="upstream_busy"}'
  t.equal(await series(gateway, retries), 2)
  t.equal(await series(gateway, 'sluice_attempts_total{upstream="openai",kind="upstream_busy"}'), 2)
})

void t.test('E-88: the gateway waits for Retry-After up to max_wait_ms', async (t) => {
  const gateway = await startWith(t, [`model: main, ${CHAIN}, retry: { attempts: 2, max_wait_ms: 3000 }`])
  breakProvider(gateway, 'openai', {
    fault: { kind: 'status', code: 429, 'retry-after': '1' },
    times: 1,
  })
  const waited = await ask(gateway, question('main', true))
  t.equal(waited.headers['x-sluice-attempts'], 'openai:upstream_busy, openai:ok')
  const [first, second] = gateway.emulator.ledger
  const gapMs = (second?.receivedAt ?? 0) - (first?.receivedAt ?? 0)
  t.ok(gapMs >= 990, `waited ${gapMs} ms`)
  for (const seconds of ['4', '9999999']) {
    gateway.emulator.reset()
    breakProvider(gateway, 'openai', {
      fault: { kind: 'status', code: 429, 'retry-after': seconds },
      times: 1,
    })
    const moved = await ask(gateway, question('main', true))
    t.equal(moved.headers['x-sluice-attempts'], 'openai:upstream_busy, anthropic:ok')
    t.ok(moved.ownMs < 900, `retry-after: ${seconds} is not waited for`)
  }
})

void t.test('if every upstream fails, the load grows by at most a fifth (G9)', async (t) => {
  watchProcess(t)
  const gateway = await startWith(t, [`model: main, ${ONE}, retry: { attempts: 3, budget: 0.2 }`])
  breakProvider(gateway, 'openai', { fault: { kind: 'status', code: 503 } })
  const REQUESTS = 200
  let remaining = REQUESTS
  const client = async (): Promise<void> => {
    for (; remaining > 0;) {
      remaining -= 1
      checkFailed(t, await ask(gateway, question('main', true)), {
        name: 'refused',
        kinds: ['upstream_busy'],
      })
    }
  }
  await Promise.all(Array.from({ length: 20 }, client))
  const { openai } = counts(gateway)
  t.ok(openai <= REQUESTS * 1.2 + 3, `${openai} requests for ${REQUESTS}`)
  t.ok(openai > REQUESTS, 'there were retries')
})

void t.test('E-89: the deadline of the client bounds all attempts together', async (t) => {
  const gateway = await startWith(
    t,
    [`model: main, ${CHAIN}, retry: { attempts: 1, non_idempotent: true }`],
    { upstreamOptions: 'timeouts: { first_byte_ms: 900 }' },
  )
  for (const provider of ['openai', 'anthropic', 'gemini'] as const) {
    breakProvider(gateway, provider, { fault: { kind: 'hang' } })
  }
  const began = performance.now()
  const watch = stopwatch()
  const reply = await gateway.chat(question('main', true), {
    headers: { 'x-request-timeout-ms': '1200' },
  })
  t.equal(reply.status, 504)
  const [tookMs, ownMs] = [performance.now() - began, watch()]
  t.ok(ownMs < 1900, `${ownMs} ms`)
  t.ok(tookMs > 850, 'the first attempt had its time')
  const { openai, gemini } = counts(gateway)
  t.same([openai, gemini], [1, 0], 'no attempt begins with less than half a second left')
  t.match(await reply.text(), /upstream_timeout/)
  gateway.emulator.reset()
  breakProvider(gateway, 'openai', { fault: { kind: 'hang' } })
  const early = stopwatch()
  const cut = await gateway.chat(question('main', true), {
    headers: { 'x-request-timeout-ms': '300' },
  })
  t.equal(cut.status, 504)
  t.ok(early() < 800, 'a shorter deadline than any timeout')
})

void t.test('E-88: a refused credential is followed by the next one at once', async (t) => {
  for (const [code, outcome] of [
    [401, 'upstream_denied'],
    [403, 'upstream_denied'],
    [429, 'upstream_busy'],
  ] as const) {
    const gateway = await startWith(t, [`model: main, ${ONE}`])
    const { readFileSync, writeFileSync } = await import('node:fs')
    const text = readFileSync(gateway.configFile, 'utf8')
    const keys = 'api_keys: [ first-key, second-key-long ]'
    writeFileSync(gateway.configFile, text.replace('api_key: emulated', keys))
    gateway.reload()
    const isFirst = ({ headers }: { headers: { authorization?: string | undefined } }): boolean =>
      headers.authorization === 'Bearer first-key'
    gateway.emulator.script({ match: isFirst, fault: { kind: 'status', code } })
    for (let request = 0; request < 6; request += 1) {
      t.ok(isComplete(await ask(gateway, question('main', true))), `${code}, request ${request}`)
    }
    const { openai } = counts(gateway)
    t.ok(openai <= 7, `the refused key rests: ${openai} requests for 6`)
    const kind = `sluice_attempts_total{upstream="openai",kind="${outcome}"}`
    t.equal(await series(gateway, kind), openai - 6)
    breakProvider(gateway, 'openai', { fault: { kind: 'status', code } })
    const none = await ask(gateway, question('main', true))
    t.ok(none.status >= 429, 'when all are refused, the client gets the error')
  }
})

void t.test('a truncated attempt counts the tokens that the provider may bill', async (t) => {
  const gateway = await startWith(
    t,
    [`model: main, ${CHAIN}, retry: { attempts: 1, non_idempotent: true }`],
    { upstreamOptions: 'timeouts: { first_byte_ms: 300 }' },
  )
  const plain = await ask(gateway, question('claude-sonnet-4-5', true))
  const alone = await entryOf(gateway, plain.headers['x-request-id'] ?? '')
  breakProvider(gateway, 'openai', { fault: { kind: 'hang' }, times: 1 })
  const seen = await ask(gateway, question('main', true))
  t.ok(isComplete(seen))
  const both = await entryOf(gateway, seen.headers['x-request-id'] ?? '')
  t.match(both, { attempted: 'openai:upstream_timeout, anthropic:ok', source: 'assumed' })
  t.ok((both.usage.input ?? 0) > (alone.usage.input ?? 0), 'the prompt of both')
  const most = 16_384 + (alone.usage.output ?? 0)
  t.equal(both.usage.output, most, 'the longest reply of one and the text of the other')
  t.ok((both.costNanoUsd ?? 0) > (alone.costNanoUsd ?? 0))
  gateway.emulator.reset()
  breakProvider(gateway, 'openai', { fault: { kind: 'status', code: 503 }, times: 1 })
  const free = await ask(gateway, question('main', true))
  const entry = await entryOf(gateway, free.headers['x-request-id'] ?? '')
  t.match(entry, { attempts: 2, source: 'reported', costNanoUsd: alone.costNanoUsd })
})

/** A keep-alive server that closes each connection when its second request arrives, without reading it. */
async function closing(t: Test): Promise<{ url: string; requests: () => number }> {
  let requests = 0
  const sockets = new Set<Socket>()
  const body = JSON.stringify({
    id: 'x',
    object: 'chat.completion',
    created: 1,
    model: 'gpt-4o',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  })
  const server = createServer((socket) => {
    sockets.add(socket)
    let isUsed = false
    let text = ''
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      if (isUsed) {
        socket.resetAndDestroy()
        return
      }
      text += chunk.toString()
      if (!text.endsWith('}')) return
      isUsed = true
      requests += 1
      const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`
      socket.write(head + body)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/v1`, requests: () => requests }
}

void t.test('a reused connection that closes is followed by a fresh one, once (G10)', async (t) => {
  watchProcess(t)
  const upstream = await closing(t)
  const gateway = await startWith(t, [`model: main, ${ONE}`], {
    upstreams: { openai: upstream.url },
  })
  const REQUESTS = 40
  for (let request = 0; request < REQUESTS; request += 1) {
    t.ok(isComplete(await ask(gateway, question('main', false))), `request ${request}`)
  }
  t.equal(upstream.requests(), REQUESTS, 'each was executed once')
})

void t.test('a reply that is cut within its head is not requested again', async (t) => {
  watchProcess(t)
  const body = JSON.stringify({
    choices: [{ message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  })
  for (const part of ['H', 'HTTP/1.1 200', 'HTTP/1.1 200 OK\r\ncontent-type: appl']) {
    for (const stream of [false, true]) {
      const upstream = await startSocketUpstream(t, ({ socket, requests }) => {
        const isFirst = requests.length === 1
        if (isFirst) socket.write(httpReply(200, ['content-type: application/json'], body))
        else socket.end(part)
      })
      const gateway = await startWith(t, [`model: main, ${ONE}`], {
        upstreams: { openai: upstream.url },
      })
      t.ok(isComplete(await ask(gateway, question('main', false))))
      const cut = await ask(gateway, question('main', stream))
      t.equal(cut.status, 502, `${part} ${cut.body}`)
      const counts = upstream.connections.map(({ requests }) => requests.length)
      t.same(counts, [2], 'one request for each')
    }
  }
})

void t.test('a Retry-After that is a date counts from now if the reply has no date', async (t) => {
  for (const [dates, expected] of [
    [[], /^(?:19|20|21)$/],
    [[`date: ${new Date(Date.now() - 5_000).toUTCString()}`], /^(?:24|25|26)$/],
  ] as const) {
    const upstream = await startSocketUpstream(t, ({ socket }) => {
      const until = new Date(Date.now() + 20_000).toUTCString()
      const lines = ['content-type: application/json', `retry-after: ${until}`, ...dates]
      socket.end(httpReply(429, lines, '{"error":{"message":"Slow down."}}'))
    })
    const gateway = await startWith(t, [`model: main, ${ONE}`], {
      upstreams: { openai: upstream.url },
    })
    const response = await gateway.chat({
      model: 'main',
      messages: [{ role: 'user', content: 'a' }],
    })
    t.equal(response.status, 429)
    t.match(response.headers.get('retry-after'), expected)
    await response.text()
  }
})
