/**
 * Goal: every reply below /dashboard has the security headers, including errors.
 * Method: the route table gives the API's requests, each without a session, as an owner and as an
 * administrator, with and without a body; and the page's files, redirects, 304, 404, 405 and refused requests
 * beside them.
 */
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { dashboardRoutes } from '../../../src/control/dashboard/routing/routes.js'
import type { Services } from '../../../src/control/services.js'
import { startStage } from '../../dashboard/fixtures/stage.js'
import { ofToday } from '../../helpers/long-suite.js'

const ROUTES = dashboardRoutes({} as Services)
/** With these queries the routes below return 200. */
const QUERIES: Readonly<Record<string, string>> = {
  '/usage': '?by=day&fromMs=0&toMs=1',
  '/requests.csv': '?outcome=failed',
  '/models/explain': '?model=gpt-5.4-mini',
}
/** Routes that end the session, so they are last. */
const LAST = ['DELETE /session', 'DELETE /sessions']

const EVERY: Readonly<Record<string, RegExp>> = {
  'content-security-policy': /default-src 'none'.*frame-ancestors 'none'/,
  'x-content-type-options': /^nosniff$/,
  'x-frame-options': /^DENY$/,
  'referrer-policy': /^same-origin$/,
  'cross-origin-opener-policy': /^same-origin$/,
  'cross-origin-resource-policy': /^same-origin$/,
  'permissions-policy': /camera=\(\)/,
  'cache-control': /no-store|no-cache|immutable/,
}

/** The headers that a reply lacks. */
function lacking(headers: Headers): string[] {
  return Object.entries(EVERY).flatMap(([name, wanted]) =>
    wanted.test(headers.get(name) ?? '') ? [] : [`${name}: ${headers.get(name) ?? 'none'}`],
  )
}

void t.test('every route of the API replies by its policy to each kind of visitor', async (t) => {
  const stage = await startStage(t)
  const anonymous = stage.browser()
  const owner = await stage.signedIn('ada@example.com', 'max')
  const admin = await stage.signedIn('root@example.com', 'max', 'admin')
  const nameOf = ({ method, path }: (typeof ROUTES)[number]): string => `${method} ${path}`
  const ordered = [
    ...ROUTES.filter((route) => !LAST.includes(nameOf(route))),
    ...ROUTES.filter((route) => LAST.includes(nameOf(route))),
  ]
  const statuses = new Set<number>()
  for (const route of ofToday(ordered, 2)) {
    const path = route.path.replace(/\{(?:id|email)\}/, 'key_none') + (QUERIES[route.path] ?? '')
    for (const browser of [anonymous, owner, admin]) {
      const takesBody = route.body !== null
      const bodies = takesBody ? [{}, '{', 'x'.repeat(70_000)] : [undefined]
      for (const body of bodies) {
        const answer = await browser.ask(route.method, path, { body })
        statuses.add(answer.status)
        t.same(lacking(answer.headers), [], `${nameOf(route)}: ${answer.status}`)
      }
    }
    const wrong = await owner.ask('OPTIONS', path)
    t.same(lacking(wrong.headers), [], `OPTIONS ${path}`)
    t.equal(wrong.status, 405)
    t.ok(wrong.headers.get('allow')?.split(', ').includes(route.method), 'and lists the allowed methods')
    const forged = await owner.ask(route.method, path, {
      body: route.body === null ? undefined : {},
      headers: {
        'sec-fetch-site': 'cross-site',
      },
    })
    t.same(lacking(forged.headers), [], `from elsewhere: ${forged.status}`)
  }
  for (const status of [200, 400, 401, 403, 404, 413]) t.ok(statuses.has(status), `${status} seen`)
})

void t.test('unknown routes and methods are refused', async (t) => {
  const stage = await startStage(t)
  const browser = await stage.signedIn('ada@example.com')
  const csv = await browser.get('/requests.csv')
  t.match([csv.status, csv.headers.get('content-type')], [200, /^text\/csv/])
  t.same(lacking(csv.headers), [])
  const live = await browser.get('/models')
  const etag = live.headers.get('etag') ?? ''
  const same = await browser.get('/models', { 'if-none-match': etag })
  if (etag !== '') t.equal(same.status, 304)
  t.same(lacking(same.headers), [])
  const paths = ['', '/', '/keys', '/assets/none.js', '/api', '/api/', '/api/none', '/api/keys/a/b/c']
  for (const path of paths) {
    for (const method of ['GET', 'HEAD', 'POST', 'DELETE', 'OPTIONS']) {
      const url = `${stage.origin}/dashboard${path}`
      const response = await fetch(url, { method, redirect: 'manual' })
      await response.arrayBuffer()
      t.same(lacking(response.headers), [], `${method} ${path}: ${response.status}`)
      if (response.status === 405) t.ok(response.headers.get('allow'), `${method} ${path}`)
    }
  }
  const page = await fetch(`${stage.origin}/dashboard/`)
  await page.arrayBuffer()
  const tag = page.headers.get('etag')
  if (tag === null) return
  const unchanged = await fetch(`${stage.origin}/dashboard/`, { headers: { 'if-none-match': tag } })
  t.equal(unchanged.status, 304)
  t.same(lacking(unchanged.headers), [])
})

void t.test('a full queue refuses requests with 429', async (t) => {
  const stage = await startStage(t)
  const socket = connect(stage.gateway.port, '127.0.0.1')
  const one = 'GET /dashboard/api/session HTTP/1.1\r\nhost: x\r\n\r\n'
  const last = 'GET /dashboard/api/session HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'
  const sockets = Array.from({ length: 600 }, () => {
    const each = connect(stage.gateway.port, '127.0.0.1')
    each.end(last)
    return text(each).catch(() => '')
  })
  socket.end(one + last)
  const replies = [...(await Promise.all(sockets)), await text(socket)]
  const refused = replies.filter((reply) => reply.includes(' 429 '))
  for (const reply of refused) {
    t.match(reply.toLowerCase(), /x-content-type-options: nosniff[^]*frame-options: deny/)
    t.match(reply.toLowerCase(), /content-security-policy: default-src 'none'/)
  }
})
