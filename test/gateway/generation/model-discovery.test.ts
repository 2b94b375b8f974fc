/**
 * Goal: `discover: true` adds the models that an upstream lists to `GET /v1/models`, and an upstream whose
 * list is missing, too long or invalid causes one warning and no effect for clients.
 * Method: a gateway over a server whose reply to `GET /v1/models` the test sets.
 */
import { createServer, type RequestListener } from 'node:http'
import { readFileSync, writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { until } from '../../helpers/upstream.js'
import { listen } from '../../helpers/listen.js'

interface Local {
  readonly gateway: TestGateway
  readonly requests: string[]
}

async function discovering(t: Test, answer: RequestListener, dialect = 'openai-chat'): Promise<Local> {
  const requests: string[] = []
  const server = createServer((req, res) => {
    requests.push(`${req.method} ${req.url} ${String(req.headers.authorization ?? req.headers['x-api-key'])}`)
    answer(req, res)
  })
  const port = await listen(t, server)
  const gateway = await startGateway(t)
  const upstream = `local: { dialect: ${dialect}, base_url: http://127.0.0.1:${port}/v1, api_key: local-key, discover: true }`
  const route = `- { prefix: qwen, upstream: local }\n  - { prefix: llama, upstream: local }`
  const text = readFileSync(gateway.configFile, 'utf8')
    .replace('upstreams:', `upstreams:\n  ${upstream}`)
    .replace('routes:', `routes:\n  ${route}`)
  writeFileSync(gateway.configFile, text)
  gateway.reload()
  return { gateway, requests }
}

async function listed(gateway: TestGateway): Promise<string[]> {
  const res = await fetch(`${gateway.baseUrl}/models`, {
    headers: { authorization: `Bearer ${gateway.secret}` },
  })
  const { data } = (await res.json()) as { data: { id: string; owned_by: string }[] }
  return data.filter(({ owned_by: by }) => by === 'local').map(({ id }) => id)
}

async function untilListed(gateway: TestGateway): Promise<void> {
  const endMs = performance.now() + 20_000
  while ((await listed(gateway)).length === 0) {
    if (performance.now() > endMs) throw new Error('nothing is listed after 20 s')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

const warnings = ({ lines }: TestGateway): unknown[] =>
  lines.filter(({ msg, event }) => /list its models/.test(JSON.stringify([msg, event])))

void t.test('the models of the upstream are listed if a route takes them to it', async (t) => {
  const models = ['qwen3:8b', 'llama-3', 'gpt-mine', 'bad id', 5, 'qwen3:8b']
  const { gateway, requests } = await discovering(t, (_req, res) => {
    res.end(JSON.stringify({ object: 'list', data: models.map((id) => ({ id, created: 1e300 })) }))
  })
  await untilListed(gateway)
  t.same(await listed(gateway), ['qwen3:8b', 'llama-3'])
  t.same(requests[0], 'GET /v1/models Bearer local-key')
  gateway.reload()
  t.same(await listed(gateway), ['qwen3:8b', 'llama-3'], 'a reload keeps the known models')
  t.same(warnings(gateway), [])
})

void t.test("the list in Anthropic's format is read with the key in its header", async (t) => {
  const answer: RequestListener = (_req, res) => {
    res.end(JSON.stringify({ data: [{ type: 'model', id: 'llama-a' }], has_more: false }))
  }
  const { gateway, requests } = await discovering(t, answer, 'anthropic')
  await untilListed(gateway)
  t.same(requests[0], 'GET /v1/models?limit=1000 local-key')
})

const BAD: Record<string, RequestListener> = {
  'a refusal': (_req, res) => void res.writeHead(404).end('{}'),
  'no JSON': (_req, res) => void res.end('<html>'),
  'no list': (_req, res) => void res.end('[1, {"data": 5}]'),
  'too long a list': (_req, res) => void res.end(Buffer.alloc(2_000_000, ' ')),
  'a closed connection': (req) => void req.socket.destroy(),
}

for (const [name, answer] of Object.entries(BAD)) {
  void t.test(`${name}: one warning, and requests continue`, async (t) => {
    const { gateway } = await discovering(t, answer)
    await until(() => warnings(gateway).length > 0)
    gateway.reload()
    t.same(await listed(gateway), [])
    const messages = [{ role: 'user', content: 'Hi' }]
    t.equal((await gateway.chat({ model: 'gpt-5.4-mini', messages })).status, 200)
    t.equal(warnings(gateway).length, 1)
    t.match(warnings(gateway)[0], { upstream: 'local', reason: /\w/ })
  })
}
