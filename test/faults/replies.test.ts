// Goal: a 200 of another kind than requested is refused or converted, and never looks like a complete reply
//   by mistake (D-62, D-63, D-76, D-77).
// Method: each fault on each upstream, streamed and whole; a second server counts redirected requests.
import t from 'tap'
import { startGateway } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
import { ask, checkAfter, checkFailed, isComplete, question, UPSTREAMS, watchProcess } from './scene.js'
import { startSocketUpstream } from './socket-upstream.js'

const FAILED = ['upstream_truncated', 'upstream_malformed', 'upstream_failed']

for (const { name, model } of UPSTREAMS) {
  void t.test(`D-63: ${name}: a 200 without a reply`, async (t) => {
    watchProcess(t)
    const gateway = await startGateway(t)
    for (const mode of ['nothing', 'comments', 'pings']) {
      gateway.emulator.script({ times: 1, fault: { kind: 'silent', mode } })
      const seen = await ask(gateway, question(model, true))
      t.equal(seen.status, 502, mode)
      checkFailed(t, seen, { name: mode, kinds: FAILED })
    }
    gateway.emulator.script({ times: 1, fault: { kind: 'error', event: 0 } })
    const early = await ask(gateway, question(model, true))
    t.ok(early.status >= 400, `an error event first is a status: ${early.status}`)
    gateway.emulator.script({
      times: 1,
      fault: { kind: 'error', event: name === 'anthropic' ? 5 : 3 },
    })
    const late = await ask(gateway, question(model, true))
    checkFailed(t, late, {
      name: 'an error event after content',
      kinds: ['upstream_failed', 'upstream_busy'],
    })
    await checkAfter(t, gateway)
  })

  void t.test(`D-76, D-77: ${name}: another kind of body`, async (t) => {
    watchProcess(t)
    const gateway = await startGateway(t)
    const canary = await startUpstream(t)
    for (const stream of [true, false]) {
      const faults = [
        { kind: 'gzip' },
        { kind: 'html' },
        { kind: 'empty' },
        { kind: 'redirect', to: `${canary.origin}/openai/v1/chat/completions` },
        { kind: 'redirect', code: 307, to: `${canary.origin}/openai/v1/chat/completions` },
        { kind: 'redirect', code: 308, to: `${canary.origin}/openai/v1/chat/completions` },
      ] as const
      for (const fault of faults) {
        gateway.emulator.script({ times: 1, fault })
        const seen = await ask(gateway, question(model, stream))
        t.equal(seen.status, 502, `${fault.kind}, stream ${stream}`)
        checkFailed(t, seen, { name: `${fault.kind}, stream ${stream}`, kinds: FAILED })
      }
      gateway.emulator.script({ times: 1, fault: { kind: 'untyped' } })
      const untyped = await ask(gateway, question(model, stream))
      if (isComplete(untyped)) t.pass('no content-type: read by its content')
      else checkFailed(t, untyped, { name: `no content-type, stream ${stream}`, kinds: FAILED })
    }
    t.equal(canary.ledger.length, 0, 'no redirect was followed')
    gateway.emulator.script({ times: 1, fault: { kind: 'whole' } })
    const whole = await ask(gateway, question(model, true))
    t.ok(isComplete(whole), 'a JSON body becomes the requested stream')
    await checkAfter(t, gateway)
  })
}

void t.test('D-62: [DONE] ends a stream without a finish reason only after content', async (t) => {
  watchProcess(t)
  const chunk = (delta: string): string =>
    `{"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":${delta},"finish_reason":null}]}`
  let delta = ''
  const upstream = await startSocketUpstream(t, ({ socket }) => {
    const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n'
    socket.write(`${head}data: ${chunk(delta)}\n\n`)
    setTimeout(() => socket.end('data: [DONE]\n\n'), 30)
  })
  const gateway = await startGateway(t, { upstreams: { openai: upstream.url } })
  delta = '{"content":"Hi"}'
  const seen = await ask(gateway, question('gpt-4o', true))
  t.equal(seen.text, 'Hi')
  t.ok(isComplete(seen), 'after content it is complete')
  delta = '{"role":"assistant"}'
  const empty = await ask(gateway, question('gpt-4o', true))
  checkFailed(t, empty, { name: '[DONE] before content', kinds: FAILED })
})

void t.test('D-77: informational replies before the final one', async (t) => {
  watchProcess(t)
  const reply =
    '{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}'
  let before = ''
  const upstream = await startSocketUpstream(t, ({ socket }) => {
    socket.write(
      `${before}HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${reply.length}\r\n\r\n${reply}`,
    )
  })
  const gateway = await startGateway(t, { upstreams: { openai: upstream.url } })
  const cases = {
    '103': 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n',
    '102 twice': 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(2),
  }
  for (const [name, text] of Object.entries(cases)) {
    before = text
    const seen = await ask(gateway, question('gpt-4o', false))
    t.equal(seen.status, 200, name)
    t.equal(seen.text, 'Hi', name)
  }
  for (const text of [
    'HTTP/1.1 100 Continue\r\n\r\n',
    'HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
  ]) {
    before = text
    const seen = await ask(gateway, question('gpt-4o', false))
    if (seen.status !== 200) checkFailed(t, seen, { name: text.slice(9, 12), kinds: ['upstream_failed'] })
    else t.equal(seen.text, 'Hi')
  }
})

void t.test('D-77: statuses that no upstream should send with a reply', async (t) => {
  watchProcess(t)
  let status = 0
  const upstream = await startSocketUpstream(t, ({ socket }) => {
    socket.write(`HTTP/1.1 ${status} X\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}`)
  })
  const gateway = await startGateway(t, { upstreams: { openai: upstream.url } })
  for (status of [201, 202, 206, 299, 300, 303]) {
    const seen = await ask(gateway, question('gpt-4o', false))
    t.equal(seen.status, 502, String(status))
    checkFailed(t, seen, { name: String(status), kinds: FAILED })
  }
})

void t.test('bytes that are not HTTP', async (t) => {
  watchProcess(t)
  let text = ''
  const upstream = await startSocketUpstream(t, ({ socket }) => socket.end(text))
  const gateway = await startGateway(t, { upstreams: { openai: upstream.url } })
  const cases = [
    'SSH-2.0-OpenSSH_9.6\r\n',
    '\u0016\u0003\u0001\u0002',
    'HTTP/1.1 200 OK\r\nbad header line\r\n\r\n',
    `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(20_000)}\r\n\r\n{}`,
    'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
    '',
  ]
  for (text of cases) {
    const seen = await ask(gateway, question('gpt-4o', false))
    t.equal(seen.status, 502, text.slice(0, 30))
    checkFailed(t, seen, { name: text.slice(0, 30), kinds: FAILED })
  }
})
