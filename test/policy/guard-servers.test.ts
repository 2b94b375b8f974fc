/**
 * Goal: guard servers of the three protocols decide as their pages say; a server that is slow, down, wrong,
 * drips or sends too much is an error of the guard, which `on_error` decides, and never of an upstream.
 */
import { createServer, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { json } from 'node:stream/consumers'
import t from 'tap'
import type { Test } from 'tap'
import { isObject, objectOf, type JsonObject } from '../../src/base/json.js'
import { createAccount } from '../../src/accounts/changes/change-accounts.js'
import { openStore } from '../../src/store/open-store.js'
import { eventually } from '../faults/scene.js'
import type { TestGateway } from '../helpers/gateway.js'
import { createKey } from '../helpers/keys.js'
import { rowsOf } from '../helpers/ledger.js'
import { CLIENT_FORMATS, startScene } from './guarded-gateway.js'
import { ofToday } from '../helpers/long-suite.js'
import { listen } from '../helpers/listen.js'

interface Call {
  readonly path: string
  readonly headers: NodeJS.Dict<string | string[]>
  readonly body: JsonObject
}

type Answer = (call: Call, res: ServerResponse) => unknown

interface Guard {
  readonly url: string
  readonly calls: Call[]
  answer: Answer
}

/** A guard server; `answer` returns the JSON of a reply with status 200, or writes its own. */
async function startGuard(t: Test, answer: Answer): Promise<Guard> {
  const guard: { url: string; calls: Call[]; answer: Answer } = { url: '', calls: [], answer }
  const server = createServer((req, res) => {
    void json(req).then((value) => {
      const body = isObject(value) ? value : {}
      const call = { path: req.url ?? '', headers: req.headers, body }
      guard.calls.push(call)
      const reply = guard.answer(call, res)
      if (reply === undefined) return
      res.writeHead(200, { 'content-type': 'application/json' })
      res.end(JSON.stringify(reply))
    })
  })
  guard.url = `http://127.0.0.1:${await listen(t, server)}`
  return guard
}

const PASS = { action: {} }

function textsOf({ body }: Call): string[] {
  const inner = objectOf(body['body'])
  const list = inner['messages'] ?? inner['choices']
  return (Array.isArray(list) ? list : []).map((item) => {
    const message = objectOf(objectOf(item)['message'] ?? item)
    const { content } = message
    return typeof content === 'string' ? content : ''
  })
}

void t.test('webhook', async (t) => {
  const guard = await startGuard(t, () => PASS)
  const { gateway, provider, ask, post } = await startScene(
    t,
    `  topics: { url: '${guard.url}/hooks/', protocol: webhook, headers: { authorization: 'Bearer guard-token-1' }, window_chars: 40, overlap_chars: 10, apply_to: { all: true } }`,
  )

  await t.test('gets each judged text with its role', async (t) => {
    const messages = [
      { role: 'system', content: 'rules' },
      { role: 'user', content: 'weather' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":"\\u0062"}' } }],
      },
      { role: 'tool', tool_call_id: 'c', content: 'sun' },
    ]
    const response = await post('/v1/chat/completions', { model: 'gpt-5.4', messages })
    t.equal(response.status, 200)
    t.equal(response.headers.get('x-sluice-guardrails'), null, 'passes are not listed')
    const [asked, replied] = guard.calls
    t.strictSame(asked?.body, {
      body: {
        messages: [
          { role: 'system', content: 'rules' },
          { role: 'user', content: 'weather' },
          { role: 'assistant', content: '{"a":"b"}' },
          { role: 'tool', content: 'sun' },
        ],
      },
    })
    t.equal(asked?.path, '/hooks/request')
    t.equal(asked?.headers['authorization'], 'Bearer guard-token-1')
    t.equal(asked?.headers['content-type'], 'application/json')
    t.equal(asked?.headers['x-request-id'], response.headers.get('x-request-id'))
    t.equal(replied?.path, '/hooks/response')
    t.strictSame(replied?.body, {
      body: { choices: [{ message: { role: 'assistant', content: 'Hello.' } }] },
    })
  })

  await t.test('masks requests and replies', async (t) => {
    guard.answer = (call) => {
      const masked = textsOf(call).map((text) => text.replaceAll('cat', '***'))
      const isRequest = call.path.endsWith('/request')
      const list = masked.map((content) => {
        const message = { role: isRequest ? 'user' : 'assistant', content }
        return isRequest ? message : { message }
      })
      return {
        action: { body: isRequest ? { messages: list } : { choices: list }, reason: 'cats' },
      }
    }
    provider.reply = { text: 'A cat sat. '.repeat(20), split: (text) => Array.from(text) }
    for (const format of CLIENT_FORMATS) {
      for (const stream of [false, true]) {
        const reply = await ask(format, 'gpt-5.4', { text: 'my cat', stream })
        t.equal(reply.text, 'A *** sat. '.repeat(20), `${format} ${stream}`)
        t.match(JSON.stringify(provider.bodies.at(-1)), /my \*\*\*/)
        t.equal(reply.headers.get('x-sluice-guardrails'), 'topics:mask')
      }
    }
    t.ok(
      guard.calls.every(
        (call) => !call.path.endsWith('/response') || textsOf(call).every((text) => text.length <= 220),
      ),
    )
  })

  await t.test('rejects with its own sentence', async (t) => {
    guard.answer = (call) =>
      textsOf(call).some((text) => text.includes('war'))
        ? { action: { body: 'No politics here.', status_code: 451, reason: 'politics' } }
        : PASS
    provider.reply = { text: 'peace' }
    const request = await ask('chat', 'gpt-5.4', { text: 'war' })
    t.equal(request.status, 400, 'the client’s status stays')
    t.match(request.error, {
      message: "Blocked by the guardrail 'topics'. No politics here.",
      kind: 'guardrail_blocked',
      param: 'messages[0].content',
    })
    provider.reply = {
      text: `${'peace '.repeat(20)}war ${'x'.repeat(200)}`,
      split: (text) => Array.from(text),
    }
    for (const format of CLIENT_FORMATS) {
      const reply = await ask(format, 'gpt-5.4', { stream: true })
      t.equal(reply.status, 200)
      t.ok('peace '.repeat(20).startsWith(reply.text), `${format}: ${reply.text}`)
      t.ok(reply.text.length > 40)
      t.notMatch(reply.raw, /xxxxx/)
      t.equal((await ask(format, 'gpt-5.4')).status, 400, 'a whole reply')
    }
    const rows = await rowsOf(gateway)
    const stream = rows.find((row) => row.stream && row.outcome === 'guardrail_blocked')
    t.match(stream, { status: 200, guardrails: 'topics:block', attempts: 1 })
    t.ok((stream?.costNanoUsd ?? 0) > 0, 'what was received is charged')
    const refused = rows.find((row) => row.attempts === 0)
    t.match(refused, { status: 400, source: 'none', costNanoUsd: 0, usage: {} })
  })

  await t.test('any other answer is an error, never a pass', async (t) => {
    const wrong: unknown[] = [
      {},
      [],
      { action: 'pass' },
      { action: { allowed: true } },
      { action: { body: 7 } },
      { action: { body: { messages: [] } } },
      { action: { body: { messages: [{ role: 'system', content: 'x' }] } } },
      { action: { body: { messages: [{ role: 'user', content: null }] } } },
      { action: { status_code: 403 } },
    ]
    for (const reply of wrong) {
      guard.answer = () => reply
      const { status, raw, headers } = await ask('chat', 'gpt-5.4')
      t.equal(status, 503, JSON.stringify(reply))
      t.match(raw, /guardrail_unavailable/)
      t.equal(headers.get('x-sluice-guardrails'), 'topics:error')
      // A success closes the breaker.
      guard.answer = () => PASS
      provider.reply = { text: '' }
      await ask('chat', 'gpt-5.4')
    }
    const anthropic = async (): Promise<string> => {
      guard.answer = () => ({})
      return (await ask('messages', 'gpt-5.4')).raw
    }
    t.match(await anthropic(), /"type":"api_error"/)
    t.match(gateway.lines.at(-1), {
      outcome: 'guardrail_unavailable',
      cause: 'gateway',
      attempts: 0,
    })
  })
})

void t.test('a guard that fails', async (t) => {
  const guard = await startGuard(t, () => PASS)
  const settings = `url: '${guard.url}', protocol: webhook, timeout_ms: 150, max_reply_bytes: 1000, max_text_bytes: 100, breaker: { failures: 100 }`
  const scene = await startScene(
    t,
    `  shut: { ${settings}, on: [request], apply_to: { all: true } }\n  ajar: { ${settings}, on: [request], on_error: open, apply_to: { all: true } }`,
  )
  const { provider, ask, gateway } = scene
  const failures: Record<string, Answer> = {
    silent: () => undefined,
    'another status': (_, res) => void res.writeHead(500).end('{}'),
    redirect: (_, res) => void res.writeHead(307, { location: '/other' }).end(),
    'no JSON': (_, res) => void res.writeHead(200).end('<html>'),
    reset: (_, res) => void res.destroy(),
    drips: (_, res) => {
      res.writeHead(200)
      const timer = setInterval(() => res.write(' '), 20)
      res.once('close', () => clearInterval(timer))
    },
    large: (_, res) => {
      res.writeHead(200)
      const send = (): void => {
        while (!res.destroyed && res.write(' '.repeat(65_536)));
        if (!res.destroyed) res.once('drain', send)
      }
      send()
    },
  }
  for (const [name, answer] of Object.entries(failures)) {
    guard.answer = answer
    const before = provider.bodies.length
    const reply = await ask('chat', 'gpt-5.4')
    t.equal(reply.status, 503, name)
    t.equal(provider.bodies.length, before, 'nothing was sent')
    t.match(reply.raw, /The guardrail 'shut' could not judge/)
  }
  guard.answer = () => PASS
  const long = await ask('chat', 'gpt-5.4', { text: 'x'.repeat(101) })
  t.equal(long.status, 413, 'a text above max_text_bytes')
  t.match(
    await gateway.metrics.text(),
    /sluice_guardrail_verdicts_total\{guardrail="shut",on="request",verdict="error"\} 8/,
  )
  t.notMatch(await gateway.metrics.text(), /sluice_attempts_total\{[^}]*guardrail/)
})

for (const onError of ['open', 'closed']) {
  void t.test(`texts that cannot be judged never open the breaker, with on_error: ${onError}`, async (t) => {
    const guard = await startGuard(t, (call) =>
      textsOf(call).some((text) => text.includes('cat')) ? { action: { body: 'cats' } } : PASS,
    )
    const { ask, post, provider } = await startScene(
      t,
      `  topics: { url: '${guard.url}', protocol: webhook, on: [request], on_error: ${onError}, max_text_bytes: 100, max_reply_bytes: 1000, breaker: { failures: 2 }, apply_to: { all: true } }`,
    )
    const { answer } = guard
    for (let request = 0; request < 5; request += 1) {
      const reply = await ask('chat', 'gpt-5.4', { text: 'x'.repeat(101) })
      t.equal(reply.status, 413)
      t.match(reply.error, {
        param: 'messages[0].content',
        message: /larger than the guardrail 'topics' can/,
      })
    }
    for (const status of [400, 403, 413, 415, 422, 429, 431]) {
      guard.answer = (_, res) => void res.writeHead(status).end('{}')
      for (let request = 0; request < 3; request += 1) {
        const reply = await ask('chat', 'gpt-5.4')
        t.equal(reply.status, status === 413 ? 413 : onError === 'open' ? 200 : 503, `status ${status}`)
      }
    }
    guard.answer = () => ({ action: {}, text: 'x'.repeat(2000) })
    for (let request = 0; request < 3; request += 1) await ask('chat', 'gpt-5.4')
    guard.answer = answer
    t.equal(provider.bodies.length, onError === 'open' ? 21 : 0)
    t.equal((await ask('chat', 'gpt-5.4', { text: 'dog' })).status, 200)
    t.equal((await ask('chat', 'gpt-5.4', { text: 'cat' })).status, 400, 'it is still judged')
    const messages = ['dog', 'x', 'y', 'cat', 'z'].map((word) => ({
      role: 'user',
      content: word.padEnd(60, '.'),
    }))
    const before = guard.calls.length
    const several = await post('/v1/chat/completions', { model: 'gpt-5.4', messages })
    t.equal(several.status, 400, 'texts that are too large together are judged in several calls')
    t.equal(guard.calls.length - before, 4, 'until one is refused')
    const many = Array.from({ length: 40 }, () => ({ role: 'user', content: 'x'.repeat(60) }))
    t.equal((await post('/v1/chat/completions', { model: 'gpt-5.4', messages: many })).status, 413)
  })
}

void t.test('large texts for which the server takes too long do not open the breaker', async (t) => {
  const isLarge = (call: Call): boolean => textsOf(call).some((text) => text.length > 65_536)
  const guard = await startGuard(t, (call) => (isLarge(call) ? undefined : PASS))
  const { ask } = await startScene(
    t,
    `  topics: { url: '${guard.url}', protocol: webhook, on: [request], timeout_ms: 400, breaker: { failures: 2 }, apply_to: { all: true } }`,
  )
  for (let request = 0; request < 3; request += 1) {
    t.equal((await ask('chat', 'gpt-5.4', { text: 'x '.repeat(40_000) })).status, 503)
  }
  t.equal((await ask('chat', 'gpt-5.4')).status, 200)
  guard.answer = () => undefined
  for (let request = 0; request < 2; request += 1) await ask('chat', 'gpt-5.4')
  const { length } = guard.calls
  t.equal((await ask('chat', 'gpt-5.4')).status, 503)
  t.equal(guard.calls.length, length, 'a server that is late for any text opens it')
})

/** A key of another account. */
async function otherKey(
  t: Test,
  { store, plans }: TestGateway,
  email = 'other@example.com',
): Promise<string> {
  const opened = await openStore(store)
  t.teardown(() => opened.close())
  const { account } = await createAccount(opened, {
    email,
    plan: 'max',
    password: 'correct horse battery staple',
  })
  return (await createKey(opened, { plans, account, name: 'other' })).secret
}

void t.test('texts on which the server fails open the breaker for their account alone', async (t) => {
  const failures: readonly (readonly [name: string, answer: Answer])[] = [
    ['500', (_, res) => void res.writeHead(500).end('{}')],
    ['another form', () => ({ action: { new: 1 } })],
    ['no JSON', (_, res) => void res.writeHead(200).end('{')],
    ['closed', (_, res) => void res.destroy()],
    ['late', () => undefined],
  ]
  // Each day has half of them.
  for (const [name, fail] of ofToday(failures, 2)) {
    const isBad = (call: Call): boolean => textsOf(call).some((text) => text.includes('bad'))
    const guard = await startGuard(t, (call, res) => (isBad(call) ? fail(call, res) : PASS))
    const settings = `url: '${guard.url}', protocol: webhook, on: [request], timeout_ms: 400, apply_to: { all: true }`
    const breaker = 'breaker: { failures: 2, open_seconds: 60 }'
    const { gateway } = await startScene(t, `  topics: { ${settings}, ${breaker} }`)
    const other = await otherKey(t, gateway)
    const ask = async (secret: string, text: string): Promise<number> => {
      const body = JSON.stringify({ model: 'gpt-5.4', messages: [{ role: 'user', content: text }] })
      const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
      const reply = await fetch(`${gateway.origin}/v1/chat/completions`, { method: 'POST', headers, body })
      await reply.text()
      return reply.status
    }
    for (let request = 0; request < 4; request += 1) t.equal(await ask(gateway.secret, 'bad'), 503, name)
    t.equal(guard.calls.length, 2, `${name}: the breaker is open for the account`)
    t.equal(await ask(gateway.secret, 'good'), 503, name)
    t.match(await gateway.metrics.text(), /sluice_guardrail_breaker_state\{guardrail="topics"\} 2/)
    t.equal(await ask(other, 'good'), 200, `${name}: another account is judged`)
    t.equal(await ask(gateway.secret, 'good'), 200, `${name}: a success shows that the server works`)
    // Texts of several accounts do not open it for one without a failure.
    const third = await otherKey(t, gateway, 'third@example.com')
    for (const secret of [gateway.secret, other]) {
      for (let request = 0; request < 2; request += 1) t.equal(await ask(secret, 'bad'), 503, name)
    }
    const { length } = guard.calls
    t.equal(await ask(other, 'good'), 503, name)
    t.equal(guard.calls.length, length, `${name}: it is open for them`)
    const before = guard.calls.length
    t.equal(await ask(third, 'bad'), 503, name)
    t.equal(await ask(third, 'good'), 503, name)
    t.equal(guard.calls.length, before + 1, `${name}: one failure is enough while others fail`)
    const fourth = await otherKey(t, gateway, 'fourth@example.com')
    t.equal(await ask(fourth, 'good'), 200, `${name}: an account without a failure is judged`)
    t.equal(await ask(third, 'good'), 200, name)
  }
})

void t.test('a server that is not there opens the breaker for all', async (t) => {
  let calls = 0
  const server = createServer((_, res) => {
    calls += 1
    res.end(JSON.stringify(PASS))
  })
  const listen = (port: number): Promise<void> =>
    new Promise((resolve) => server.listen(port, '127.0.0.1', resolve))
  await listen(0)
  const address = server.address()
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0
  await new Promise((resolve) => server.close(resolve))
  const settings = `url: 'http://127.0.0.1:${port}', protocol: webhook, on: [request], apply_to: { all: true }`
  const breaker = 'breaker: { failures: 2, open_seconds: 60 }'
  const { gateway, ask } = await startScene(t, `  topics: { ${settings}, ${breaker} }`)
  for (let request = 0; request < 2; request += 1) t.equal((await ask('chat', 'gpt-5.4')).status, 503)
  await listen(port)
  t.teardown(() => server.close())
  const reply = await fetch(`${gateway.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${await otherKey(t, gateway)}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt-5.4', messages: [{ role: 'user', content: 'good' }] }),
  })
  t.equal(reply.status, 503)
  t.equal(calls, 0)
})

void t.test('masks of several calls are put together', async (t) => {
  const guard = await startGuard(t, (call) => {
    const texts = textsOf(call)
    if (!texts.some((text) => text.includes('cat'))) return PASS
    const messages = texts.map((text) => ({ role: 'user', content: text.replaceAll('cat', '***') }))
    return { action: { body: { messages } } }
  })
  const { post, provider } = await startScene(
    t,
    `  topics: { url: '${guard.url}', protocol: webhook, on: [request], max_text_bytes: 8, apply_to: { all: true } }`,
  )
  const messages = ['one dog', 'one cat', 'a', 'two cat'].map((content) => ({ role: 'user', content }))
  t.equal((await post('/v1/chat/completions', { model: 'gpt-5.4', messages })).status, 200)
  t.match(provider.bodies.at(-1), {
    messages: [{ content: 'one dog' }, { content: 'one ***' }, { content: 'a' }, { content: 'two ***' }],
  })
})

void t.test('a guard server is reached through a proxy as upstreams are', async (t) => {
  const guard = await startGuard(t, () => PASS)
  const asked: string[] = []
  const proxy = createServer()
  const sockets = new Set<Socket>()
  proxy.on('connect', (req, socket: Socket) => {
    asked.push(req.url ?? '')
    const to = connect(Number(new URL(guard.url).port), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      to.pipe(socket).pipe(to)
    })
    for (const each of [to, socket]) sockets.add(each.on('error', () => undefined))
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    proxy.close()
  })
  const address = proxy.address()
  const port = typeof address === 'object' ? address?.port : 0
  const settings = `url: 'http://guard.invalid', protocol: webhook, on: [request], apply_to: { all: true }`
  const scene = await startScene(t, `  topics: { ${settings}, proxy: 'http://127.0.0.1:${port}' }`)
  t.equal((await scene.ask('chat', 'gpt-5.4')).status, 200)
  t.strictSame(asked, ['guard.invalid:80'])
  t.equal(guard.calls.length, 1)
})

void t.test('an open guard lets the request pass, and its breaker stops the calls', async (t) => {
  const guard = await startGuard(t, (_, res) => void res.writeHead(500).end())
  const { ask, gateway, provider } = await startScene(
    t,
    `  ajar: { url: '${guard.url}', protocol: webhook, on_error: open, breaker: { failures: 3, open_seconds: 2 }, apply_to: { all: true } }`,
  )
  for (let request = 0; request < 4; request += 1) {
    const reply = await ask('chat', 'gpt-5.4', { stream: request > 1 })
    t.equal(reply.status, 200)
    t.equal(reply.text, 'Hello.')
    t.equal(reply.headers.get('x-sluice-guardrails'), 'ajar:error')
  }
  t.equal(guard.calls.length, 3, 'the breaker opened')
  t.match(await gateway.metrics.text(), /sluice_guardrail_breaker_state\{guardrail="ajar"\} 2/)
  guard.answer = () => PASS
  const verdicts = async (): Promise<string | null> =>
    (await ask('chat', 'gpt-5.4')).headers.get('x-sluice-guardrails')
  while ((await verdicts()) !== null) await new Promise((resolve) => setTimeout(resolve, 100))
  t.match(await gateway.metrics.text(), /sluice_guardrail_breaker_state\{guardrail="ajar"\} 0/)
  t.ok(provider.bodies.length > 0)
})

void t.test('a guard that fails in a stream ends it with an error event', async (t) => {
  let calls = 0
  const guard = await startGuard(t, (_, res) => {
    calls += 1
    return calls === 1 ? PASS : void res.writeHead(500).end()
  })
  const { ask, provider } = await startScene(
    t,
    `  shut: { url: '${guard.url}', protocol: webhook, on: [response], window_chars: 20, apply_to: { all: true } }`,
  )
  provider.reply = { text: 'words '.repeat(40), split: (text) => Array.from(text) }
  for (const format of CLIENT_FORMATS) {
    calls = 0
    const reply = await ask(format, 'gpt-5.4', { stream: true })
    t.equal(reply.status, 200)
    t.match(reply.raw, /guardrail_unavailable/)
    t.notMatch(reply.raw, /\[DONE\]|message_stop|response\.completed|"finishReason"/)
    t.ok(reply.text.length > 0 && reply.text.length <= 20, format)
  }
})

void t.test('a window is sent while the next one is judged', async (t) => {
  const waiting: ServerResponse[] = []
  let calls = 0
  const guard = await startGuard(t, (_, res) => {
    calls += 1
    return calls === 1 ? PASS : void waiting.push(res)
  })
  const { gateway, provider } = await startScene(
    t,
    `  topics: { url: '${guard.url}', protocol: webhook, on: [response], window_chars: 40, overlap_chars: 10, apply_to: { all: true } }`,
  )
  const text = Array.from({ length: 40 }, (_, number) => `word${number}`).join(' ')
  for (const split of [[text], Array.from(text)]) {
    calls = 0
    // All of it arrives at once.
    provider.reply = { text, split: () => split }
    const messages = [{ role: 'user', content: 'hi' }]
    const response = await gateway.chat({ model: 'gpt-5.4', stream: true, messages })
    const sent: string[] = []
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      sent.push(Buffer.from(chunk).toString())
      if (!sent.join('').includes('word0')) continue
      t.notMatch(sent.join(''), /word8/, 'the second window is held back')
      break
    }
    await eventually(() => waiting.length > 0, 'the second window is judged')
    waiting.splice(0).forEach((res) => res.end(JSON.stringify(PASS)))
  }
})

void t.test('litellm', async (t) => {
  const guard = await startGuard(t, () => ({ action: 'NONE' }))
  const { ask, post, provider } = await startScene(
    t,
    `  lite: { url: '${guard.url}', protocol: litellm, params: { level: 2 }, stream: buffer, apply_to: { all: true } }`,
  )
  const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }]
  provider.reply = { text: 'It rains.', call: { name: 'f', arguments: '{"a":1}' } }
  const response = await post('/v1/chat/completions', {
    model: 'gpt-5.4',
    tools,
    messages: [{ role: 'user', content: 'rain?' }],
  })
  t.equal(response.status, 200)
  const [asked, replied] = guard.calls
  t.equal(asked?.path, '/beta/litellm_basic_guardrail_api')
  t.match(asked?.body, {
    texts: ['rain?'],
    tool_calls: [],
    structured_messages: [{ role: 'user', content: 'rain?' }],
    input_type: 'request',
    litellm_call_id: response.headers.get('x-request-id'),
    additional_provider_specific_params: { level: 2 },
    request_data: { user_api_key_alias: String, user_api_key_user_id: String },
  })
  t.match(replied?.body, {
    texts: ['It rains.', '{"a":1}'],
    tool_calls: [{ type: 'function', function: { name: 'f', arguments: '{"a":1}' } }],
    input_type: 'response',
  })
  t.notOk('structured_messages' in (replied?.body ?? {}))
  guard.answer = ({ body }) =>
    body['input_type'] === 'response'
      ? { action: 'GUARDRAIL_INTERVENED', texts: ['It snows.', '{"a":2}'] }
      : { action: 'NONE' }
  for (const stream of [false, true]) {
    const reply = await ask('messages', 'claude-opus-5', { stream })
    t.equal(reply.text, 'It snows.')
    t.strictSame(JSON.parse(reply.calls.at(-1) ?? ''), { a: 2 })
  }
  guard.answer = () => ({ action: 'GUARDRAIL_INTERVENED', texts: [] })
  t.equal((await ask('chat', 'gpt-5.4')).status, 503, 'another number of texts')
  guard.answer = ({ body }) =>
    body['input_type'] === 'response'
      ? { action: 'GUARDRAIL_INTERVENED', texts: ['x', '{"a":'] }
      : { action: 'NONE' }
  t.equal((await ask('chat', 'gpt-5.4')).status, 503, 'masked arguments that are not JSON')
  guard.answer = ({ body }) =>
    body['input_type'] === 'response'
      ? { action: 'BLOCKED', blocked_reason: 'x'.repeat(400) }
      : { action: 'NONE' }
  const blocked = await ask('chat', 'gpt-5.4', { stream: true })
  t.equal(blocked.status, 400)
  t.equal(blocked.error['message'], `Blocked by the guardrail 'lite'. ${'x'.repeat(300)}`)
})

void t.test('moderations', async (t) => {
  const scores = { violence: 0.4 }
  const guard = await startGuard(t, ({ body }) => ({
    results: (body['input'] as string[]).map((text) => ({
      flagged: text.includes('bad'),
      categories: {},
      category_scores: text.includes('fight') ? { violence: 0.6 } : scores,
    })),
  }))
  const { ask, post } = await startScene(
    t,
    `  mod: { url: '${guard.url}/v1', protocol: moderations, apply_to: { labels: { none: x } } }\n  score: { url: '${guard.url}/v1', protocol: moderations, model: m, thresholds: { violence: 0.6 }, on: [request], apply_to: { all: true } }`,
    '',
  )
  t.equal((await ask('chat', 'gpt-5.4', { text: 'bad' })).status, 200, 'flagged is ignored with thresholds')
  t.match(guard.calls, [{ path: '/v1/moderations', body: { model: 'm', input: ['bad'] } }], 'once')
  const messages = [
    { role: 'user', content: 'calm' },
    { role: 'user', content: 'a fight' },
  ]
  const refused = await post('/v1/chat/completions', { model: 'gpt-5.4', messages })
  t.equal(refused.status, 400)
  t.match(await refused.json(), { error: { param: 'messages[1].content' } })
})
