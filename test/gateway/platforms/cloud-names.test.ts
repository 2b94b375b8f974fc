/**
 * Goal: a client names models, projects, locations, caches and services of a cloud only if they are public,
 * or the configuration names them; also in the messages of a native WebSocket, of which none that is refused
 * reaches the cloud.
 * Method: a gateway in front of a server that records requests and messages.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { eventually } from '../../faults/scene.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { startRawUpstream } from '../../helpers/raw-upstream.js'
import { AWS_AUTH, startCloud } from './capture.js'

t.setTimeout(120_000)

const VERTEX = 'platform: vertex, dialect: gemini, project: acme, location: global, api_key: k'
const BEDROCK = `platform: bedrock, dialect: converse, region: eu-west-1, auth: ${AWS_AUTH}`
const AZURE = 'platform: azure, dialect: openai, api_key: k'
const OWN_PROFILE = 'arn:aws:bedrock:eu-west-1:111122223333:application-inference-profile/own'
const CONVERSE = { messages: [{ role: 'user', content: [{ text: 'hi' }] }] }
const CHAT = { messages: [{ role: 'user', content: 'hi' }] }

async function post({ origin, secret }: TestGateway, path: string, body: object) {
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  const res = await fetch(origin + path, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: res.status, text: await res.text() }
}

const arn = (resource: string): string => `arn:aws:bedrock:eu-west-1:111122223333:${resource}`

for (const sharing of ['account', 'shared']) {
  void t.test(`Bedrock, ${sharing}: only models that are public or named`, async (t) => {
    const named = `prices: { '${OWN_PROFILE}': { input: 1, output: 1 } }`
    const rules = `native: ['POST /model/*/converse', 'POST /model/literal/converse'], native_usd_per_request: 0`
    const settings = `${BEDROCK}, ${named}, ${rules}, native_sharing: ${sharing}`
    const { cloud, gateway } = await startCloud(t, '*', settings)
    for (const model of [
      ...[
        'inference-profile/eu.anthropic.claude',
        'provisioned-model/p1',
        'custom-model/a.b/c1',
        'prompt/P1',
      ],
      ...['application-inference-profile/other', 'guardrail/g1', 'agent/a1', 'knowledge-base/k1'].map(arn),
      ...['imported-model/i1', 'default-prompt-router/r', 'custom-model-deployment/d'].map(arn),
      'arn:aws-us-gov:bedrock:us-gov-west-1:999988887777:inference-profile/x.y',
      'arn:aws:sagemaker:eu-west-1:111122223333:endpoint/e',
      'ARN:aws:bedrock:eu-west-1:111122223333:prompt/P1',
      ` ${OWN_PROFILE}`,
      `${OWN_PROFILE}2`,
      'abcdef123456',
    ]) {
      const path = `/native/cloud/model/${encodeURIComponent(model)}/converse`
      const refused = await post(gateway, path, CONVERSE)
      t.equal(refused.status, 400, `${model}: ${refused.text}`)
      const translated = await post(gateway, '/v1/chat/completions', { model, ...CHAT })
      t.equal(translated.status, 400, `translated ${model}: ${translated.text}`)
    }
    t.equal(cloud.requests.length, 0, 'nothing is sent')
    for (const model of [
      ...['amazon.nova-lite-v1:0', 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0', OWN_PROFILE],
      'arn:aws:bedrock:eu-west-1::foundation-model/amazon.nova-lite-v1:0',
      'literal',
    ]) {
      const path = `/native/cloud/model/${encodeURIComponent(model)}/converse`
      t.match(await post(gateway, path, CONVERSE), { status: 200 }, model)
      if (model === 'literal') continue
      t.match(await post(gateway, '/v1/chat/completions', { model, ...CHAT }), { status: 200 }, model)
    }
  })
}

void t.test('Bedrock: a route names a model', async (t) => {
  const { gateway, cloud } = await startCloud(
    t,
    arn('inference-profile/'),
    `${BEDROCK}, native_usd_per_request: 0, native: ['POST /model/*/converse']`,
  )
  for (const [name, status] of [
    [arn('inference-profile/a'), 200],
    [arn('prompt/a'), 400],
  ] as const) {
    const path = `/native/cloud/model/${encodeURIComponent(name)}/converse`
    t.match(await post(gateway, path, CONVERSE), { status }, name)
  }
  t.equal(cloud.requests.length, 1)
})

const CLOUDS: Readonly<Record<string, { settings: string; refused: string[]; served: string[] }>> = {
  bedrock: {
    settings: BEDROCK,
    refused: [
      ...[
        'guardrail/g1/version/1/apply',
        'agents/a1/agentAliases/x/sessions/s1/text',
        'knowledgebases/k1/retrieve',
      ],
      ...['retrieveAndGenerate', 'flows/f1/aliases/a1', 'rerank', 'optimize-prompt', 'sessions', 'v1/agents'],
      ...['generateQuery', 'tagResource', 'prompts', 'inlineAgents/s1', 'imported-models'],
    ],
    served: ['model/amazon.nova-lite-v1:0/converse', 'openai/v1/chat/completions', 'v1/messages', 'open/x1'],
  },
  vertex: {
    settings: VERTEX,
    refused: [
      ...[
        'reasoningEngines/1:query',
        'ragCorpora/1:query',
        'ragCorpora',
        'datasets',
        'customJobs',
        'models/1:copy',
      ],
      ...[
        'endpoints/1:predict',
        'endpoints/1:generateContent',
        'extensions/1:execute',
        'featureOnlineStores/1',
      ],
      ...[
        'indexEndpoints/1:findNeighbors',
        'tuningJobs',
        'exampleStores/1:searchExamples',
        'templates/1:sanitize',
      ],
    ].map((service) => `v1/projects/acme/locations/global/${service}`),
    served: [
      'v1/projects/acme/locations/global/publishers/google/models/gemini-2.5-pro:generateContent',
      ...['v1/projects/acme/locations/global/endpoints/openapi/chat/completions', 'open/x1'],
      'v1/publishers/google/models/gemini-2.5-pro:generateContent',
    ],
  },
  azure: {
    settings: AZURE,
    refused: [
      ...['agents', 'agents/v1.0/threads', 'api/projects/p1/agents', 'api/projects/p1/indexes/i1/versions/1'],
      ...[
        'contentsafety/text:analyze',
        'language/:analyze-text',
        'knowledgebases/k1/retrieve',
        'indexes/i1/docs',
      ],
    ],
    served: [
      'openai/v1/chat/completions',
      'openai/deployments/d1/chat/completions',
      'anthropic/v1/messages',
      'open/x1',
    ],
  },
}

for (const sharing of ['account', 'shared']) {
  void t.test(`${sharing}: native access calls no service of the operator`, async (t) => {
    for (const [name, { settings, refused, served }] of Object.entries(CLOUDS)) {
      const rules = `native: ['POST /*', 'GET /*', 'POST /open/*'], native_usd_per_request: 0, native_sharing: ${sharing}`
      const { cloud, gateway } = await startCloud(t, '*', `${settings}, ${rules}`)
      const headers = { authorization: `Bearer ${gateway.secret}` }
      for (const path of refused) {
        const posted = await post(gateway, `/native/cloud/${path}`, {})
        t.ok([400, 404].includes(posted.status), `${name}, POST ${path}: ${posted.status} ${posted.text}`)
        if (sharing === 'shared') t.match(posted, { status: 400, text: /with the gateway's identity/ }, path)
        const read = await fetch(`${gateway.origin}/native/cloud/${path}`, { headers })
        t.ok([400, 404].includes(read.status), `${name}, GET ${path}: ${read.status}`)
      }
      t.equal(cloud.requests.length, 0, `${name}: nothing is sent`)
      if (sharing === 'account') continue
      for (const path of served) {
        t.match(await post(gateway, `/native/cloud/${path}`, CONVERSE), { status: 200 }, `${name}, ${path}`)
      }
    }
  })
}

/** Jobs with a bucket that the upstream lists. */
const JOBS: readonly (readonly [settings: string, path: string, body: object])[] = [
  [
    VERTEX,
    'v1/projects/acme/locations/global/batchPredictionJobs',
    {
      model: 'publishers/google/models/gemini-2.5-pro',
      inputConfig: { instancesFormat: 'jsonl', gcsSource: { uris: ['gs://jobs/in.jsonl'] } },
      outputConfig: { predictionsFormat: 'jsonl', gcsDestination: { outputUriPrefix: 'gs://jobs/out' } },
    },
  ],
  [
    BEDROCK,
    'model-invocation-job',
    {
      ...{ jobName: 'j', modelId: 'amazon.nova-lite-v1:0', roleArn: 'named' },
      inputDataConfig: { s3InputDataConfig: { s3Uri: 's3://jobs/in.jsonl' } },
      outputDataConfig: { s3OutputDataConfig: { s3Uri: 's3://jobs/out/' } },
    },
  ],
]

void t.test('a key with a budget starts no job whose requests are in a bucket', async (t) => {
  const buckets = "allow_buckets: ['gs://jobs', 's3://jobs'], native_usd_per_request: 0"
  for (const [settings, path, body] of JOBS) {
    for (const [more, status] of [
      ['limits: [{ scope: key, usd_per_day: 100 }]', 403],
      ['', 200],
    ] as const) {
      const cloud = await startRawUpstream(t, () => ({ type: 'application/json', chunks: ['{}'] }))
      const gateway = await startGateway(t, {
        cloud: `base_url: '${cloud.origin}', ${settings}, ${buckets}, native: ['POST /${path}']`,
        routes: "  - { model: '*', upstream: cloud }",
        more,
      })
      const answer = await post(gateway, `/native/cloud/${path}`, body)
      t.match(answer, { status }, `${path}: ${answer.text}`)
      t.equal(cloud.requests.length, status === 200 ? 1 : 0)
      if (status === 403) t.match(answer.text, /requests of this job are in a bucket.*budget/)
    }
  }
})

const VERTEX_NATIVE = `${VERTEX}, native_usd_per_request: 0, native: ['POST /v1/*', 'GET /v1/*', 'POST /v1/projects/open/locations/*', 'GET /ws/google.cloud.aiplatform.v1.LlmBidiService/BidiGenerateContent']`
const scope = (project: string, location = 'global') => `projects/${project}/locations/${location}`
const MODEL = 'publishers/google/models/gemini-2.5-pro'
const HI = { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] }

for (const sharing of ['account', 'shared']) {
  void t.test(`Vertex AI, ${sharing}: only the own project and location`, async (t) => {
    const settings = `${VERTEX_NATIVE}, native_sharing: ${sharing}`
    const { gateway, cloud } = await startCloud(t, 'gemini-2.5-pro', settings)
    const generate = (at: string, more: object = {}) =>
      post(gateway, `/native/cloud/v1/${at}/${MODEL}:generateContent`, { ...HI, ...more })
    for (const at of [scope('other'), scope('123456'), scope('acme', 'us-east5'), scope('acme2')]) {
      t.match(await generate(at), { status: 400 }, at)
    }
    const create = `/native/cloud/v1/${scope('acme')}/cachedContents`
    const model = `${scope('acme')}/${MODEL}`
    t.match(await post(gateway, create, { model }), { status: 200 })
    t.equal(cloud.requests.splice(0).length, 1)
    const caches = [
      ...[scope('other'), scope('acme', 'us-east5'), `//aiplatform.googleapis.com/${scope('other')}`],
      ...(sharing === 'shared' ? [scope('123456')] : []),
    ]
    const path = '/v1beta/models/gemini-2.5-pro:generateContent'
    for (const at of caches) {
      const cachedContent = `${at}/cachedContents/own`
      t.match(await generate(scope('acme'), { cachedContent }), { status: 400 }, cachedContent)
      const translated = await post(gateway, path, { ...HI, cachedContent })
      t.match(translated, { status: 400 }, `translated ${cachedContent}`)
    }
    const others = sharing === 'account' ? [`${scope('acme')}/cachedContents/2`, 'cachedContents/2'] : []
    for (const cachedContent of others) {
      t.match(await generate(scope('acme'), { cachedContent }), { status: 404 }, cachedContent)
      t.match(await post(gateway, path, { ...HI, cachedContent }), { status: 404 }, cachedContent)
    }
    for (const foreign of [`${scope('other')}/${MODEL}`, `${scope('acme')}/endpoints/1`, 'endpoints/1']) {
      t.match(await post(gateway, create, { model: foreign }), { status: 400 }, foreign)
    }
    t.equal(cloud.requests.length, 0, 'nothing is sent')
    t.match(await generate(scope('acme')), { status: 200 })
    t.match(await generate(scope('open')), { status: 200 }, 'a rule names the project')
    const own = [scope('acme'), ...(sharing === 'account' ? [scope('123456')] : [])]
    for (const at of own) {
      const cachedContent = `${at}/cachedContents/own`
      t.match(await generate(scope('acme'), { cachedContent }), { status: 200 }, cachedContent)
      t.match(await post(gateway, path, { ...HI, cachedContent }), { status: 200 }, cachedContent)
    }
  })
}

interface Live {
  readonly gateway: TestGateway
  readonly messages: string[]
  readonly open: (path: string) => WebSocket
}

/** A cloud with WebSockets, and a gateway in front of it. */
async function startLive(t: Test, settings: string): Promise<Live> {
  const server = createServer()
  const messages: string[] = []
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket) => {
    socket.on('message', (bytes: Buffer) => {
      messages.push(bytes.toString())
      socket.send('{"setupComplete":{}}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const client of sockets.clients) client.terminate()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const gateway = await startGateway(t, { cloud: `base_url: 'http://127.0.0.1:${port}', ${settings}` })
  const headers = { authorization: `Bearer ${gateway.secret}` }
  const open = (path: string) =>
    new WebSocket(`ws://127.0.0.1:${gateway.port}/native/cloud${path}`, { headers })
  return { gateway, messages, open }
}

const LIVE = '/ws/google.cloud.aiplatform.v1.LlmBidiService/BidiGenerateContent'
const setup = (more: object): string =>
  JSON.stringify({ setup: { model: `${scope('acme')}/${MODEL}`, ...more } })
const REFUSED: readonly string[] = [
  setup({ tools: [{ retrieval: { vertexRagStore: {} } }] }),
  setup({ tools: [{ parallelAiSearch: {} }] }),
  setup({ systemInstruction: { parts: [{ fileData: { fileUri: 'gs://bucket/a.pdf' } }] } }),
  setup({ cachedContent: `${scope('other')}/cachedContents/1` }),
  setup({ model: `${scope('other')}/${MODEL}` }),
  setup({ modelArmorConfig: { promptTemplateName: 'x' } }),
  JSON.stringify({ clientContent: { turns: [{ parts: [{ file_data: { file_uri: 'gs://b/a' } }] }] } }),
  '{"setup":{"model":"a"},"setup":{}}',
  'no JSON',
]

for (const sharing of ['account', 'shared']) {
  void t.test(`messages of a WebSocket on Vertex AI, ${sharing}`, async (t) => {
    const settings = `${VERTEX_NATIVE}, native_sharing: ${sharing}`
    const { messages, open } = await startLive(t, settings)
    for (const [at, text] of REFUSED.entries()) {
      const client = open(LIVE)
      await once(client, 'open')
      client.on('error', () => undefined)
      if (at % 2 === 0) client.send(text)
      else
        for (const [index, part] of text.split('').entries())
          client.send(part, { fin: index === text.length - 1 })
      await once(client, 'close')
    }
    t.strictSame(messages, [], 'none reaches the cloud')
    const client = open(LIVE)
    await once(client, 'open')
    const allowed = [setup({ tools: [{ googleSearch: {} }, { functionDeclarations: [] }] }), setup({})]
    for (const text of allowed) client.send(text)
    client.send(Buffer.from(setup({ generationConfig: {} })))
    await eventually(() => messages.length === 3, 'three messages')
    t.strictSame(messages, [...allowed, setup({ generationConfig: {} })])
    client.close()
    await once(client, 'close')
  })
}

void t.test('what the upstream lists passes in messages too', async (t) => {
  const lists = `allow_tools: ['*', retrieval], allow_buckets: ['gs://bucket']`
  const { messages, open } = await startLive(t, `${VERTEX_NATIVE}, ${lists}`)
  const client = open(LIVE)
  await once(client, 'open')
  client.send(REFUSED[0] ?? '')
  client.send(REFUSED[2] ?? '')
  await eventually(() => messages.length === 2, 'both')
  client.close()
  await once(client, 'close')
})

void t.test('messages of a WebSocket on Azure', async (t) => {
  const rules = `native_usd_per_request: 0, native: ['GET /openai/v1/realtime']`
  const { messages, open } = await startLive(t, `${AZURE}, ${rules}`)
  const session = (value: object): string => JSON.stringify({ type: 'session.update', session: value })
  for (const text of [
    session({ data_sources: [{}] }),
    session({ tools: [{ type: 'azure_function' }] }),
    session({ tools: [{ type: 'mcp', server_label: 'a', project_connection_id: 'c' }] }),
    session({ prompt: { id: 'pmpt_1' } }),
  ]) {
    const client = open('/openai/v1/realtime?model=gpt-realtime')
    await once(client, 'open')
    client.on('error', () => undefined)
    client.send(text)
    await once(client, 'close')
  }
  t.strictSame(messages, [])
  const client = open('/openai/v1/realtime?model=gpt-realtime')
  await once(client, 'open')
  const audio = JSON.stringify({ type: 'input_audio_buffer.append', audio: 'A'.repeat(3_000_000) })
  client.send(audio)
  client.send(session({ tools: [{ type: 'function', name: 'f' }], instructions: 'gs://a' }))
  await eventually(() => messages.length === 2, 'both')
  t.equal(messages[0], audio)
  client.close()
  await once(client, 'close')
})
