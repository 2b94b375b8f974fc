// Goal: an upstream's refusal reaches the client with the correct status in the client's format, limited in
//   size, without secrets, and with `retry-after` (D-67, E-88).
// Method: every status with three kinds of body on each upstream; marker texts in the upstream's messages.
import t from 'tap'
import { startGateway } from '../helpers/gateway.js'
import { ask, checkAfter, checkFailed, question, UPSTREAMS, watchProcess } from './scene.js'
import { startSocketUpstream } from './socket-upstream.js'

/** The error kinds that a client may see for an upstream's reply; several if the dialects differ. */
const STATUSES: Record<number, readonly number[]> = {
  400: [400],
  401: [502],
  403: [502],
  404: [404, 502],
  408: [504],
  413: [413],
  429: [429],
  500: [502],
  502: [502],
  503: [429],
  504: [504],
  529: [429, 502],
}
const KINDS = [
  'upstream_rejected',
  'upstream_denied',
  'upstream_busy',
  'upstream_failed',
  'upstream_timeout',
  'unknown_model',
  'upstream_misconfigured',
  'body_too_large',
]

for (const { name, model } of UPSTREAMS) {
  void t.test(`D-67: ${name}: statuses`, async (t) => {
    watchProcess(t)
    const gateway = await startGateway(t)
    for (const [code, allowed] of Object.entries(STATUSES)) {
      for (const mode of ['json', 'html', 'empty']) {
        for (const stream of [true, false]) {
          gateway.emulator.script({ times: 1, fault: { kind: 'status', code: Number(code), mode } })
          const seen = await ask(gateway, question(model, stream))
          const what = `${code} ${mode} ${stream ? 'streamed' : 'whole'}`
          t.ok(allowed.includes(seen.status), `${what}: ${seen.status}`)
          checkFailed(t, seen, { name: what, kinds: KINDS })
          t.notMatch(seen.body, /<html|<h1/i, `${what}: no HTML page is passed on`)
        }
      }
    }
    await checkAfter(t, gateway)
  })

  void t.test(`D-67, E-88: ${name}: retry-after`, async (t) => {
    watchProcess(t)
    const gateway = await startGateway(t)
    const cases = [
      [{ 'retry-after': '1' }, '1'],
      [{ 'retry-after': '9999999' }, '3600'],
      // The gateway chooses a time if the upstream names none.
      [{}, '1'],
      [{ 'retry-after': 'soon' }, '1'],
      [{ 'retry-after': '-5' }, '1'],
      [{ 'retry-after': '1e9' }, '1'],
    ] as const
    for (const [fields, expected] of cases) {
      gateway.emulator.script({ times: 1, fault: { kind: 'status', code: 429, ...fields } })
      const seen = await ask(gateway, question(model, true))
      t.equal(seen.status, 429)
      t.equal(seen.headers['retry-after'], expected, JSON.stringify(fields))
    }
    gateway.emulator.script({ times: 1, fault: { kind: 'status', code: 402 } })
    const spent = await ask(gateway, question(model, true))
    t.equal(spent.headers['retry-after'], undefined, 'an empty purse is not full in a second')
    t.equal(spent.headers['x-should-retry'], 'false')
    await checkAfter(t, gateway)
  })
}

void t.test(
  "D-67: an upstream's message is shortened, and text that looks like a key is removed",
  async (t) => {
    watchProcess(t)
    const canary = 'sk-proj-CANARY0123456789abcdefgh'
    let answer = ''
    const upstream = await startSocketUpstream(t, ({ socket }) => socket.write(answer))
    const gateway = await startGateway(t, { upstreams: { openai: upstream.url } })
    const long = JSON.stringify({
      error: {
        message: `Incorrect key ${canary} ${'word '.repeat(3000)}`,
        type: canary,
        code: canary,
        param: canary,
      },
    })
    for (const status of [400, 401, 429, 500]) {
      answer = `HTTP/1.1 ${status} X\r\ncontent-type: application/json\r\nx-request-id: ${canary}\r\ncontent-length: ${long.length}\r\n\r\n${long}`
      const seen = await ask(gateway, question('gpt-4o', false))
      t.notMatch(seen.body, 'CANARY', `${status}: body`)
      t.notMatch(JSON.stringify(seen.headers), 'CANARY', `${status}: headers`)
      t.ok(seen.body.length < 3000, `${status}: ${seen.body.length} bytes`)
    }
    t.notMatch(JSON.stringify(gateway.lines), 'CANARY', 'nor the log')
    t.notMatch(await gateway.metrics.text(), 'CANARY', 'nor the metrics')
  },
)

void t.test('D-67: an endless error body is truncated', async (t) => {
  watchProcess(t)
  const upstream = await startSocketUpstream(t, ({ socket }) => {
    socket.write('HTTP/1.1 429 X\r\ncontent-type: application/json\r\nretry-after: 7\r\n\r\n')
    const more = (): void => {
      while (!socket.destroyed && socket.write('x'.repeat(65_536)));
    }
    socket.on('drain', more)
    more()
  })
  const gateway = await startGateway(t, { upstreams: { openai: upstream.url } })
  const seen = await ask(gateway, question('gpt-4o', true))
  t.equal(seen.status, 429)
  t.equal(seen.headers['retry-after'], '7')
  t.ok(seen.ownMs < 1000)
  t.not(upstream.connections[0]?.closedMs, null, 'the connection is closed')
})

void t.test('D-67: an error whose body stalls keeps its status', async (t) => {
  watchProcess(t)
  const upstream = await startSocketUpstream(t, ({ socket }) => {
    socket.write(
      'HTTP/1.1 429 X\r\ncontent-type: application/json\r\nretry-after: 7\r\ncontent-length: 50\r\n\r\n{',
    )
  })
  const gateway = await startGateway(t, {
    upstreams: { openai: upstream.url },
    upstreamOptions: 'timeouts: { idle_ms: 200 }',
  })
  const seen = await ask(gateway, question('gpt-4o', true))
  t.equal(seen.status, 429)
  t.equal(seen.headers['retry-after'], '7')
})
