/**
 * Goal: a conversation that moves between Anthropic and Claude on a cloud keeps its signed reasoning, and
 * loses it with a report if the cloud refuses it.
 * Method: the first turn is served by one of them and the second by the other; the emulator verifies the
 * signature and keeps the bodies. Then a cloud that refuses the reasoning once.
 */
import t from 'tap'
import { startEmulator } from '../../../src/emulator/server.js'
import { EMULATED_KEYS } from '../../../src/emulator/cloud-credentials.js'
import { objectOf } from '../../../src/base/json.js'
import { startGateway } from '../../helpers/gateway.js'
import { AWS_AUTH, json, startCloud, usualReply } from './capture.js'

const TOOLS = [
  {
    type: 'function',
    function: { name: 'look_up', parameters: { type: 'object', properties: {} } },
  },
]

interface Reply {
  readonly choices: readonly { readonly message: { readonly tool_calls?: { id: string }[] } }[]
}

void t.test('reasoning of Claude moves between Anthropic and the clouds', async (t) => {
  const emulator = await startEmulator({ models: 'any' })
  t.teardown(() => emulator.close())
  const { keyId, secret } = EMULATED_KEYS
  const keys = `{ aws: { access_key_id: ${keyId}, secret_access_key: ${secret} } }`
  const clouds = {
    bedrock: `platform: bedrock, dialect: anthropic, region: eu-west-1, auth: ${keys}`,
    vertex: 'platform: vertex, dialect: anthropic, project: p, location: global, api_key: k',
  }
  const models = {
    bedrock: 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0',
    vertex: 'claude-sonnet-4-5@20250929',
  }
  for (const cloud of ['bedrock', 'vertex'] as const) {
    const gateway = await startGateway(t, {
      upstreams: { anthropic: emulator.baseUrls.anthropic },
      cloud: `base_url: '${emulator.origin}', ${clouds[cloud]}`,
      routes: `  - { model: on-cloud, targets: [{ upstream: cloud, model: '${models[cloud]}' }] }
  - { model: at-vendor, targets: [{ upstream: anthropic, model: claude-sonnet-4-5 }] }`,
    })
    for (const [first, second] of [
      ['on-cloud', 'at-vendor'],
      ['at-vendor', 'on-cloud'],
    ]) {
      const user = { role: 'user', content: `Call the tool look_up for ${cloud}, ${String(first)}` }
      const body = { max_completion_tokens: 8_000, reasoning_effort: 'high', tools: TOOLS }
      const asked = await gateway.chat({ ...body, model: first, messages: [user] })
      t.equal(asked.status, 200)
      const { choices } = (await asked.json()) as Reply
      const calls = choices[0]?.message.tool_calls ?? []
      t.equal(calls.length > 0, true, 'the model calls the tool')
      const messages = [
        user,
        // A client that drops the reasoning.
        { role: 'assistant', content: null, tool_calls: calls },
        ...calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'found' })),
      ]
      const answered = await gateway.chat({ ...body, model: second, messages })
      t.equal(answered.status, 200, await answered.text())
      t.equal(answered.headers.get('x-sluice-lost')?.includes('reasoning') ?? false, false)
      const sent = JSON.stringify(emulator.ledger.at(-1)?.body)
      t.match(sent, /"type":"thinking"/, `${String(first)} then ${String(second)}`)
      t.match(sent, /"signature":"[^"]+"/)
    }
  }
})

const BINDING = { prefix_mismatch_behavior: 'drop_block' }
const BETA = 'thinking-binding-controls-2026-08-01'

void t.test('reasoning that Converse refuses is dropped with a report', async (t) => {
  const settings = `platform: bedrock, dialect: converse, region: eu-west-1, auth: ${AWS_AUTH}`
  const { cloud, gateway } = await startCloud(t, 'eu.anthropic.', settings)
  const message =
    'messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.'
  cloud.answer = (arrived) =>
    cloud.requests.length > 1
      ? usualReply(arrived)
      : json({ __type: 'com.amazon.bedrock#ValidationException', message }, 400)
  const thinking = { type: 'thinking', thinking: 'Hm.', signature: 'c2lnbmF0dXJl' }
  const reply = await fetch(`${gateway.origin}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': gateway.secret, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'eu.anthropic.claude-opus-5-1-v1:0',
      max_tokens: 2_000,
      messages: [
        { role: 'user', content: 'Hello' },
        { role: 'assistant', content: [thinking, { type: 'text', text: 'Hello' }] },
        { role: 'user', content: 'More' },
      ],
    }),
  })
  t.equal(reply.status, 200, await reply.text())
  t.match(reply.headers.get('x-sluice-lost'), /messages\.thinking/)
  const [first, second] = cloud.requests.map(({ body }) =>
    objectOf(objectOf(JSON.parse(body.toString())).additionalModelRequestFields),
  )
  t.notMatch(JSON.stringify(first), /block_binding/)
  t.match(second?.thinking, { block_binding: BINDING })
  t.match(second?.anthropic_beta, [BETA])
})
