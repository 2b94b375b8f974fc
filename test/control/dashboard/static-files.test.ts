/**
 * Goal: the page's files are served with security and cache headers, and no other file is served.
 * Method: a folder with the layout of Vite's build, behind the real listener.
 */
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { request, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { StaticFiles, securityHeadersOf } from '../../../src/control/dashboard/static-files.js'
import { setHeaders } from '../../../src/http/respond.js'
import { openServer } from '../../../src/http/server.js'

async function served(t: Test, folder: string): Promise<string> {
  const files = new StaticFiles(folder)
  const server = await openServer({
    host: '127.0.0.1',
    port: 0,
    handler: (req, res) => {
      // The dashboard sets these headers before each reply.
      setHeaders(res, securityHeadersOf('/dashboard/'))
      void files.answer((req.url ?? '').slice(1), req, res)
    },
  })
  t.teardown(() => server.drain(0))
  return `http://127.0.0.1:${server.port}/`
}

function built(folder: string): void {
  mkdirSync(join(folder, 'assets'), { recursive: true })
  writeFileSync(join(folder, 'index.html'), '<!doctype html><title>Sluice</title>')
  writeFileSync(join(folder, 'assets', 'index-BxY12_ab.js'), 'let x = 1;\n'.repeat(100))
  writeFileSync(join(folder, 'icon.svg'), '<svg/>')
}

void t.test('serves files, and the page for every other path', async (t) => {
  const folder = t.testdir()
  built(folder)
  const base = await served(t, folder)
  for (const path of ['', 'keys', 'usage?from=1', 'requests/0192-1', 'index.html']) {
    const page = await fetch(base + path)
    t.match([page.status, await page.text()], [200, /Sluice/], path)
    t.equal(page.headers.get('cache-control'), 'no-cache')
    const policy = page.headers.get('content-security-policy') ?? ''
    t.match(policy, "default-src 'none'; script-src 'self'; style-src 'self';")
    t.match(policy, "frame-ancestors 'none'")
    t.notMatch(policy, /unsafe|https?:|\*/)
    t.equal(page.headers.get('x-content-type-options'), 'nosniff')
  }
  const script = await fetch(`${base}assets/index-BxY12_ab.js`)
  t.equal(script.headers.get('content-encoding'), 'gzip')
  t.match(script.headers.get('cache-control'), 'immutable')
  t.match(script.headers.get('content-type'), 'text/javascript')
  t.equal((await script.text()).length, 1_100)
  const etag = script.headers.get('etag') ?? ''
  const again = await fetch(script.url, { headers: { 'if-none-match': `"x", ${etag}` } })
  t.same([again.status, await again.text()], [304, ''])

  const plain = request(`${base}assets/index-BxY12_ab.js`, {
    headers: { 'accept-encoding': 'br, gzip;q=0' },
  })
  plain.end()
  const [response] = (await once(plain, 'response')) as [IncomingMessage]
  t.equal(response.headers['content-encoding'], undefined)
  t.equal((await text(response)).length, 1_100)
})

void t.test('a missing file is 404, and other methods are refused', async (t) => {
  const folder = t.testdir()
  built(folder)
  writeFileSync(join(folder, '..', 'secret.txt'), 'do not show')
  const base = await served(t, folder)
  t.equal((await fetch(`${base}assets/none.js`)).status, 404)
  for (const path of ['..%2fsecret.txt', '%2e%2e/secret.txt', 'assets/..%5c..%5csecret.txt']) {
    const answer = await fetch(base + path)
    t.notMatch(await answer.text(), 'do not show', path)
  }
  const posted = await fetch(base, { method: 'POST', body: 'x' })
  t.same([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD'])
  const head = await fetch(base, { method: 'HEAD' })
  t.same([head.status, await head.text()], [200, ''])
})

void t.test('reports that the page is not built, until it is', async (t) => {
  const folder = t.testdir()
  const base = await served(t, join(folder, 'dist'))
  const missing = await fetch(base)
  t.match([missing.status, await missing.text()], [503, /npm run build/])
  built(join(folder, 'dist'))
  t.equal((await fetch(base)).status, 200)
})
