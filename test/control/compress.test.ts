/**
 * Goal: replies of the dashboard's API are compressed if the client accepts it, and decompress to the same
 * text.
 * Method: a gateway with enough entries for a long reply, over plain HTTP.
 */
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import t from 'tap'
import { accepts, encodingFor } from '../../src/control/compress.js'
import { aRow, startStage, type Browser } from '../dashboard/fixtures/stage.js'

interface Raw {
  readonly headers: IncomingMessage['headers']
  readonly bytes: Buffer
}

/** The reply on the wire. */
async function raw(browser: Browser, path: string, encoding: string): Promise<Raw> {
  const headers = { cookie: browser.cookie, 'accept-encoding': encoding }
  const sent = request(`${browser.origin}/dashboard/api${path}`, { headers })
  sent.end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  return { headers: response.headers, bytes: await buffer(response) }
}

void t.test('replies use br or gzip only if the client accepts it', async (t) => {
  const stage = await startStage(t)
  const ada = await stage.account('ada@example.com')
  const browser = stage.browser()
  await browser.signIn('ada@example.com')
  for (let at = 0; at < 60; at += 1) await stage.store.ledger.settle(aRow(ada.id))
  for (const path of ['/requests?limit=50', '/requests.csv', '/live']) {
    const plain = await raw(browser, path, 'identity')
    t.equal(plain.headers['content-encoding'], undefined, path)
    t.match(plain.headers.vary, 'accept-encoding')
    const zipped = await raw(browser, path, 'gzip, deflate')
    t.equal(zipped.headers['content-encoding'], 'gzip', path)
    t.equal(gunzipSync(zipped.bytes).toString(), plain.bytes.toString(), 'the same text')
    t.ok(zipped.bytes.length < plain.bytes.length / 4, `${zipped.bytes.length} bytes`)
  }
  const plain = await raw(browser, '/models', 'identity')
  const best = await raw(browser, '/models', 'gzip, br')
  t.equal(best.headers['content-encoding'], 'br')
  t.equal(brotliDecompressSync(best.bytes).toString(), plain.bytes.toString())
  t.equal((await raw(browser, '/models', 'br;q=0, gzip')).headers['content-encoding'], 'gzip')

  const session = await raw(browser, '/session', 'gzip, br')
  t.equal(session.headers['content-encoding'], undefined, 'a short reply is not compressed')
  const first = await raw(browser, '/live', 'gzip')
  const headers = { 'if-none-match': first.headers.etag ?? '', 'accept-encoding': 'gzip' }
  t.equal((await browser.get('/live', headers)).status, 304, 'the tag is that of all encodings')
})

void t.test('accept-encoding is parsed by RFC 9110', (t) => {
  for (const header of ['gzip', 'GZIP', 'br, gzip;q=0.5', ' gzip ; q=1']) {
    t.ok(accepts('gzip', header), header)
  }
  for (const header of [undefined, '', 'br', 'gzip;q=0', 'gzip; q=0.000', 'xgzip']) {
    t.notOk(accepts('gzip', header), String(header))
  }
  t.equal(encodingFor('gzip, br'), 'br')
  t.equal(encodingFor('identity'), null)
  t.end()
})
