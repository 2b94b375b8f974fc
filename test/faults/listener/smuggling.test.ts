/**
 * Goal: the length of a body is taken from its own header on every request; earlier requests on the
 * connection have no effect.
 * Method: a real listener and one raw connection whose bodies contain the text of another request, which must
 * not run.
 */
import t from 'tap'
import { sendReply } from '../../../src/http/respond.js'
import { openServer } from '../../../src/http/server.js'
import { bodyOf } from '../../helpers/requests.js'
import { send } from './raw-client.js'

/** A head with a decoy: a header whose value is the name of the length header. */
function request(decoy: string, body: string): string {
  const lines = ['POST /v1/chat/completions HTTP/1.1', 'Host: gateway', decoy]
  return [...lines, `Content-Length: ${body.length}`, '', body].join('\r\n')
}

const MARKER = '/smuggled'
const INNER = `GET ${MARKER} HTTP/1.1\r\nHost: gateway\r\n\r\n`

const decoys = [
  'X-A: content-length',
  'X-A: Content-Length',
  'X-Content-Length: 2',
  'X-A: content-length: 2',
  'X-A: transfer-encoding',
  'Connection: keep-alive, content-length',
]

for (const decoy of decoys) {
  void t.test(`a body never runs as a request after "${decoy}"`, async (t) => {
    const bodies: string[] = []
    const paths: string[] = []
    const server = await openServer({
      host: '127.0.0.1',
      port: 0,
      handler: (req, res) => {
        paths.push(req.url ?? '')
        bodyOf(req, (body) => {
          bodies.push(body.toString('latin1'))
          sendReply(res, { status: 200, headers: ['content-type', 'application/json'], body: '{}' })
        })
      },
    })
    t.teardown(() => server.drain(0))
    const sent = ['{}', `${' '.repeat(40)}${INNER}`, '{}', INNER, 'x'.repeat(900)]
    await send(
      server.port,
      sent.map((body) => request(decoy, body)),
      { waitMs: 300, chunkEveryMs: 20 },
    )
    t.same(bodies, sent, 'each body arrived whole')
    t.notOk(paths.includes(MARKER), 'no body byte ran as a request')
  })
}
