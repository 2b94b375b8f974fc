/**
 * Goal: native requests to a cloud are signed, or carry the token of the identity; a model id with an encoded
 * slash is accepted on Bedrock and in no other place.
 * Method: a gateway in front of the emulated clouds, which verify signatures and tokens.
 */
import t from 'tap'
import { EMULATED_KEYS } from '../../../src/emulator/cloud-credentials.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { startUpstream } from '../../helpers/upstream.js'
import { startCloud } from './capture.js'

const PROFILE = 'arn:aws:bedrock:eu-west-1:123456789012:inference-profile/amazon.nova'
const CONVERSE = { messages: [{ role: 'user', content: [{ text: 'Hello' }] }] }

function post({ origin, secret }: TestGateway, path: string, body: object): Promise<Response> {
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  return fetch(origin + path, { method: 'POST', headers, body: JSON.stringify(body) })
}

void t.test('Bedrock: the body is signed, and the model is one segment', async (t) => {
  const emulator = await startUpstream(t, { models: 'any' })
  const { keyId, secret } = EMULATED_KEYS
  const gateway = await startGateway(t, {
    cloud: `platform: bedrock, dialect: converse, region: eu-west-1, base_url: '${emulator.origin}', native_usd_per_request: 0, prices: { '${PROFILE}': { input: 1, output: 1 } }, native: ['POST /model/*/converse', 'POST /model/*/converse-stream'], auth: { aws: { access_key_id: ${keyId}, secret_access_key: ${secret} } }`,
  })
  const model = 'amazon.nova-lite-v1:0'
  const reply = await post(gateway, `/native/cloud/model/${model}/converse`, CONVERSE)
  const text = await reply.text()
  t.equal(reply.status, 200, text)
  t.match(text, /"stopReason":"end_turn"/)
  const escaped = encodeURIComponent(model)
  const stream = await post(gateway, `/native/cloud/model/${escaped}/converse-stream`, CONVERSE)
  t.equal(stream.status, 200)
  t.equal(stream.headers.get('content-type'), 'application/vnd.amazon.eventstream')
  await stream.arrayBuffer()
  const arn = encodeURIComponent(PROFILE)
  const ofArn = await post(gateway, `/native/cloud/model/${arn}/converse`, CONVERSE)
  t.equal(ofArn.status, 200, await ofArn.text())
  for (const path of [
    '/native/cloud/model/a%2F..%2Fb/converse',
    '/native/cloud/model/a%2F%2Fb/converse',
    '/native/cloud/model/a%5Cb/converse',
    '/native/cloud/model/a%252Fb/converse',
    '/native/cloud/model/m/x%2Fconverse',
    '/native/openai/model/a%2Fb/converse',
  ]) {
    t.ok([400, 404].includes((await post(gateway, path, CONVERSE)).status), path)
  }
})

void t.test("Vertex: the provider's own path, with a token", async (t) => {
  const emulator = await startUpstream(t, { models: 'any' })
  const folder = t.testdir({
    'user.json': JSON.stringify({
      type: 'authorized_user',
      client_id: 'client',
      client_secret: 'client-secret',
      refresh_token: 'refresh',
      token_uri: `${emulator.origin}/google/token`,
    }),
  })
  const gateway = await startGateway(t, {
    cloud: `platform: vertex, dialect: gemini, project: acme, location: global, base_url: '${emulator.origin}', native_usd_per_request: 0, native: ['POST /v1beta1/projects/*'], auth: { google: { credentials_file: '${folder}/user.json' } }`,
  })
  const path = '/v1beta1/projects/acme/locations/global/publishers/google/models/gemini-2.5-pro'
  const reply = await post(gateway, `/native/cloud${path}:generateContent`, {
    contents: [{ role: 'user', parts: [{ text: 'Hello' }] }],
  })
  t.equal(reply.status, 200, await reply.text())
  t.equal(emulator.tokens.issued['google'], 1)
})

void t.test('probes are authorized too', async (t) => {
  const settings = `platform: azure, dialect: openai, api_key: azure-key, probe: { path: /models, interval_ms: 100 }`
  const { cloud } = await startCloud(t, 'gpt-probed', settings)
  for (let wait = 0; cloud.requests.length === 0 && wait < 2000; wait += 1) {
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  t.equal(cloud.requests[0]?.url, '/openai/v1/models')
  t.equal(cloud.requests[0]?.headers['api-key'], 'azure-key')
})

void t.test('anthropic_version and a header of that name replace the version', async (t) => {
  for (const version of ['anthropic_version: 2023-06-01', 'headers: { anthropic-version: 2023-06-01 }']) {
    const { cloud, gateway } = await startCloud(t, 'claude-own', `dialect: anthropic, ${version}`)
    const messages = [{ role: 'user', content: 'Hello' }]
    await gateway.chat({ model: 'claude-own', messages })
    await post(gateway, '/v1/messages', { model: 'claude-own', max_tokens: 9, messages })
    t.equal(cloud.requests.length, 2)
    for (const { headers } of cloud.requests) t.equal(headers['anthropic-version'], '2023-06-01')
  }
})
