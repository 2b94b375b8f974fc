/**
 * Goal: an unknown path or method is refused before authentication, with the endpoint that was probably
 * meant.
 * Method: requests without a key, and with a wrong one, to a running gateway.
 */
import t from 'tap'
import { startGateway } from '../../helpers/gateway.js'

void t.test('an unknown path names the nearest endpoint, with any key', async (t) => {
  const gateway = await startGateway(t)
  const cases: [string, string, string][] = [
    ['POST', '/chat/completions', 'POST /v1/chat/completions'],
    ['POST', '/v1/v1/chat/completions', 'POST /v1/chat/completions'],
    ['POST', '/v1/chat/completion', 'POST /v1/chat/completions'],
    ['GET', '/v1/model', 'GET /v1/models'],
    ['GET', '/v1beta/model', 'GET /v1beta/models'],
    ['GET', '/nothing-like-it', 'Chat requests use POST /v1/chat/completions'],
  ]
  for (const [method, path, hint] of cases) {
    for (const authorization of ['', 'Bearer sk_wrong', `Bearer ${gateway.secret}`]) {
      const res = await fetch(gateway.origin + path, { method, headers: { authorization } })
      const text = await res.text()
      t.equal(res.status, 404, path)
      t.match(text, 'unknown_endpoint')
      t.match(text, hint, path)
    }
  }
  const long = await fetch(`${gateway.origin}/${'x'.repeat(5000)}`)
  t.equal(long.status, 404)
  t.ok((await long.text()).length < 500)
})

void t.test('errors link the pages at doc_url, and name no file of the repository', async (t) => {
  const paths = [
    ['/nothing-like-it', '/reference/clients.md'],
    ['/v1/fine_tuning/jobs', '/reference/native-endpoints.md'],
    ['/v1/complete', '/reference/clients.md'],
  ] as const
  for (const base of ['https://docs.example.com/sluice', null]) {
    const more = base === null ? '' : `doc_url: ${base}/\n`
    const gateway = await startGateway(t, { more })
    for (const [path, page] of paths) {
      const text = await (await fetch(gateway.origin + path, { method: 'POST' })).text()
      t.notMatch(text, /\bdocs\/reference/, path)
      if (base === null) t.notMatch(text, /\.md/, path)
      else t.ok(text.includes(`${base}${page}`), text)
    }
  }
})

void t.test('a wrong method is refused without a key', async (t) => {
  const gateway = await startGateway(t)
  for (const method of ['GET', 'OPTIONS', 'PATCH']) {
    const res = await fetch(`${gateway.baseUrl}/chat/completions`, { method })
    await res.arrayBuffer()
    t.equal(res.status, 405)
    t.equal(res.headers.get('allow'), 'POST')
  }
})

void t.test('a browser at / is sent to the dashboard, a program is not', async (t) => {
  const gateway = await startGateway(t)
  const at = async (path: string, init: RequestInit): Promise<[number, string | null]> => {
    const res = await fetch(gateway.origin + path, { redirect: 'manual', ...init })
    await res.arrayBuffer()
    return [res.status, res.headers.get('location')]
  }
  const headers = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
  t.same(await at('/', { headers }), [302, '/dashboard/'])
  t.same(await at('/?from=mail', { headers }), [302, '/dashboard/'])
  t.same(await at('/', { headers, method: 'HEAD' }), [302, '/dashboard/'])
  t.same(await at('/', { headers: { accept: 'application/json' } }), [404, null])
  t.same(await at('/', { headers, method: 'POST' }), [404, null])
  t.same(await at('/v1', { headers }), [404, null])
})
