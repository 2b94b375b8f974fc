/**
 * Goal: metrics and ledger name the format of the client.
 * Method: one request in each format to a running gateway.
 */
import t from 'tap'
import { startGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'

void t.test('the label and the column `ingress`', async (t) => {
  const gateway = await startGateway(t)
  const messages = [{ role: 'user', content: 'hi' }]
  const content = { parts: [{ text: 'hi' }] }
  const requests: [string, string, object][] = [
    ['chat', '/v1/chat/completions', { model: 'gpt-4o', messages }],
    ['completions', '/v1/completions', { model: 'gpt-4o', prompt: 'hi' }],
    ['embeddings', '/v1/embeddings', { model: 'text-embedding-3-small', input: 'hi' }],
    ['messages', '/v1/messages', { model: 'gpt-4o', max_tokens: 50, messages }],
    ['responses', '/v1/responses', { model: 'gpt-4o', input: 'hi', store: false }],
    ['gemini', '/v1beta/models/gpt-4o:generateContent', { contents: [content] }],
  ]
  for (const [, path, body] of requests) {
    const res = await fetch(gateway.origin + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    t.equal(res.status, 200, `${path} ${await res.text()}`)
  }
  await (await fetch(`${gateway.origin}/v1/none`)).arrayBuffer()
  const rows = await rowsOf(gateway)
  const formats = requests.map(([format]) => format)
  t.same(
    rows.map(({ ingress }) => ingress),
    formats,
  )
  const text = await gateway.metrics.text()
  for (const format of [...formats, 'none']) {
    t.match(text, new RegExp(`^sluice_requests_total\\{ingress="${format}",route=`, 'm'))
  }
})
