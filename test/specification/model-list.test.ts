/**
 * Goal: the list of models and each of its entries follow the format.
 * Method: both paths on a running gateway with the shipped catalogue.
 */
import t from 'tap'
import { arrayOf, objectOf, stringOf } from '../../src/base/json.js'
import { startGateway } from '../helpers/gateway.js'
import { ask, body, get } from './exchange.js'

void t.test('S4: forty models or more, of three families, in the format', async (t) => {
  const gateway = await startGateway(t)
  const { status, headers, json } = await get(gateway, '/v1/models')
  t.equal(status, 200)
  t.equal(headers.get('content-type'), 'application/json')
  t.equal(json.object, 'list')
  const data = arrayOf(json.data).map(objectOf)
  t.ok(data.length >= 40, `${data.length} models`)
  for (const model of data) {
    const names = ['created', 'id', 'object', 'owned_by']
    t.same(Object.keys(model).slice(0, 4).sort(), names)
    t.equal(model.object, 'model')
    t.ok(Number.isInteger(model.created) && Number(model.created) > 0)
  }
  t.equal(new Set(data.map(({ id }) => id)).size, data.length, 'no id twice')
  for (const prefix of ['gpt-', 'claude-', 'gemini-']) {
    t.ok(data.filter(({ id }) => stringOf(id)?.startsWith(prefix)).length >= 5, prefix)
  }
  t.equal(new Set(data.map((model) => model.owned_by)).size, 3)
})

void t.test('S4: every listed model can be retrieved and used', async (t) => {
  const gateway = await startGateway(t)
  const { json } = await get(gateway, '/v1/models')
  for (const model of arrayOf(json.data).map(objectOf)) {
    const id = stringOf(model.id) ?? ''
    const one = await get(gateway, `/v1/models/${encodeURIComponent(id)}`)
    t.same(one.json, model, id)
  }
  const [first] = arrayOf(json.data).map(objectOf)
  t.equal((await ask(gateway, body({ model: stringOf(first?.id) ?? '' }))).status, 200)
})

void t.test('S4: a dated variant is retrieved, an unknown model is 404', async (t) => {
  const gateway = await startGateway(t)
  const dated = await get(gateway, '/v1/models/gpt-4o-mini-2024-07-18')
  t.match(dated.json, { id: 'gpt-4o-mini-2024-07-18', object: 'model' })
  for (const id of ['llama-3', 'gpt', 'claude', '%20', 'x'.repeat(300)]) {
    const { status, error } = await get(gateway, `/v1/models/${id}`)
    t.equal(status, 404, id.slice(0, 20))
    t.match(error, { code: 'model_not_found', type: 'invalid_request_error' })
  }
})

void t.test('S4: only with a key, and only with GET or HEAD', async (t) => {
  const { origin, secret } = await startGateway(t)
  t.equal((await fetch(`${origin}/v1/models`)).status, 401)
  const headers = { authorization: `Bearer ${secret}` }
  const posted = await fetch(`${origin}/v1/models`, { method: 'POST', headers, body: '{}' })
  t.equal(posted.status, 405)
  t.equal(posted.headers.get('allow'), 'GET, HEAD')
  for (const [id, status] of [
    ['', 200],
    ['/gpt-4o', 200],
    ['/llama-3', 404],
  ] as const) {
    const asked = await fetch(`${origin}/v1/models${id}`, { method: 'HEAD', headers })
    t.equal(asked.status, status, `HEAD ${id}`)
    t.ok(Number(asked.headers.get('content-length')) > 0)
    t.equal(await asked.text(), '')
  }
})
