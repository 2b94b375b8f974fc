/**
 * Goal: requests that another site makes a browser send change nothing (K-157, K-158, K-166).
 * Method: each form of forged request, followed by a look at the store.
 */
import t from 'tap'
import { startStage } from '../../dashboard/fixtures/stage.js'

void t.test("K-157: only a page of ours, with its session's token, changes something", async (t) => {
  const stage = await startStage(t)
  const browser = await stage.signedIn('ada@example.com')
  const other = await stage.signedIn('bob@example.com')
  const former = browser.csrf
  await browser.signIn('ada@example.com')
  const port = new URL(stage.origin).port
  const forged: [what: string, headers: Record<string, string>][] = [
    ['a form elsewhere', { origin: 'https://evil.example' }],
    ['another port of this host', { origin: 'http://127.0.0.1:1' }],
    ['another name of this host', { origin: `http://localhost:${port}` }],
    ['a name that begins like ours', { origin: `${stage.origin}.evil.example` }],
    ['a sandboxed frame', { origin: 'null' }],
    ['no origin', { origin: '' }],
    ["the browser's sec-fetch-site", { 'sec-fetch-site': 'cross-site' }],
    ['a page of the same site', { 'sec-fetch-site': 'same-site' }],
    ['an address that was typed', { 'sec-fetch-site': 'none' }],
    ['no token', { 'x-sluice-csrf': '' }],
    ['an old token', { 'x-sluice-csrf': former }],
    ['the token of another session', { 'x-sluice-csrf': other.csrf }],
    ['JSON that a form can send', { 'content-type': 'text/plain' }],
    ['a form', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['two types', { 'content-type': 'application/json, text/plain' }],
  ]
  for (const [what, headers] of forged) {
    const answer = await browser.ask('POST', '/keys', { body: { name: what }, headers })
    t.match([answer.status, answer.error['kind']], [403, 'forbidden'], what)
    t.same(answer.headers.getSetCookie(), [])
    t.equal(answer.headers.get('access-control-allow-origin'), null)
  }
  t.same((await browser.get('/keys')).json['keys'], [], 'no key was made')
  t.equal((await browser.ask('POST', '/keys', { body: { name: 'mine' } })).status, 201, 'and the page can')
  const read = await browser.get('/keys', { 'sec-fetch-site': 'cross-site' })
  t.equal(read.status, 403, 'nor is anything shown to another site')
})

void t.test('a forged sign-in is refused', async (t) => {
  const stage = await startStage(t)
  await stage.account('ada@example.com')
  const body = { email: 'ada@example.com', password: 'correct horse battery staple' }
  for (const headers of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }]) {
    const answer = await stage.browser().ask('POST', '/session', { body, headers })
    t.equal(answer.status, 403)
    t.same(answer.headers.getSetCookie(), [])
  }
})

void t.test('K-158: GET and HEAD change nothing, and no header makes them', async (t) => {
  const stage = await startStage(t)
  const browser = await stage.signedIn('ada@example.com')
  const key = await browser.ask('POST', '/keys', { body: { name: 'mine' } })
  const { id } = key.json['key'] as { id: string }
  const paths = ['/keys', `/keys/${id}`, `/keys/${id}/rotate`, '/session', '/sessions', '/password']
  for (const path of paths) {
    for (const method of ['GET', 'HEAD', 'OPTIONS']) {
      const isRead = ['/keys', `/keys/${id}`, '/session'].includes(path)
      if (method !== 'OPTIONS' && isRead) continue
      const headers = { 'x-http-method-override': 'DELETE', 'x-method-override': 'DELETE' }
      const answer = await browser.ask(method, path, { headers })
      t.equal(answer.status, 405, `${method} ${path}`)
    }
    const posted = await browser.ask('POST', `${path}?_method=DELETE`, { body: {} })
    t.ok(posted.status >= 400, `POST ${path}?_method=DELETE`)
  }
  const after = await browser.get('/keys')
  t.match(after.json, { keys: [{ id, state: 'live' }] })
  t.match((await browser.ask('PATCH', '/keys', { body: {} })).error['message'], /GET, HEAD, POST/)
})

void t.test("K-166: a client's claims about its address and host are ignored", async (t) => {
  const stage = await startStage(t)
  const admin = await stage.signedIn('root@example.com', 'max', 'admin')
  const statuses: number[] = []
  for (let at = 0; at < 8; at += 1) {
    const forwarded = { 'x-forwarded-for': `203.0.113.${at}`, 'x-real-ip': `203.0.113.${at}` }
    const body = { email: 'root@example.com', password: `wrong ${at}` }
    statuses.push((await stage.browser().ask('POST', '/session', { body, headers: forwarded })).status)
  }
  t.same(statuses, [401, 401, 401, 401, 401, 429, 429, 429], 'five at once, from wherever')
  const made = await admin.ask('POST', '/accounts', {
    body: { email: 'new@example.com', plan: 'starter' },
    headers: {
      'x-forwarded-host': 'evil.example',
      'x-forwarded-proto': 'https',
      forwarded: 'host=evil',
    },
  })
  const { url } = made.json['link'] as { url: string }
  t.ok(url.startsWith(`${stage.origin}/dashboard/reset#`), 'a link leads to where the page is')
})
