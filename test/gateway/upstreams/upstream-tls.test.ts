/**
 * Goal: TLS with an upstream uses the configured authorities and certificates, over HTTP/1.1 and HTTP/2.
 * Method: real servers with certificates of a test authority.
 */
import { readFileSync } from 'node:fs'
import { createSecureServer, type Http2SecureServer } from 'node:http2'
import { createServer, type Server } from 'node:https'
import t, { type Test } from 'tap'
import { newAuthority, newPair, type Pair } from '../../helpers/certificates.js'
import { eventually } from '../../faults/scene.js'
import { replyTo, openPool, send } from './fixtures.js'
import { listen } from '../../helpers/listen.js'

const NAME = 'api.internal'

interface Files {
  readonly authority: Pair
  readonly server: Pair
  readonly client: Pair
}

function certificates(t: Test): Files {
  const folder = t.testdir()
  const authority = newAuthority(folder, 'ca')
  const server = newPair(folder, 'server', { authority, subject: `DNS:${NAME}` })
  return { authority, server, client: newPair(folder, 'client', { authority }) }
}

const pem = (path: string): string => readFileSync(path, 'utf8')

async function listening(t: Test, server: Server | Http2SecureServer): Promise<string> {
  return `https://127.0.0.1:${await listen(t, server)}`
}

const NO_TLS = { ca: null, cert: null, key: null, serverName: null }

void t.test('an authority, a client certificate and a server name', async (t) => {
  const files = certificates(t)
  const ca = pem(files.authority.cert)
  const server = createServer(
    {
      ca,
      cert: pem(files.server.cert),
      key: pem(files.server.key),
      requestCert: true,
      rejectUnauthorized: true,
    },
    (_req, res) => res.end('hello'),
  )
  const baseUrl = await listening(t, server)
  const client = { cert: pem(files.client.cert), key: pem(files.client.key) }
  const cases = [
    ['200 hello', { ...NO_TLS, ...client, ca, serverName: NAME }],
    ['ERR_TLS_CERT_ALTNAME_INVALID', { ...NO_TLS, ...client, ca, serverName: 'other.internal' }],
    ['ERR_TLS_CERT_ALTNAME_INVALID', { ...NO_TLS, ...client, ca }],
    ['SELF_SIGNED_CERT_IN_CHAIN', { ...NO_TLS, ...client, serverName: NAME }],
    // TLS 1.3: the server refuses after the handshake.
    ['UND_ERR_SOCKET', { ...NO_TLS, ca, serverName: NAME }],
  ] as const
  for (const [expected, tls] of cases) {
    const pool = openPool({ baseUrl, tls })
    t.equal(await replyTo(pool, 'a'), expected)
    await pool.destroy()
  }
})

void t.test('HTTP/2 if both sides support it', async (t) => {
  const files = certificates(t)
  const tls = { ...NO_TLS, ca: pem(files.authority.cert), serverName: NAME }
  const versions: string[] = []
  let sessions = 0
  const server = createSecureServer(
    { cert: pem(files.server.cert), key: pem(files.server.key), allowHTTP1: true },
    (req, res) => {
      versions.push(req.httpVersion)
      if (req.url === '/slow') res.write('hel')
      else if (req.url === '/cut') {
        res.write('hel', () => res.stream.close(2))
      } else res.end('hello')
    },
  )
  server.on('session', () => (sessions += 1))
  const baseUrl = await listening(t, server)
  const pool = openPool({ baseUrl, tls, http2: true, maxConnections: 2 })
  for (let i = 0; i < 3; i += 1) t.equal(await replyTo(pool, 'a'), '200 hello')
  t.same(versions, ['2.0', '2.0', '2.0'])
  t.ok(sessions <= 2, 'over few connections')
  t.notMatch(await replyTo(pool, 'cut'), /^200/, 'a reply that is reset is an error')
  t.equal(await replyTo(pool, 'a'), '200 hello', 'and the next is whole')
  const before = sessions
  const slow = send(pool, 'slow')
  await eventually(() => versions.length === 6, 'the request is upstream')
  slow.call.abort()
  for (let i = 0; i < 3; i += 1) t.equal(await replyTo(pool, 'a'), '200 hello', 'after an abort')
  t.equal(sessions, before, 'an abort ends the stream and keeps the connection')
  await pool.destroy()
  const plain = openPool({ baseUrl, tls })
  t.equal(await replyTo(plain, 'a'), '200 hello')
  t.equal(versions.at(-1), '1.1', 'not unless it is turned on')
  await plain.destroy()
})
