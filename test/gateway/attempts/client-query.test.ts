/**
 * Goal: an upstream of the client's format gets the client's query, without credentials and without what the
 * gateway reads itself; other upstreams get none of it.
 * Method: upstreams that record the addresses of requests.
 */
import t, { type Test } from 'tap'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { startRawUpstream, type RawUpstream } from '../../helpers/raw-upstream.js'

const messages = [{ role: 'user', content: 'hi' }]
const contents = [{ role: 'user', parts: [{ text: 'hi' }] }]

async function start(t: Test): Promise<{ gateway: TestGateway; upstream: RawUpstream }> {
  const upstream = await startRawUpstream(t, () => ({ type: 'application/json', chunks: ['{}'] }))
  const { origin } = upstream
  const upstreams = {
    openai: `${origin}/v1`,
    anthropic: `${origin}/v1`,
    gemini: `${origin}/v1beta`,
  }
  const gateway = await startGateway(t, { upstreams })
  return { gateway, upstream }
}

/** The path and query that the upstream gets. */
async function arrivedFor(
  { gateway, upstream }: { gateway: TestGateway; upstream: RawUpstream },
  path: string,
  body: object,
): Promise<string | undefined> {
  const headers = { 'x-api-key': gateway.secret, 'content-type': 'application/json' }
  const init = { method: 'POST', headers, body: JSON.stringify(body) }
  await (await fetch(`${gateway.origin}${path}`, init)).text()
  return upstream.requests.at(-1)?.url
}

void t.test('a query reaches an upstream of the same format', async (t) => {
  const pair = await start(t)
  const { secret } = pair.gateway
  const claude = { model: 'claude-haiku-4-5', max_tokens: 9, messages }
  const chat = { model: 'gpt-4o', messages }
  const rows: [string, object, string][] = [
    ['/v1/messages?beta=true', claude, '/v1/messages?beta=true'],
    ['/v1/messages/count_tokens?beta=true', claude, '/v1/messages/count_tokens?beta=true'],
    ['/v1/chat/completions?a=1&b=%C3%BC&c', chat, '/v1/chat/completions?a=1&b=%C3%BC&c'],
    ['/v1/chat/completions?model=o3&api_key=x&%61lt=y', chat, '/v1/chat/completions'],
    ['/v1/responses?tag=x', { model: 'gpt-4.1', input: 'hi' }, '/v1/responses?tag=x'],
    [
      `/v1beta/models/gemini-2.5-flash:generateContent?key=${secret}&alt=json&quotaUser=u`,
      { contents },
      '/v1beta/models/gemini-2.5-flash:generateContent?quotaUser=u',
    ],
    [
      '/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse&fields=candidates&q=1',
      { contents },
      '/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse&q=1',
    ],
  ]
  for (const [path, body, arrived] of rows) t.equal(await arrivedFor(pair, path, body), arrived)
})

void t.test('a translated request has no query', async (t) => {
  const pair = await start(t)
  const claude = { model: 'gpt-4o', max_tokens: 9, messages }
  t.equal(await arrivedFor(pair, '/v1/messages?beta=true', claude), '/v1/chat/completions')
})

void t.test("the upstream's own query replaces parameters of the same name", async (t) => {
  const { upstream } = await start(t)
  const gateway = await startGateway(t, {
    upstreams: { openai: `${upstream.origin}/v1` },
    upstreamOptions: 'query: { api-version: preview }',
  })
  t.equal(
    await arrivedFor({ gateway, upstream }, '/v1/chat/completions?api-version=old&x=1', {
      model: 'gpt-4o',
      messages,
    }),
    '/v1/chat/completions?x=1&api-version=preview',
  )
})
