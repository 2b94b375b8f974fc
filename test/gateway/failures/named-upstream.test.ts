/**
 * Goal: a 502 or 504 names the upstream and the kind of failure, and neither an address nor a credential.
 * Method: upstreams that fail in each way, whole and streamed, in the formats of the clients.
 */
import type { Socket } from 'node:net'
import t from 'tap'
import { httpReply, startSocketUpstream } from '../../faults/socket-upstream.js'
import { startGateway } from '../../helpers/gateway.js'
import { startRawUpstream } from '../../helpers/raw-upstream.js'

const JSON_TYPE = ['content-type: application/json']
const MODEL = 'gpt-4o'
const messages = [{ role: 'user', content: 'hi' }]

/** What the upstream does with a request, and the expected status and message. */
const FAILURES: [string, (socket: Socket) => void, number, RegExp][] = [
  ['reset', (socket) => void socket.resetAndDestroy(), 502, /reset the connection without a reply/],
  ['closed', (socket) => void socket.end(), 502, /closed the connection without a reply/],
  ['garbage', (socket) => void socket.end('SSH-2.0-x\r\n'), 502, /is not valid HTTP/],
  ['text', (socket) => void socket.end(httpReply(200, JSON_TYPE, 'oops')), 502, /is not JSON/],
  [
    'truncated',
    (socket) => void socket.end(`HTTP/1.1 200 OK\r\n${JSON_TYPE.join()}\r\ncontent-length: 9\r\n\r\n{`),
    502,
    /closed the connection before its reply was complete/,
  ],
  [
    'status 500',
    (socket) => void socket.end(httpReply(500, JSON_TYPE, '{"error":{"message":"Overheated."}}')),
    502,
    /answered 500: Overheated\./,
  ],
  [
    'status 401',
    (socket) => void socket.end(httpReply(401, JSON_TYPE, '{"error":{"message":"Bad key."}}')),
    502,
    /refused the gateway's own credentials/,
  ],
  ['silent', () => undefined, 504, /did not begin to reply in time/],
]

for (const [name, act, status, message] of FAILURES) {
  void t.test(`${name}: the error names the upstream and the failure`, async (t) => {
    const upstream = await startSocketUpstream(t, ({ socket }) => act(socket))
    const gateway = await startGateway(t, {
      upstreams: { openai: upstream.url },
      upstreamOptions: 'timeouts: { first_byte_ms: 300, first_byte_whole_ms: 300 }',
    })
    for (const path of ['/v1/chat/completions', '/v1/messages', '/v1/responses']) {
      const body = { model: MODEL, messages, input: 'hi', max_tokens: 9 }
      const response = await fetch(`${gateway.origin}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      const text = await response.text()
      t.equal(response.status, status, `${path} ${text}`)
      const { error } = JSON.parse(text) as { error: { message: string } }
      t.match(error.message, message)
      t.match(error.message, /upstream 'openai'/)
      t.notMatch(text, /127\.0\.0\.1|localhost/)
    }
  })
}

void t.test('a connection that cannot be opened', async (t) => {
  const plain = await startRawUpstream(t, () => ({ type: 'text/plain', chunks: [] }))
  const rows: [string, RegExp][] = [
    ['http://127.0.0.1:9/v1', /^The upstream 'openai' refused the connection \(ECONNREFUSED\)\.$/],
    [
      `${plain.origin.replace('http:', 'https:')}/v1`,
      /^The upstream 'openai' failed the TLS handshake \((?:EPROTO|ERR_SSL_\w+)\)\.$/,
    ],
    ['http://nothing.invalid/v1', /has a host name that could not be resolved \((?:ENOTFOUND|EAI_)/],
  ]
  for (const [url, message] of rows) {
    const more = { upstreams: { openai: url }, upstreamOptions: 'timeouts: { connect_ms: 2000 }' }
    const gateway = await startGateway(t, more)
    const response = await gateway.chat({ model: MODEL, messages })
    const { error } = (await response.json()) as { error: { message: string; kind: string } }
    t.match(error, { kind: 'upstream_unreachable', message }, url)
    t.notMatch(error.message, /127\.0\.0\.1|nothing\.invalid/)
  }
})
