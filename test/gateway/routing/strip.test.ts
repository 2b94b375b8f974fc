/**
 * Goal: a prefix that a route strips does not reach the upstream, `*` takes what no other route takes, and a
 * route's name may have words; the client sees the name that it asked for.
 * Method: a gateway whose emulator records the model that it gets, in the same and in another format.
 */
import t from 'tap'
import { arrayOf, objectOf } from '../../../src/base/json.js'
import { maskedConfig } from '../../../src/config/masked-config.js'
import { startGateway } from '../../helpers/gateway.js'
import { rowsOf } from '../../helpers/ledger.js'

const ROUTES = `  - { prefix: ours/, strip: ours/, upstream: openai }
  - { prefix: ours/claude-, strip: ours/, upstream: anthropic }
  - { prefix: kept/, strip: kept/, targets: [{ upstream: openai, model: gpt-5.4 }] }
  - { model: My Best Model, targets: [{ upstream: openai, model: gpt-5.4 }] }
  - { model: '*', targets: [{ upstream: openai }] }
`

void t.test('limits of a model hold for each of its names', async (t) => {
  const more = `limits:
  - { scope: key, prefix: gpt-5.4-mini, requests_per_minute: 1 }
  - { scope: key, model: claude-sonnet-5-5, requests_per_minute: 1 }
  - { scope: key, model: My Best Model, requests_per_minute: 1 }
`
  const gateway = await startGateway(t, { routes: ROUTES, more })
  const status = async (model: string): Promise<number> => {
    const reply = await gateway.chat({ model, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 9 })
    await reply.text()
    return reply.status
  }
  t.equal(await status('gpt-5.4-mini'), 200)
  t.equal(await status('ours/gpt-5.4-mini'), 429)
  t.equal(await status('ours/claude-sonnet-5-5'), 200)
  t.equal(await status('claude-sonnet-5-5'), 429)
  t.equal(await status('My Best Model'), 200)
  t.equal(await status('My Best Model'), 429, 'a name with words')
  const { routes } = maskedConfig(gateway.load())
  t.match(arrayOf(routes).filter((route) => objectOf(route)['strip'] === 'ours/')[0], { prefix: 'ours/' })
  t.ok(
    arrayOf(routes).some((route) => objectOf(route)['model'] === '*'),
    'as in the file',
  )
})

void t.test('the list has the names that clients use', async (t) => {
  const gateway = await startGateway(t, { routes: ROUTES })
  const headers = { authorization: `Bearer ${gateway.secret}` }
  const reply = await fetch(`${gateway.baseUrl}/models`, { headers })
  const { data } = (await reply.json()) as { data: { id: string; context_length?: number }[] }
  const found = new Map(data.map((model) => [model.id, model]))
  t.equal(found.get('ours/gpt-5.4')?.context_length, found.get('gpt-5.4')?.context_length)
  t.ok(found.has('ours/claude-sonnet-5-5') && found.has('My Best Model'))
  t.notOk(found.has('*') || found.has('kept/gpt-5.4'), 'no pattern, and no name whose model is another')
})

void t.test('the upstream gets the rest of the name', async (t) => {
  const gateway = await startGateway(t, { routes: ROUTES })
  const ask = async (model: string): Promise<[status: number, upstream: string, served: string]> => {
    const reply = await gateway.chat({ model, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 9 })
    await reply.text()
    const { headers } = reply
    return [reply.status, headers.get('x-sluice-upstream') ?? '', headers.get('x-sluice-model') ?? '']
  }
  t.same(await ask('ours/gpt-5.4-mini'), [200, 'openai', 'gpt-5.4-mini'])
  t.same(await ask('ours/claude-sonnet-5-5'), [200, 'anthropic', 'claude-sonnet-5-5'])
  t.same(await ask('kept/anything'), [200, 'openai', 'gpt-5.4'], 'a model of the target wins')
  t.same(await ask('My Best Model'), [200, 'openai', 'gpt-5.4'])
  t.same(await ask('vendor/unheard-of'), [200, 'openai', 'vendor/unheard-of'])
  const line = gateway.lines.find(({ route }) => route === 'ours/')
  t.match(line, { model: 'gpt-5.4-mini' }, 'the log and metrics have the model of the catalogue')
  const [row] = (await rowsOf(gateway)).filter(({ modelAsked }) => modelAsked === 'ours/gpt-5.4-mini')
  t.match(row, { model: 'gpt-5.4-mini' })
  t.ok(row?.costNanoUsd !== null && Number(row?.costNanoUsd) > 0, 'priced as the model that served')
})
