// Goal: nothing of a client's headers reaches an upstream: no framing, no hop-by-hop header, no
//   credential, no forwarding claim (A-10, B-38, B-39).
// Method: hostile headers on a raw request; the bytes that raw upstreams of all dialects get.
import t from 'tap'
import { startGateway } from '../../helpers/gateway.js'
import { send } from './raw-client.js'
import { question, UPSTREAMS, watchProcess } from '../scene.js'
import { httpReply, startSocketUpstream } from '../socket-upstream.js'

const HOSTILE = [
  'Connection: content-length, authorization, x-api-key',
  'TE: trailers',
  'Trailer: x-canary',
  'Keep-Alive: timeout=999999',
  'Proxy-Connection: keep-alive',
  'Proxy-Authorization: Basic CANARY',
  'X-Forwarded-For: 10.1.2.3',
  'X-Forwarded-Host: CANARY.example',
  'X-Forwarded-Proto: https',
  'Forwarded: for=CANARY',
  'X-Real-IP: 10.9.8.7',
  'x-sluice-upstream: CANARY',
  'x-sluice-generation: 99',
  'anthropic-version: CANARY',
  'anthropic-beta: CANARY',
  'openai-organization: CANARY',
  'cookie: session=CANARY',
  'user-agent: CANARY',
  'accept-encoding: gzip, br, CANARY',
  '__proto__: CANARY',
]
/** Header names that a request to an upstream may have. */
const ALLOWED =
  /^(host|connection|content-type|content-length|accept|accept-encoding|authorization|x-api-key|x-goog-api-key|anthropic-version|anthropic-beta|user-agent)$/
const CREDENTIALS: Record<string, string> = {
  openai: 'authorization: Bearer emulated',
  anthropic: 'x-api-key: emulated',
  google: 'x-goog-api-key: emulated',
}

for (const { name, model } of UPSTREAMS) {
  void t.test(name, async (t) => {
    watchProcess(t)
    const upstream = await startSocketUpstream(t, ({ socket }) =>
      socket.write(httpReply(400, ['content-type: application/json'], '{"error":{"message":"no"}}')),
    )
    const key = name === 'google' ? 'gemini' : name
    const gateway = await startGateway(t, { upstreams: { [key]: upstream.url } })
    const body = question(model, true)
    const lines = [
      'POST /v1/chat/completions?key=CANARY HTTP/1.1',
      'host: CANARY.example',
      `authorization: Bearer ${gateway.secret}`,
      'content-type: application/json',
      `content-length: ${Buffer.byteLength(body)}`,
      ...HOSTILE,
    ]
    const { answers } = await send(gateway.port, `${lines.join('\r\n')}\r\n\r\n${body}`, {
      waitMs: 500,
    })
    t.equal(answers[0]?.status, 400, 'the upstream received the request')
    const [request = ''] = upstream.connections.flatMap(({ requests }) => requests)
    const [head = '', sent = ''] = request.split('\r\n\r\n')
    const headers = head.toLowerCase().split('\r\n').slice(1)
    const names = headers.map((line) => line.slice(0, line.indexOf(':')))
    t.same(
      names.filter((each) => !ALLOWED.test(each)),
      [],
      'only headers of the gateway',
    )
    t.same(
      names.filter((each, i) => names.indexOf(each) !== i),
      [],
      'each once',
    )
    t.ok(headers.includes(`content-length: ${sent.length}`), 'one length, and the correct one')
    t.ok(headers.includes((CREDENTIALS[name] ?? '').toLowerCase()), 'our credential')
    t.ok(headers.includes('accept-encoding: identity'))
    t.notMatch(request, 'CANARY')
    t.notMatch(request, gateway.secret, "not the client's key")
    t.notMatch(JSON.stringify(gateway.lines), 'CANARY', 'nor in the log')
  })
}

void t.test("the provider's key is not accepted from a client", async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t)
  for (const credential of [
    'authorization: Bearer emulated',
    'x-api-key: emulated',
    'x-goog-api-key: emulated',
  ]) {
    const body = question('gpt-4o', false)
    const { answers } = await send(
      gateway.port,
      `POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n${credential}\r\ncontent-type: application/json\r\n` +
        `content-length: ${body.length}\r\n\r\n${body}`,
      { waitMs: 300 },
    )
    t.equal(answers[0]?.status, 401, credential)
  }
  t.equal(gateway.emulator.ledger.length, 0)
})
