/**
 * Goal: a client can continue a response by its id on any upstream, read it and delete it; other accounts
 * cannot.
 * Method: the official client with a whole gateway and its own store; the requests to the upstream are
 * checked.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type OpenAI from 'openai'
import t from 'tap'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { createKey } from '../../helpers/keys.js'
import { arrayOf, objectOf, type JsonObject } from '../../../src/base/json.js'
import { openStore } from '../../../src/store/open-store.js'
import { clientOf, failureOf } from '../../conformance/clients/sdk.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'

t.setTimeout(60_000)
const MODELS = ['gpt-4.1', 'claude-haiku-4-5', 'gemini-2.5-flash'] as const

/** The last request to the upstream, as text. */
function upstreamRequestOf({ emulator }: TestGateway): string {
  return JSON.stringify(emulator.ledger.at(-1)?.body)
}

void t.test('a conversation continues by id, also at another provider', async (t) => {
  const gateway = await startGateway(t)
  const client = clientOf(gateway)
  for (const first of MODELS) {
    for (const second of MODELS) {
      const response = await client.responses.create({
        model: first,
        instructions: 'Be brief.',
        input: 'My name is Ada.',
      })
      const two = await client.responses.create({
        model: second,
        previous_response_id: response.id,
        input: 'What is my name?',
      })
      const upstreamRequest = upstreamRequestOf(gateway)
      const label = `${first} → ${second}`
      t.match(upstreamRequest, /My name is Ada\./, label)
      t.ok(upstreamRequest.includes('This is an emulated reply'), `${label}: the reply too`)
      t.notMatch(upstreamRequest, /Be brief/, `${label}: instructions apply to one request`)
      t.notMatch(upstreamRequest, /previous_response_id/, label)
      const three = await client.responses.create({
        model: first,
        previous_response_id: two.id,
        input: 'And now?',
      })
      t.match(upstreamRequestOf(gateway), /My name is Ada\..*What is my name\?.*And now\?/s, label)
      t.not(three.id, two.id)
    }
  }
})

void t.test('a stream is stored too, before its end reaches the client', async (t) => {
  const gateway = await startGateway(t)
  const client = clientOf(gateway)
  for (const model of MODELS) {
    const stream = client.responses.stream({ model, input: 'My name is Ada.' })
    const response = await stream.finalResponse()
    const stored = await client.responses.retrieve(response.id)
    t.same(stored.output, response.output.map(withoutParsed), model)
    await client.responses.create({ model, previous_response_id: response.id, input: 'And?' })
    t.match(upstreamRequestOf(gateway), /My name is Ada/, model)
  }
})

/** Removes the members that the SDK's helper adds to items. */
function withoutParsed(item: unknown): unknown {
  return JSON.parse(
    JSON.stringify(item, (key, value: unknown) =>
      key === 'parsed' || key === 'parsed_arguments' ? undefined : value,
    ),
  )
}

void t.test('retrieve, input items and delete', async (t) => {
  const gateway = await startGateway(t)
  const client = clientOf(gateway)
  for (const model of MODELS) {
    const response = await client.responses.create({ model, input: 'Hello there' })
    const stored = await client.responses.retrieve(response.id)
    t.same(stored, { ...response }, model)
    const items = await client.responses.inputItems.list(response.id)
    t.match(items.data, [
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello there' }] },
    ])
    await client.responses.delete(response.id)
    const deletedError = await failureOf(client.responses.retrieve(response.id))
    t.equal(deletedError.status, 404)
    t.match(deletedError.error, { kind: 'unknown_response' })
    const again = await failureOf(
      client.responses.create({ model, previous_response_id: response.id, input: 'hi' }),
    )
    t.match(again, { status: 400, param: 'previous_response_id' })
    t.equal((await failureOf(client.responses.delete(response.id))).status, 404)
  }
  t.equal((await failureOf(client.responses.inputItems.list('resp_none'))).status, 404)
})

void t.test('item_reference inserts items of earlier responses', async (t) => {
  const gateway = await startGateway(t)
  const client = clientOf(gateway)
  for (const first of MODELS) {
    const response = await client.responses.create({ model: first, input: 'Say something' })
    const [item] = response.output
    for (const model of MODELS) {
      const input: OpenAI.Responses.ResponseInput = [
        { role: 'user', content: 'Say something' },
        { type: 'item_reference', id: item?.id ?? '' },
        { role: 'user', content: 'Say it again' },
      ]
      await client.responses.create({ model, input })
      const upstreamRequest = upstreamRequestOf(gateway)
      t.match(upstreamRequest, /Your message: “Say something”/, `${first} → ${model}`)
      t.notMatch(upstreamRequest, /item_reference/)
    }
  }
})

void t.test('store: false stores nothing', async (t) => {
  const gateway = await startGateway(t)
  const client = clientOf(gateway)
  for (const model of MODELS) {
    const response = await client.responses.create({ model, input: 'Hello', store: false })
    t.equal((await failureOf(client.responses.retrieve(response.id))).status, 404)
    const next = client.responses.create({
      model,
      previous_response_id: response.id,
      input: 'And?',
    })
    t.match(await failureOf(next), { status: 400, param: 'previous_response_id' })
  }
})

void t.test('failed and truncated replies are not stored', async (t) => {
  const gateway = await startGateway(t)
  const client = clientOf(gateway)
  const restore = gateway.emulator.script({ fault: { kind: 'cut', event: 8, mode: 'eof' } })
  t.teardown(restore)
  for (const model of MODELS) {
    const stream = await client.responses.create({
      model,
      input: 'talk [[words: 50]]',
      stream: true,
    })
    let id = ''
    try {
      for await (const event of stream) if (event.type === 'response.created') id = event.response.id
    } catch {
      // The connection is closed after an error event.
    }
    t.match(id, /^resp_/)
    t.equal((await failureOf(client.responses.retrieve(id))).status, 404, model)
  }
})

void t.test('another account finds nothing', async (t) => {
  const gateway = await startGateway(t)
  const client = clientOf(gateway)
  const other = clientOf(gateway, await secretOfAnother(gateway))
  const response = await client.responses.create({ model: 'claude-haiku-4-5', input: 'My secret' })
  t.equal((await failureOf(other.responses.retrieve(response.id))).status, 404)
  t.equal((await failureOf(other.responses.delete(response.id))).status, 404)
  const next = other.responses.create({
    model: 'claude-haiku-4-5',
    previous_response_id: response.id,
    input: 'What did I say?',
  })
  t.match(await failureOf(next), { status: 400, param: 'previous_response_id' })
  t.equal((await client.responses.retrieve(response.id)).id, response.id)
})

async function secretOfAnother(gateway: TestGateway): Promise<string> {
  const { config } = gateway.reload()
  const store = await openStore(config.store)
  const { account } = await createAccount(store, {
    email: 'other@example.com',
    plan: 'max',
    password: 'correct horse battery staple',
  })
  const { secret } = await createKey(store, { plans: config.plans, account, name: 'other' })
  await store.close()
  return secret
}

/** A key of the same account that may use only these models. */
async function secretFor(gateway: TestGateway, models: readonly string[]): Promise<string> {
  const { config } = gateway.reload()
  const store = await openStore(config.store)
  const account = await store.accountByEmail('test@example.com')
  if (account === null) throw new Error('no account')
  const { secret } = await createKey(store, { plans: config.plans, account, name: 'few', models })
  await store.close()
  return secret
}

void t.test('a key finds only responses of models that it may use', async (t) => {
  const gateway = await startGateway(t)
  const client = clientOf(gateway)
  const limited = clientOf(gateway, await secretFor(gateway, ['gemini-*', 'claude-haiku-4-5']))
  const hidden = await client.responses.create({ model: 'gpt-4.1', input: 'My secret' })
  const refused = { status: 403, error: { kind: 'forbidden' }, message: /'gpt-4\.1'/ }
  const { responses } = limited
  t.match(await failureOf(responses.retrieve(hidden.id)), { ...refused, param: 'response_id' })
  t.match(await failureOf(responses.inputItems.list(hidden.id)), refused)
  t.match(await failureOf(responses.delete(hidden.id)), refused)
  const requests = gateway.emulator.ledger.length
  for (const model of ['gemini-2.5-flash', 'claude-haiku-4-5']) {
    const next = responses.create({ model, previous_response_id: hidden.id, input: 'What?' })
    t.match(await failureOf(next), { ...refused, param: 'previous_response_id' }, model)
    const input: OpenAI.Responses.ResponseInput = [
      { type: 'item_reference', id: hidden.output[0]?.id ?? '' },
      { role: 'user', content: 'What?' },
    ]
    t.match(await failureOf(responses.create({ model, input })), refused, model)
  }
  t.equal(gateway.emulator.ledger.length, requests, 'no upstream got a request')
  t.equal((await client.responses.retrieve(hidden.id)).id, hidden.id, 'it is not deleted')
  for (const model of ['gemini-2.5-flash', 'claude-haiku-4-5'] as const) {
    const shared = await client.responses.create({ model, input: 'For all keys' })
    t.equal((await responses.retrieve(shared.id)).id, shared.id, model)
    await responses.create({ model, previous_response_id: shared.id, input: 'And?' })
    t.match(upstreamRequestOf(gateway), /For all keys/, model)
    const input: OpenAI.Responses.ResponseInput = [
      { role: 'user', content: 'Say something' },
      { type: 'item_reference', id: shared.output[0]?.id ?? '' },
      { role: 'user', content: 'And?' },
    ]
    t.equal((await responses.create({ model, input })).status, 'completed', model)
    await responses.delete(shared.id)
    t.equal((await failureOf(client.responses.retrieve(shared.id))).status, 404, model)
  }
})

void t.test('store_seconds limits the lifetime, and 0 stores nothing', async (t) => {
  const short = await startGateway(t, { more: 'responses: { store_seconds: 1 }' })
  const client = clientOf(short)
  const response = await client.responses.create({ model: 'claude-haiku-4-5', input: 'Hello' })
  t.equal((await client.responses.retrieve(response.id)).id, response.id)
  await new Promise((resolve) => setTimeout(resolve, 1_100))
  t.equal((await failureOf(client.responses.retrieve(response.id))).status, 404)
  const late = await failureOf(
    client.responses.create({ model: 'gpt-4.1', previous_response_id: response.id, input: 'And?' }),
  )
  t.match(late.message, /previous_response_id .*expired.*1 seconds/)
  const off = clientOf(await startGateway(t, { more: 'responses: { store_seconds: 0 }' }))
  const none = await off.responses.create({ model: 'claude-haiku-4-5', input: 'Hello' })
  t.equal((await failureOf(off.responses.retrieve(none.id))).status, 404)
  const next = off.responses.create({ model: 'gpt-4.1', previous_response_id: none.id, input: 'x' })
  t.match((await failureOf(next)).message, /store_seconds is 0/)
})

void t.test('a conversation that is too large is not stored, and the error names the reason', async (t) => {
  const gateway = await startGateway(t, { more: 'escrow: { max_bytes: 1048576 }' })
  const client = clientOf(gateway)
  const input = 'word '.repeat(5_000)
  const response = await client.responses.create({ model: 'claude-haiku-4-5', input })
  const next = client.responses.create({
    model: 'claude-haiku-4-5',
    previous_response_id: response.id,
    input: 'And?',
  })
  const error = await failureOf(next)
  t.match(error, { status: 400, param: 'previous_response_id' })
  t.match(error.message, /too large to be stored/)
})

void t.test('one account can fill only its own share', async (t) => {
  const gateway = await startGateway(t, { more: 'escrow: { max_entries: 64 }' })
  const client = clientOf(gateway)
  const other = clientOf(gateway, await secretOfAnother(gateway))
  const theirs = await other.responses.create({ model: 'claude-haiku-4-5', input: 'KeepReply me' })
  const ids: string[] = []
  for (let index = 0; index < 12; index += 1) {
    const { id } = await client.responses.create({
      model: 'claude-haiku-4-5',
      input: `No. ${index}`,
    })
    ids.push(id)
  }
  t.equal((await other.responses.retrieve(theirs.id)).id, theirs.id)
  t.equal((await client.responses.retrieve(ids.at(-1) ?? '')).id, ids.at(-1))
  t.equal((await failureOf(client.responses.retrieve(ids[0] ?? ''))).status, 404, 'the oldest left')
})

void t.test('tool calls continue without their message being sent again, on every upstream', async (t) => {
  const gateway = await startGateway(t)
  const client = clientOf(gateway)
  const tools: OpenAI.Responses.FunctionTool[] = [
    {
      type: 'function',
      name: 'get_time',
      strict: false,
      parameters: { type: 'object', properties: {} },
    },
  ]
  for (const first of MODELS) {
    for (const second of MODELS) {
      const response = await client.responses.create({
        model: first,
        tools,
        input: 'Use get_time',
      })
      const call = response.output.find((item) => item.type === 'function_call')
      const two = await client.responses.create({
        model: second,
        tools,
        previous_response_id: response.id,
        input: [{ type: 'function_call_output', call_id: call?.call_id ?? '', output: 'noon' }],
      })
      t.match(two.output_text, /get_time returned: “noon”/, `${first} → ${second}`)
    }
  }
  const response = await client.responses.create({
    model: 'gpt-4.1',
    tools,
    input: 'Use get_time',
  })
  const missing = await failureOf(
    client.responses.create({
      model: 'gpt-4.1',
      previous_response_id: response.id,
      input: 'And?',
    }),
  )
  t.match(missing, { status: 400, param: /^input/ }, 'a call must have its result')
})

void t.test('reasoning of another upstream is left out, and reported as lost', async (t) => {
  const gateway = await startGateway(t)
  const post = (body: JsonObject): Promise<Response> =>
    fetch(`${gateway.baseUrl}/responses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  const include = ['reasoning.encrypted_content']
  const ask = { model: 'claude-opus-4-8', input: 'Think', reasoning: { effort: 'low' }, include }
  const response = objectOf(await (await post(ask)).json())
  const kinds = arrayOf(response['output']).map((item) => objectOf(item)['type'])
  t.same(kinds, ['reasoning', 'message'])
  const two = await post({
    model: 'gpt-5-pro',
    input: 'And?',
    previous_response_id: response['id'] ?? '',
  })
  t.equal(two.status, 200)
  await two.text()
  const lost = two.headers.get('x-sluice-lost')?.split(', ')
  t.ok(lost?.includes('input.reasoning'))
  t.notMatch(upstreamRequestOf(gateway), /encrypted_content|sluice/)
  const three = await post({ ...ask, input: 'And?', previous_response_id: response['id'] ?? '' })
  t.equal(three.status, 200)
  t.match(upstreamRequestOf(gateway), /"signature"/, 'it is sent back to its provider')
})

void t.test('the store contains no plain text', async (t) => {
  const gateway = await startGateway(t)
  const client = clientOf(gateway)
  const response = await client.responses.create({
    model: 'claude-haiku-4-5',
    input: 'A-PLAIN-SECRET',
  })
  await gateway.plane.drain()
  const folder = join(gateway.folder, 'data')
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (!entry.isFile()) continue
    const file = entry.name
    const bytes = readFileSync(join(folder, file)).toString('latin1')
    t.notOk(bytes.includes('A-PLAIN-SECRET'), file)
    t.notOk(bytes.includes(response.id), file)
  }
})

void t.test('a client that sends the whole history restores state without the store', async (t) => {
  const more = 'escrow: { enabled: false }\nresponses: { store_seconds: 0 }'
  const gateway = await startGateway(t, { more })
  const client = clientOf(gateway)
  const tools: OpenAI.Responses.FunctionTool[] = [
    {
      type: 'function',
      name: 'get_time',
      strict: false,
      parameters: { type: 'object', properties: {} },
    },
  ]
  const cases = [
    ['claude-opus-4-8', '"signature"'],
    ['gemini-3.5-flash', '"thoughtSignature"'],
  ] as const
  for (const [model, state] of cases) {
    const ask = {
      model,
      tools,
      store: false,
      reasoning: { effort: 'low' as const },
      include: ['reasoning.encrypted_content' as const],
    }
    const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: 'Use get_time' }]
    const response = await client.responses.create({ ...ask, input })
    const call = response.output.find((item) => item.type === 'function_call')
    input.push(...(response.output as OpenAI.Responses.ResponseInput))
    input.push({ type: 'function_call_output', call_id: call?.call_id ?? '', output: 'noon' })
    const two = await client.responses.create({ ...ask, input })
    t.match(two.output_text, /get_time returned/, model)
    const upstreamRequest = upstreamRequestOf(gateway)
    t.ok(upstreamRequest.includes(state), `${model}: its state is restored`)
    t.notOk(
      upstreamRequest.includes('skip_thought_signature_validator'),
      `${model}: and it is the model's own state`,
    )
  }
})

void t.test('a large image delays neither the reply nor the next request', async (t) => {
  const gateway = await startGateway(t)
  const client = clientOf(gateway)
  const picture = `data:image/png;base64,${Buffer.alloc(6 * 1024 * 1024).toString('base64')}`
  const response = await client.responses.create({
    model: 'claude-haiku-4-5',
    input: [
      {
        role: 'user',
        content: [{ type: 'input_image', detail: 'auto', image_url: picture }],
      },
    ],
  })
  const next = client.responses.create({
    model: 'claude-haiku-4-5',
    previous_response_id: response.id,
    input: 'And?',
  })
  t.match((await failureOf(next)).message, /too large to be stored/)
})

void t.test('a conversation continues at the fallback when its own upstream is busy', async (t) => {
  const gateway = await startGateway(t)
  const text = readFileSync(gateway.configFile, 'utf8')
  const route = '- { model: gpt-4.1, upstream: responses }'
  const fallback = 'fallback: [{ upstream: anthropic, model: claude-haiku-4-5 }]'
  writeFileSync(
    gateway.configFile,
    text.replace(route, `- { model: gpt-4.1, upstream: responses, ${fallback} }`),
  )
  gateway.reload()
  const client = clientOf(gateway)
  const response = await client.responses.create({ model: 'gpt-4.1', input: 'My name is Ada.' })
  const restore = gateway.emulator.script({
    match: ({ path }) => path.endsWith('/responses'),
    fault: { kind: 'status', code: 503 },
  })
  t.teardown(restore)
  const two = await client.responses.create({
    model: 'gpt-4.1',
    previous_response_id: response.id,
    input: 'What is my name?',
  })
  t.match(
    upstreamRequestOf(gateway),
    /"max_tokens".*My name is Ada|My name is Ada.*"max_tokens"/,
    'Anthropic got the request',
  )
  restore()
  await client.responses.create({ model: 'gpt-4.1', previous_response_id: two.id, input: 'Sure?' })
  t.match(upstreamRequestOf(gateway), /My name is Ada.*What is my name.*Sure/, 'and back again')
  t.notMatch(upstreamRequestOf(gateway), /max_tokens/)
})
