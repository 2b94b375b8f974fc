/**
 * Goal: only pages of the configured origins can use the data plane from a browser, including errors and
 * streams. The dashboard is not affected, and without the setting no reply has CORS headers.
 * Method: requests with the headers that a browser sends, to a running gateway; then a real browser.
 */
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { launch, SKIP } from '../dashboard/browser/browser.js'

const PAGE = 'https://app.example.com'
const CHAT = { model: 'gpt-4o', messages: [{ role: 'user', content: 'hi' }] }

function preflight(origin: string): RequestInit {
  const headers = {
    origin,
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization,content-type,x-stainless-lang',
  }
  return { method: 'OPTIONS', headers }
}

async function fetched(url: string, init: RequestInit): Promise<Response> {
  const res = await fetch(url, init)
  await res.clone().arrayBuffer()
  return res
}

void t.test('a preflight needs no key', async (t) => {
  const gateway = await startGateway(t, { server: `cors: { origins: ['${PAGE}'] }` })
  for (const path of ['/v1/chat/completions', '/v1/models', '/native/openai/v1/files', '/v1/none']) {
    const res = await fetched(gateway.origin + path, preflight(PAGE))
    t.equal(res.status, 204, path)
    t.equal(res.headers.get('access-control-allow-origin'), PAGE)
    t.match(res.headers.get('access-control-allow-methods'), /POST.*DELETE/)
    t.equal(res.headers.get('access-control-allow-headers'), 'authorization,content-type,x-stainless-lang')
    t.equal(res.headers.get('vary'), 'origin')
    t.equal(res.headers.get('content-length'), null)
  }
  const other = await fetched(`${gateway.baseUrl}/models`, preflight('https://evil.example.com'))
  t.equal(other.status, 405)
  t.equal(other.headers.get('access-control-allow-origin'), null)
  t.equal(other.headers.get('vary'), 'origin')
})

void t.test('replies, errors and streams have the headers', async (t) => {
  const gateway = await startGateway(t, {
    server: `cors: { origins: ['${PAGE}', 'tauri://localhost'] }, max_body_bytes: 1000`,
  })
  const allowed = (res: Response): string | null => res.headers.get('access-control-allow-origin')
  for (const origin of [PAGE, 'tauri://localhost']) {
    const headers = { origin }
    const cases: [number, Promise<Response>][] = [
      [200, gateway.chat(CHAT, { headers })],
      [200, gateway.chat({ ...CHAT, stream: true }, { headers })],
      [400, gateway.chat('{', { headers })],
      [413, gateway.chat('x'.repeat(2000), { headers })],
      [401, gateway.chat(CHAT, { headers: { origin, authorization: 'Bearer sk_no' } })],
      [404, fetch(`${gateway.origin}/v1/none`, { headers })],
      [400, fetch(`${gateway.origin}//v1/chat/completions`, { headers })],
    ]
    for (const [status, sent] of cases) {
      const res = await sent
      await res.arrayBuffer()
      t.equal(res.status, status)
      t.equal(allowed(res), origin, `${status}`)
      t.match(res.headers.get('access-control-expose-headers'), /x-request-id.*x-sluice-upstream/)
      t.match(res.headers.get('vary'), 'origin')
      t.equal(res.headers.get('access-control-allow-credentials'), null)
    }
  }
  const other = await gateway.chat(CHAT, { headers: { origin: 'https://evil.example.com' } })
  await other.arrayBuffer()
  t.equal(other.status, 200)
  t.equal(allowed(other), null)
  t.equal(other.headers.get('vary'), 'origin')
  const dashboard = await fetched(`${gateway.origin}/dashboard/api/session`, {
    headers: { origin: PAGE },
  })
  t.equal(allowed(dashboard), null)
})

void t.test('CORS is off by default, and * allows every origin', async (t) => {
  const off = await startGateway(t)
  const res = await off.chat(CHAT, { headers: { origin: PAGE } })
  await res.arrayBuffer()
  t.same(
    [...res.headers.keys()].filter((name) => name.startsWith('access-control')),
    [],
  )
  t.equal(res.headers.get('vary'), null)
  t.equal((await fetched(`${off.baseUrl}/models`, preflight(PAGE))).status, 405)
  const all = await startGateway(t, { server: "cors: { origins: ['*'] }" })
  const any = await all.chat(CHAT, { headers: { origin: 'http://localhost:3000' } })
  await any.arrayBuffer()
  t.equal(any.headers.get('access-control-allow-origin'), '*')
})

/** Serves an empty page of another origin. Returns its URL. */
async function startPage(t: Test): Promise<string> {
  const server = createServer((_req, res) => {
    res.writeHead(200, { 'content-type': 'text/html' }).end('<title>app</title>')
  })
  t.teardown(() => server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

void t.test('a browser allows the configured origin only', { skip: SKIP }, async (t) => {
  const page = await startPage(t)
  const allowed = await startGateway(t, { server: `cors: { origins: ['${page}'] }` })
  const refused = await startGateway(t, { server: `cors: { origins: ['${PAGE}'] }` })
  const browser = await launch(t)
  const tab = await browser.newPage()
  await tab.goto(page)
  const post = (gateway: TestGateway): Promise<string> =>
    tab.evaluate(
      async ({ url, secret, body }) => {
        try {
          const res = await fetch(url, {
            method: 'POST',
            headers: { 'content-type': 'application/json', 'x-api-key': secret },
            body,
          })
          const text = await res.text()
          const upstream = res.headers.get('x-sluice-upstream') ?? ''
          return `${res.status} ${upstream} ${text.includes('[DONE]')}`
        } catch {
          return 'blocked'
        }
      },
      {
        url: `${gateway.baseUrl}/chat/completions`,
        secret: gateway.secret,
        body: JSON.stringify({ ...CHAT, stream: true }),
      },
    )
  t.equal(await post(allowed), '200 openai true')
  t.equal(await post(refused), 'blocked')
})
