/**
 * Goal: `sluice explain --body` prints the route of a request and what happens to each of its fields, and
 * never prints its contents.
 * Method: the command in this process with bodies from files, and the built program with bodies from standard
 * input; a canary in every field that holds text.
 */
import { writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { arrayOf, objectOf, stringOf, type JsonObject } from '../../src/base/json.js'
import { MODELS } from '../config/sample.js'
import { sluice, sluiceHere } from './session.js'

const CANARY = 'tangerine-7419'
const CONFIG = `
upstreams:
  openai: { dialect: openai-chat, base_url: "https://api.openai.com/v1", api_key: x }
  claude: { dialect: anthropic, base_url: "https://api.anthropic.com/v1", api_key: x }
  google: { dialect: gemini, base_url: "https://g.example/v1beta", api_key: x }
  mistral: { preset: mistral, api_key: x }
  azure: { preset: azure, base_url: "https://a.example/openai", api_key: x,
    path: "/deployments/{model}/chat/completions", query: { api-version: v } }
routes:
  - { prefix: gpt-, upstream: openai }
  - { prefix: claude-, upstream: claude }
  - { prefix: gemini-, upstream: google }
  - { prefix: mistral-, upstream: mistral }
  - { model: deployed, targets: [{ upstream: azure, model: my/gpt }] }
models: models.yaml
`

const BODY: JsonObject = {
  messages: [
    { role: 'system', content: CANARY },
    { role: 'user', content: [{ type: 'text', text: CANARY }], name: CANARY },
    { role: 'assistant', content: CANARY, reasoning_content: CANARY },
    { role: 'user', content: CANARY },
  ],
  seed: 7,
  temperature: 1,
  user: CANARY,
  max_tokens: 5,
  logit_bias: { '5': 1 },
  top_p: null,
}

interface Explained {
  readonly status: number | null
  readonly request: JsonObject
  /** `PATH RESULT` of each field, in order. */
  readonly results: readonly string[]
}

async function explained(
  t: Test,
  model: string,
  { body, more = '' }: { body: unknown; more?: string },
): Promise<Explained> {
  const folder = t.testdir({ 'gateway.yaml': CONFIG + more, 'models.yaml': MODELS })
  const file = `${folder}/body.json`
  writeFileSync(file, typeof body === 'string' ? body : JSON.stringify(body))
  const args = ['explain', model, '--config', `${folder}/gateway.yaml`, '--body', file, '--json']
  const { status, out, err } = await sluiceHere(args)
  t.notOk((out + err).includes(CANARY), 'no content of the request is printed')
  const request = objectOf(objectOf(JSON.parse(out))['request'])
  const results = arrayOf(request['fields']).map(objectOf)
  return {
    status,
    request,
    results: results.map(({ path, outcome }) => `${stringOf(path) ?? ''} ${stringOf(outcome) ?? ''}`),
  }
}

void t.test('the same dialect keeps all fields', async (t) => {
  const { status, request, results } = await explained(t, 'gpt-5.5', { body: BODY })
  t.equal(status, 0)
  t.match(request, {
    dialect: 'openai-chat',
    endpoint: 'POST https://api.openai.com/v1/chat/completions',
    result: 'taken',
    lost: null,
  })
  t.match(results.join(), /^messages kept,seed kept/)
  t.notMatch(results.join(), /lost|top_p/)
})

void t.test('another dialect has kept fields, lost fields and fields without effect', async (t) => {
  const { status, request, results } = await explained(t, 'claude-x', { body: BODY })
  t.equal(status, 0)
  t.match(request, {
    dialect: 'anthropic',
    result: 'taken with losses',
    lost: /seed.*logit_bias/,
  })
  for (const result of [
    'messages kept',
    'messages.reasoning lost',
    'seed lost',
    'temperature no effect',
    'user kept',
    'max_tokens kept',
    'logit_bias lost',
  ]) {
    t.ok(results.includes(result), result)
  }
})

void t.test('every refused field is listed, not only the first', async (t) => {
  const { status, request, results } = await explained(t, 'claude-x', {
    body: {
      ...BODY,
      n: 2,
      logprobs: true,
    },
  })
  t.equal(status, 1)
  t.equal(request['result'], 'refused')
  t.ok(results.includes('n rejected'))
  t.ok(results.includes('logprobs rejected'))
  t.ok(results.includes('seed lost'), 'the other fields are reported too')
})

void t.test('an approximated field is "emulated", under its name in the body', async (t) => {
  const format = { response_format: { type: 'json_object' }, service_tier: 'flex' }
  const { results } = await explained(t, 'claude-x', { body: { ...BODY, ...format } })
  t.ok(results.includes('response_format emulated'))
  t.ok(results.includes('service_tier lost'))
})

void t.test('on_loss: reject refuses fields that would be lost', async (t) => {
  const { status, request } = await explained(t, 'claude-x', {
    body: BODY,
    more: 'on_loss: reject\n',
  })
  t.equal(status, 1)
  t.equal(request['result'], 'refused')
})

void t.test('explain applies the differences of a preset and the URL of Azure', async (t) => {
  const { request, results } = await explained(t, 'mistral-large', { body: BODY })
  t.match(request, { lost: 'logit_bias, user, messages.name, messages.reasoning_content' })
  t.ok(results.includes('seed kept'))
  const seed = arrayOf(request['fields'])
    .map(objectOf)
    .find(({ path }) => path === 'seed')
  t.match(seed, { note: 'as random_seed' })
  const azure = await explained(t, 'deployed', { body: BODY })
  const path = '/openai/deployments/my%2Fgpt/chat/completions?api-version=v'
  t.equal(azure.request['endpoint'], `POST https://a.example${path}`)
})

void t.test('a stream uses another endpoint of Gemini', async (t) => {
  const { request } = await explained(t, 'gemini-x', { body: { ...BODY, stream: true } })
  t.match(request['endpoint'], /gemini-x:streamGenerateContent\?alt=sse$/)
})

void t.test('errors in the body have the path of the field', async (t) => {
  const wrong = async (body: unknown) => {
    const { status, request } = await explained(t, 'claude-x', { body })
    t.equal(status, 1)
    return objectOf(request['error'])
  }
  t.match(await wrong({ messages: [{ role: 'user', content: 5 }] }), {
    param: 'messages[0].content',
    message: /^messages\[0\]\.content must be/,
  })
  t.match(await wrong(`{"messages": "${CANARY}`), { message: /JSON/ })
  t.match(await wrong(''), { message: /./ })
})

void t.test('the text output has one line per field and the name of the file', async (t) => {
  const folder = t.testdir({
    'gateway.yaml': CONFIG,
    'models.yaml': MODELS,
    'body.json': JSON.stringify(BODY),
  })
  const args = ['explain', 'claude-x', '--config', `${folder}/gateway.yaml`, '--body']
  const { status, out } = await sluiceHere([...args, `${folder}/body.json`])
  t.equal(status, 0)
  t.match(out, /sends +POST https:\/\/api\.anthropic\.com\/v1\/messages/)
  t.match(out, /\n +seed +lost: no equivalent\n/)
  t.match(out, /reported +x-sluice-lost: .*seed/)
  t.notOk(out.includes(CANARY))
  const missing = await sluiceHere([...args, `${folder}/none.json`])
  t.equal(missing.status, 1)
  t.match(missing.out, /request {4}cannot read ".*none\.json": it does not exist/)
})

void t.test('a model without a route exits with an error', async (t) => {
  const folder = t.testdir({ 'gateway.yaml': CONFIG, 'models.yaml': MODELS })
  const { status, out } = await sluice(
    ['explain', 'llama', '--config', `${folder}/gateway.yaml`, '--body', '-'],
    JSON.stringify(BODY),
  )
  t.equal(status, 1)
  t.match(out, /none: .*404/)
})

void t.test('no control character of an id, a label or a field is printed', async (t) => {
  const controls = '\u0000\n\u001b[2J\u007f\u009b2J\u061c\u202e\u2066\u2028\u2029'
  const odd = `gpt-${controls.slice(1)}4`
  const folder = t.testdir({ 'gateway.yaml': CONFIG, 'models.yaml': MODELS })
  const run = async (args: readonly string[], input = '') => {
    const { status, out, err } = await sluice(
      ['explain', ...args, '--config', `${folder}/gateway.yaml`],
      input,
    )
    const found = /[^\n\P{Cc}]|[\p{Bidi_Control}\u2028\u2029]/u.exec(out + err)
    t.equal(found, null, JSON.stringify(out + err))
    return { status, out }
  }
  const refused = await run([odd])
  t.equal(refused.status, 1)
  t.match(refused.out, /route +none: .*must not contain control characters.*: clients get 400/)
  t.match(JSON.parse((await run([odd, '--json'])).out), { model: odd, route: null })
  const body = JSON.stringify({ ...BODY, [controls]: 1 })
  t.match((await run(['gpt-5.5', '--body', '-'], body)).out, 'sent as')
  await run(['gpt-5.5', '--body', '-', '--json'], body)
  t.equal((await run(['gpt-5.5', '--label', odd])).status, 2)
})
