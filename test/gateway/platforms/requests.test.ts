/**
 * Goal: the requests that the gateway sends to a cloud are those of the vendors' SDKs for the same call:
 * path, headers and body, byte by byte.
 * Method: the SDK sends the call to a recording server, and a client of the gateway sends the same call
 * through an upstream with that address.
 */
import Anthropic from '@anthropic-ai/sdk'
import { AnthropicBedrock } from '@anthropic-ai/bedrock-sdk'
import { AnthropicFoundry } from '@anthropic-ai/foundry-sdk'
import { AnthropicVertex } from '@anthropic-ai/vertex-sdk'
import { BedrockRuntimeClient, ConverseCommand, InvokeModelCommand } from '@aws-sdk/client-bedrock-runtime'
import { GoogleGenAI } from '@google/genai'
import { NodeHttpHandler } from '@smithy/node-http-handler'
import { OAuth2Client } from 'google-auth-library'
import OpenAI, { AzureOpenAI } from 'openai'
import t from 'tap'
import type { Arrived } from '../../helpers/raw-upstream.js'
import { AWS, AWS_AUTH, comparable, pairOf, startCloud } from './capture.js'

const BEDROCK_CLAUDE = 'us.anthropic.claude-sonnet-4-5-20250929-v1:0'
const CALL = { max_tokens: 100, messages: [{ role: 'user' as const, content: 'Grüße' }] }
const BETA = { headers: { 'anthropic-beta': 'context-1m-2025-08-07' } }

/** Anthropic's SDK leaves the colon of a model id, AWS's escapes it; Bedrock accepts both. */
function withoutEscapes(request: Arrived): Arrived {
  return { ...request, url: request.url.replaceAll('%3A', ':') }
}

function bedrockClient(endpoint: string): BedrockRuntimeClient {
  return new BedrockRuntimeClient({
    region: 'eu-west-1',
    endpoint,
    credentials: {
      accessKeyId: AWS.keyId,
      secretAccessKey: AWS.secret,
      sessionToken: AWS.sessionToken,
    },
    requestHandler: new NodeHttpHandler(),
  })
}

void t.test('Claude on Bedrock, as Anthropic sends it', async (t) => {
  const settings = `platform: bedrock, dialect: anthropic, region: eu-west-1, auth: ${AWS_AUTH}`
  const { cloud, gateway } = await startCloud(t, 'us.anthropic.', settings)
  const sdk = new AnthropicBedrock({
    awsAccessKey: AWS.keyId,
    awsSecretKey: AWS.secret,
    awsSessionToken: AWS.sessionToken,
    awsRegion: 'eu-west-1',
    baseURL: cloud.origin,
  })
  const client = new Anthropic({ apiKey: gateway.secret, baseURL: gateway.origin })
  const call = { model: BEDROCK_CLAUDE, ...CALL }
  await sdk.messages.create(call, BETA)
  const reply = await client.messages.create(call, BETA)
  t.equal(reply.model, 'claude-sonnet-4-5-20250929')
  const [one, other] = pairOf(cloud)
  t.same(comparable(withoutEscapes(other)), comparable(one))
  const { anthropic_version: version } = JSON.parse(other.body.toString()) as Record<string, unknown>
  t.equal(version, '2026-10-21')
  t.match(
    other.headers.authorization,
    /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/eu-west-1\/bedrock\/aws4_request, SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token, Signature=[0-9a-f]{64}$/,
  )
})

void t.test('Claude on Bedrock, as AWS sends it', async (t) => {
  const settings = `platform: bedrock, dialect: anthropic, region: eu-west-1, auth: ${AWS_AUTH}`
  const { cloud, gateway } = await startCloud(t, 'arn:', settings)
  const model = 'arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc'
  const body = JSON.stringify({ ...CALL, anthropic_version: 'bedrock-2023-05-31' })
  const command = { modelId: model, body, contentType: 'application/json' }
  await bedrockClient(cloud.origin).send(new InvokeModelCommand(command))
  const client = new Anthropic({ apiKey: gateway.secret, baseURL: gateway.origin })
  const old = { headers: { 'anthropic-version': '2023-06-01' } }
  await client.messages.create({ model, ...CALL }, old)
  const [one, other] = pairOf(cloud)
  t.same(comparable(other), comparable(one))
  t.match(
    other.url,
    '/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Aapplication-inference-profile%2Fabc/invoke',
  )
})

void t.test('Converse', async (t) => {
  const settings = `platform: bedrock, dialect: converse, region: eu-west-1, auth: ${AWS_AUTH}`
  const { cloud, gateway } = await startCloud(t, 'amazon.', settings)
  const modelId = 'amazon.nova-lite-v1:0'
  const messages = [{ role: 'user' as const, content: [{ text: 'Grüße' }] }]
  await bedrockClient(cloud.origin).send(
    new ConverseCommand({ modelId, messages, inferenceConfig: { maxTokens: 100 } }),
  )
  const reply = await gateway.chat({
    model: modelId,
    messages: [{ role: 'user', content: 'Grüße' }],
    max_completion_tokens: 100,
  })
  t.equal(reply.status, 200)
  const [one, other] = pairOf(cloud)
  t.same(JSON.parse(other.body.toString()), JSON.parse(one.body.toString()))
  t.equal(other.url, one.url)
})

const VERTEX = 'project: acme-prod, location: us-east5'

void t.test('Claude on Vertex', async (t) => {
  const settings = `platform: vertex, dialect: anthropic, ${VERTEX}, api_key: google-key`
  const { cloud, gateway } = await startCloud(t, 'claude-sonnet-4-5@', settings)
  const authClient = new OAuth2Client()
  authClient.setCredentials({ access_token: 'token' })
  const sdk = new AnthropicVertex({
    region: 'us-east5',
    projectId: 'acme-prod',
    baseURL: `${cloud.origin}/v1`,
    authClient,
  })
  const client = new Anthropic({ apiKey: gateway.secret, baseURL: gateway.origin })
  const call = { model: 'claude-sonnet-4-5@20250929', ...CALL }
  await sdk.messages.create(call, BETA)
  await client.messages.create(call, BETA)
  const [one, other] = pairOf(cloud)
  delete other.headers['x-goog-api-key']
  t.same(comparable(other), comparable(one))
  await sdk.messages.countTokens({ model: call.model, messages: CALL.messages })
  const counted = await client.messages.countTokens({ model: call.model, messages: CALL.messages })
  t.equal(counted.input_tokens, 7)
  const [counting, own] = pairOf(cloud)
  delete own.headers['x-goog-api-key']
  t.same(comparable(own), comparable(counting))
})

void t.test('Gemini on Vertex', async (t) => {
  const settings = `platform: vertex, dialect: gemini, ${VERTEX}, api_key: google-key`
  const { cloud, gateway } = await startCloud(t, 'gemini-2.5-', settings)
  const vertex = { vertexai: true, project: 'acme-prod', location: 'us-east5' }
  const authClient = new OAuth2Client()
  authClient.setCredentials({ access_token: 'token' })
  const sdk = new GoogleGenAI({
    ...vertex,
    googleAuthOptions: { authClient },
    httpOptions: { baseUrl: cloud.origin },
  })
  const call = {
    model: 'gemini-2.5-pro',
    contents: [{ role: 'user', parts: [{ text: 'Grüße' }] }],
    config: { maxOutputTokens: 100 },
  }
  await sdk.models.generateContent(call)
  const client = new GoogleGenAI({
    apiKey: gateway.secret,
    httpOptions: { baseUrl: gateway.origin },
  })
  const reply = await client.models.generateContent(call)
  t.equal(reply.text, 'Hello')
  const [one, other] = pairOf(cloud)
  delete other.headers['x-goog-api-key']
  t.same(comparable(other), comparable(one))
  await sdk.models.countTokens({ model: call.model, contents: call.contents })
  const counted = await client.models.countTokens({ model: call.model, contents: call.contents })
  t.equal(counted.totalTokens, 7)
  const [counting, own] = pairOf(cloud)
  delete own.headers['x-goog-api-key']
  t.same(comparable(own), comparable(counting))
})

void t.test('Azure OpenAI with dated addresses', async (t) => {
  const settings =
    'platform: azure, dialect: openai, api_version: 2024-10-21, deployments: { gpt-5.4: prod-gpt, text-embedding-4: prod-embed }, api_key: azure-key'
  const { cloud, gateway } = await startCloud(t, 'x-', settings)
  const routed = await startCloud(t, 'gpt-5.4', settings)
  const sdk = new AzureOpenAI({
    endpoint: routed.cloud.origin,
    apiKey: 'azure-key',
    apiVersion: '2024-10-21',
  })
  const client = new OpenAI({ apiKey: routed.gateway.secret, baseURL: routed.gateway.baseUrl })
  const messages = [{ role: 'user' as const, content: 'Grüße' }]
  await sdk.chat.completions.create({ model: 'prod-gpt', messages })
  await client.chat.completions.create({ model: 'gpt-5.4', messages })
  const [one, other] = pairOf(routed.cloud)
  t.same(comparable(other), comparable(one))
  t.equal(other.url, '/openai/deployments/prod-gpt/chat/completions?api-version=2024-10-21')
  t.same([cloud.requests.length, gateway.port > 0], [0, true])
  await sdk.responses.create({ model: 'prod-gpt', input: 'Grüße' })
  await client.responses.create({ model: 'gpt-5.4', input: 'Grüße' })
  const [asked, own] = pairOf(routed.cloud)
  t.equal(own.url, asked.url)
  t.match(JSON.parse(own.body.toString()), JSON.parse(asked.body.toString()))
})

void t.test('Azure OpenAI v1, with the deployment as the model', async (t) => {
  const settings = 'platform: azure, dialect: openai, deployments: { gpt-5.4: prod-gpt }, api_key: azure-key'
  const { cloud, gateway } = await startCloud(t, 'gpt-5.4', settings)
  const sdk = new OpenAI({
    apiKey: 'azure-key',
    baseURL: `${cloud.origin}/openai/v1`,
    defaultHeaders: { 'api-key': 'azure-key' },
  })
  const messages = [{ role: 'user' as const, content: 'Grüße' }]
  await sdk.chat.completions.create({ model: 'prod-gpt', messages })
  const client = new OpenAI({ apiKey: gateway.secret, baseURL: gateway.baseUrl })
  await client.chat.completions.create({ model: 'gpt-5.4', messages })
  const [one, other] = pairOf(cloud)
  t.same(comparable(other), comparable(one))
})

void t.test('Claude on Foundry', async (t) => {
  const settings = 'platform: azure, dialect: anthropic, api_key: azure-key'
  const { cloud, gateway } = await startCloud(t, 'claude-foundry', settings)
  const sdk = new AnthropicFoundry({ apiKey: 'azure-key', baseURL: `${cloud.origin}/anthropic/` })
  const client = new Anthropic({ apiKey: gateway.secret, baseURL: gateway.origin })
  const call = { model: 'claude-foundry', ...CALL }
  await sdk.messages.create(call, BETA)
  await client.messages.create(call, BETA)
  const [one, other] = pairOf(cloud)
  t.same(comparable(other), comparable(one))
})

void t.test('Claude on Bedrock: URLs are refused, because Bedrock does not fetch them', async (t) => {
  const settings = `platform: bedrock, dialect: anthropic, region: eu-west-1, auth: ${AWS_AUTH}`
  const { cloud, gateway } = await startCloud(t, 'eu.anthropic.', settings)
  const model = 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0'
  const url = 'https://example.com/a.png'
  const image = { type: 'image', source: { type: 'url', url } }
  const call = { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }
  const result = { type: 'tool_result', tool_use_id: call.id, content: [image] }
  const user = (...content: object[]): object => ({ role: 'user', content })
  const text = { type: 'text', text: 'Look' }
  const loop = [user(text), { role: 'assistant', content: [call] }, user(result)]
  for (const [path, messages, param] of [
    [
      '/v1/chat/completions',
      [user(text, { type: 'image_url', image_url: { url } })],
      'messages[0].content[1]',
    ],
    ['/v1/messages', [user(image)], 'messages[0].content[0]'],
    ['/v1/messages', loop, 'messages[2].content[0].content[0]'],
  ] as const) {
    const reply = await fetch(gateway.origin + path, {
      method: 'POST',
      headers: { 'x-api-key': gateway.secret, 'content-type': 'application/json' },
      body: JSON.stringify({ model, max_tokens: 10, messages }),
    })
    t.equal(reply.status, 400)
    const { error } = (await reply.json()) as { error: object }
    t.match(error, { kind: 'untranslatable', param }, path)
  }
  t.equal(cloud.requests.length, 0)
})
