/**
 * Goal: a conversation that moves between Anthropic and Claude on a cloud keeps its signed reasoning.
 * Method: the first turn is served by one of them and the second by the other; the emulator verifies the
 * signature and keeps the bodies.
 */
import t from 'tap'
import { startEmulator } from '../../../src/emulator/server.js'
import { EMULATED_KEYS } from '../../../src/emulator/cloud-tokens.js'
import { startGateway } from '../../helpers/gateway.js'

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
