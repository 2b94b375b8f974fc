/**
 * Goal: a wrong `base_url` gives every client 502 `upstream_misconfigured` and is logged once per upstream;
 * for a model that the upstream does not have the client gets 404.
 * Method: the emulator behind a base_url without `/v1`, with `/chat/completions`, and a good one.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { startSocketUpstream } from '../../faults/socket-upstream.js'

async function ask(gateway: TestGateway, model: string): Promise<{ status: number; kind: string }> {
  const messages = [{ role: 'user', content: 'Hi' }]
  const res = await gateway.chat({ model, messages })
  const { error } = (await res.json()) as { error: { kind: string } }
  return { status: res.status, kind: error.kind }
}

const warnings = ({ lines }: TestGateway): unknown[] =>
  lines.filter((line) => JSON.stringify(line).includes('base_url'))

void t.test('a wrong base_url', async (t) => {
  const gateway = await startGateway(t)
  const { openai } = gateway.emulator.baseUrls
  const good = readFileSync(gateway.configFile, 'utf8')
  for (const wrong of [openai.replace(/\/v1$/, ''), `${openai}/chat/completions`]) {
    writeFileSync(gateway.configFile, good.replaceAll(`base_url: ${openai},`, `base_url: ${wrong},`))
    gateway.reload()
    const before = warnings(gateway).length
    for (let index = 0; index < 3; index += 1) {
      t.same(await ask(gateway, 'gpt-5.4-mini'), { status: 502, kind: 'upstream_misconfigured' }, wrong)
    }
    t.equal(warnings(gateway).length, before + 1, 'one warning')
    t.match(warnings(gateway).at(-1), { upstream: 'openai' })
  }
})

void t.test("an unknown model is the client's error", async (t) => {
  const body = JSON.stringify({
    error: {
      message: 'The model `gpt-x` does not exist.',
      type: 'invalid_request_error',
      code: 'model_not_found',
    },
  })
  const answer = `HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
  const upstream = await startSocketUpstream(t, ({ socket }) => socket.write(answer))
  const gateway = await startGateway(t, { upstreams: { openai: upstream.url } })
  t.same(await ask(gateway, 'gpt-5.4-mini'), { status: 404, kind: 'unknown_model' })
  t.same(warnings(gateway), [])
})
