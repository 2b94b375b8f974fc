/**
 * Goal: the admin API explains a request as `sluice explain` does, under the configuration in force.
 * Method: the API of a running gateway, beside the command on the same file.
 */
import t from 'tap'
import { sluiceHere } from '../../cli/session.js'
import { startAdmin } from './admin-stage.js'

void t.test('a request for a model', async (t) => {
  const { ask, gateway } = await startAdmin(t)
  const command = async (...args: string[]): Promise<unknown> =>
    JSON.parse((await sluiceHere(['explain', ...args, '--json', '--config', gateway.configFile])).out)
  const chat = await ask('POST', '/explain', { body: { model: 'gpt-5.5' } })
  t.equal(chat.status, 200, chat.text)
  t.same(chat.json, await command('gpt-5.5'))
  const images = await ask('POST', '/explain', { body: { model: 'gpt-image-2', operation: 'images' } })
  t.same(images.json, await command('gpt-image-2', '--operation', 'images'))
  t.match(images.json, { operation: { served_by: 'openai', upstreams: [{ form: 'openai' }] } })
  const none = await ask('POST', '/explain', { body: { model: 'claude-opus-5-5', operation: 'rerank' } })
  t.match(none.json, { operation: { served_by: null, refusal: /serves rerank; anthropic does not/ } })
  const request = {
    model: 'claude-opus-5-5',
    logit_bias: { 50256: -100 },
    messages: [{ role: 'user', content: 'secret' }],
  }
  const file = `${t.testdir({ 'request.json': JSON.stringify(request) })}/request.json`
  const bodied = await ask('POST', '/explain', { body: { model: 'claude-opus-5-5', body: request } })
  t.same(bodied.json, await command('claude-opus-5-5', '--body', file))
  t.match(bodied.json, { request: { fields: [{ path: 'model' }, { path: 'logit_bias', outcome: 'lost' }] } })
  t.notMatch(bodied.text, 'secret', 'no contents')
  t.match(await ask('POST', '/explain', { body: { model: 'gpt-5.5', operation: 'images', body: {} } }), {
    status: 400,
    json: { field: 'operation' },
  })
  t.match((await ask('POST', '/explain', { body: { model: 'unrouted' } })).json, { route: null })
  t.notMatch(chat.text, 'emulated"', 'secrets are not in it')

  t.match(await ask('POST', '/explain', { body: {} }), { status: 400, json: { field: 'model' } })
  t.match(await ask('POST', '/explain', { body: { model: 'gpt-5.5', operation: 'image' } }), {
    status: 400,
    json: { field: 'operation' },
  })
  t.equal(gateway.emulator.ledger.length, 0, 'nothing is sent')
})
