/**
 * Goal: what a cloud reads or calls with the gateway's identity is refused with the field's name unless the
 * upstream lists it, in every client format, in native requests and in batches; what is listed passes.
 * Method: a gateway in front of a server that records what reaches it.
 */
import t from 'tap'
import type { TestGateway } from '../../helpers/gateway.js'
import { AWS_AUTH, startCloud, type CloudScene } from './capture.js'

t.setTimeout(120_000)

const VERTEX = 'platform: vertex, dialect: gemini, project: acme, location: global, api_key: k'
const BEDROCK = `platform: bedrock, dialect: converse, region: eu-west-1, auth: ${AWS_AUTH}`
const AZURE = 'platform: azure, dialect: openai, api_key: k'
const GENERATE = '/v1beta/models/gemini-2.5-pro:generateContent'
const HI = { role: 'user', parts: [{ text: 'See gs://bucket/a and arn:aws:s3:::b' }] }
const USER = [{ role: 'user', content: 'Look at gs://bucket/a.pdf' }]

interface Answer {
  readonly status: number
  readonly text: string
}

async function post({ origin, secret }: TestGateway, path: string, body: object): Promise<Answer> {
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  const res = await fetch(origin + path, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: res.status, text: await res.text() }
}

/** Sends the requests: all are refused without the lists, and passed on with them. */
async function check(
  t: Parameters<typeof startCloud>[0],
  { prefix, settings }: Setting,
  cases: readonly Case[],
): Promise<void> {
  const closed = await startCloud(t, prefix, settings)
  const tools = cases.flatMap(({ 0: list }) => (list.includes('://') ? [] : list.split(' ')))
  const buckets = cases.flatMap(({ 0: list }) => (list.includes('://') ? [`'${list}'`] : []))
  const lists = `allow_tools: ['*', ${tools.join(', ')}]${buckets.length === 0 ? '' : `, allow_buckets: [${buckets.join(', ')}]`}`
  const open = await startCloud(t, prefix, `${settings}, ${lists}`)
  for (const [, field, path, body] of cases) {
    const label = `${field}: ${JSON.stringify(body)}`
    const refused = await post(closed.gateway, path, body)
    t.equal(refused.status, 400, `${label}: ${refused.text}`)
    t.match(refused.text, /identity.*(?:allow_buckets|allow_tools) of the upstream 'cloud'/, label)
    t.ok(refused.text.includes(field), `${label}: ${refused.text}`)
    const passed = await post(open.gateway, path, body)
    t.equal(passed.status, 200, `${label}: ${passed.text}`)
  }
  t.equal(closed.cloud.requests.length, 0, 'nothing is sent')
}

interface Setting {
  readonly prefix: string
  readonly settings: string
}

/** What is listed, the field in the message, path and body. */
type Case = readonly [list: string, field: string, path: string, body: object]

const gemini = (more: object): object => ({ contents: [HI], ...more })
const file = (fileUri: string): object => ({
  contents: [{ role: 'user', parts: [{ fileData: { fileUri, mimeType: 'application/pdf' } }] }],
})

const ON_VERTEX: readonly Case[] = [
  [
    'retrieval',
    'tools[0].retrieval',
    GENERATE,
    gemini({ tools: [{ retrieval: { vertexAiSearch: { datastore: 'projects/p/x' } } }] }),
  ],
  ['retrieval', 'tools[0].retrieval', GENERATE, gemini({ tools: [{ retrieval: { vertex_rag_store: {} } }] })],
  [
    'retrieval external_api',
    'tools[0].retrieval',
    GENERATE,
    gemini({ tools: [{ retrieval: { externalApi: { endpoint: 'https://x.example' } } }] }),
  ],
  [
    'model_armor_config',
    'modelArmorConfig',
    GENERATE,
    gemini({ modelArmorConfig: { promptTemplateName: 'a' } }),
  ],
  [
    'parallel_ai_search',
    'tools[0].parallelAiSearch',
    GENERATE,
    gemini({ tools: [{ parallelAiSearch: {} }] }),
  ],
  [
    'auth_config google_maps',
    'tools[0].googleMaps.authConfig',
    GENERATE,
    gemini({ tools: [{ googleMaps: { authConfig: { apiKeyConfig: {} } } }] }),
  ],
  ['gs://bucket', 'contents[0].parts[0].fileData.fileUri', GENERATE, file('gs://bucket/a/b.pdf')],
  ['gs://bucket/a', 'fileUri', GENERATE, file('GS://bucket/a/b.pdf')],
  ['gs://bucket/a/', 'unknownMember.gcs', GENERATE, gemini({ unknownMember: { gcs: 'gs://bucket/a/b' } })],
  [
    'gs://bucket',
    'messages[0]',
    '/v1/chat/completions',
    {
      model: 'gemini-2.5-pro',
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'gs://bucket/a.png' } }] }],
    },
  ],
  [
    'gs://bucket',
    'messages[0]',
    '/v1/responses',
    {
      model: 'gemini-2.5-pro',
      input: [{ role: 'user', content: [{ type: 'input_file', file_url: 'gs://bucket/a.pdf' }] }],
    },
  ],
  [
    'gs://bucket',
    'messages[0]',
    '/v1/messages',
    {
      model: 'gemini-2.5-pro',
      max_tokens: 9,
      messages: [
        { role: 'user', content: [{ type: 'document', source: { type: 'url', url: 'gs://bucket/a.pdf' } }] },
      ],
    },
  ],
]

void t.test('Vertex AI', async (t) => {
  await check(t, { prefix: 'gemini-2.5-pro', settings: VERTEX }, ON_VERTEX)
})

void t.test('an object in a bucket reaches Vertex AI from each client format', async (t) => {
  const { cloud, gateway } = await startCloud(
    t,
    'gemini-2.5-pro',
    `${VERTEX}, allow_buckets: ['gs://bucket']`,
  )
  for (const [, , path, body] of ON_VERTEX.slice(-3)) {
    await post(gateway, path, body)
    const { contents } = JSON.parse(cloud.requests.at(-1)?.body.toString() ?? '') as {
      contents: { parts: { fileData: object }[] }[]
    }
    const isImage = path.includes('chat')
    const name = isImage ? 'a.png' : 'a.pdf'
    const mimeType = isImage ? 'image/png' : 'application/pdf'
    t.strictSame(contents[0]?.parts[0]?.fileData, { fileUri: `gs://bucket/${name}`, mimeType }, path)
  }
})

void t.test('other buckets, folders and spellings', async (t) => {
  const { cloud, gateway } = await startCloud(
    t,
    'gemini-2.5-pro',
    `${VERTEX}, allow_buckets: ['gs://bucket/docs', 's3://other'], allow_tools: '*'`,
  )
  for (const uri of [
    ...['gs://bucket/a.pdf', 'gs://bucket/docs2/a.pdf', 'gs://bucket2/docs/a.pdf', 's3://bucket/docs/a'],
    ...['gs://bucket/docs/../a.pdf', ' gs://bucket/docs/a.pdf', 'gs://Bucket/docs/a.pdf'],
  ]) {
    t.equal((await post(gateway, GENERATE, file(uri))).status, 400, uri)
  }
  const tools = [{ retrieval: {} }]
  t.equal((await post(gateway, GENERATE, gemini({ tools }))).status, 400, '* does not list it')
  t.equal(cloud.requests.length, 0)
  t.equal((await post(gateway, GENERATE, file('gs://bucket/docs/a.pdf'))).status, 200)
  const call = { functionCall: { name: 'f', args: { retrieval: 1, file: 'gs://x/y' } } }
  const response = { file: 'gs://x/y', guardrailConfig: {} }
  const contents = [
    HI,
    { role: 'model', parts: [call] },
    { role: 'user', parts: [{ functionResponse: { name: 'f', response } }] },
  ]
  const parameters = { type: 'object', properties: { retrieval: { type: 'string' } } }
  const functionDeclarations = [{ name: 'f', description: 'gs://x', parameters }]
  const own = { contents, tools: [{ functionDeclarations }, { googleSearch: {} }] }
  t.match(await post(gateway, GENERATE, own), { status: 200 }, 'texts and data of tools')
})

const CONVERSE = { messages: [{ role: 'user', content: [{ text: 'arn:aws:x s3://b' }] }] }
const part = (content: object): object => ({ messages: [{ role: 'user', content: [content] }] })
const NATIVE_BEDROCK = `${BEDROCK}, native_usd_per_request: 0, native: ['POST /model/*/converse']`

void t.test('Bedrock', async (t) => {
  const url = 's3://bucket/a.png'
  const image = { image: { format: 'png', source: { s3Location: { uri: url, bucketOwner: '1' } } } }
  const native = '/native/cloud/model/amazon.nova-lite-v1:0/converse'
  const cases: Case[] = [
    ['s3://bucket', 's3Location.uri', native, part(image)],
    [
      'guardrail_config',
      'guardrailConfig',
      native,
      { ...CONVERSE, guardrailConfig: { guardrailIdentifier: 'g' } },
    ],
    [
      'system_tool',
      'systemTool',
      native,
      { ...CONVERSE, toolConfig: { tools: [{ systemTool: { name: 'nova_grounding' } }] } },
    ],
    [
      'other',
      'additionalModelRequestFields.other',
      native,
      { ...CONVERSE, additionalModelRequestFields: { other: 'arn:aws:bedrock:eu-west-1:1:prompt/A' } },
    ],
    [
      's3://bucket',
      'messages[0]',
      '/v1/chat/completions',
      {
        model: 'amazon.nova-lite-v1:0',
        messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
      },
    ],
    [
      's3://bucket',
      'messages[0]',
      '/v1beta/models/amazon.nova-lite-v1:0:generateContent',
      { contents: [{ parts: [{ fileData: { fileUri: url, mimeType: 'image/png' } }] }] },
    ],
  ]
  for (const sharing of ['account', 'shared']) {
    await check(t, { prefix: 'amazon.', settings: `${NATIVE_BEDROCK}, native_sharing: ${sharing}` }, cases)
  }
  const { gateway } = await startCloud(t, 'amazon.', NATIVE_BEDROCK)
  const use = { toolUse: { toolUseId: 'a', name: 'f', input: { uri: url } } }
  const result = { toolResult: { toolUseId: 'a', content: [{ json: { uri: url } }] } }
  const messages = [
    ...CONVERSE.messages,
    { role: 'assistant', content: [use] },
    { role: 'user', content: [result] },
  ]
  t.equal((await post(gateway, native, { messages })).status, 200, 'data of tools')
  const twice = `{"guardrailConfig":{},"guardrailConfig":null,"messages":[]}`
  const headers = { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' }
  const res = await fetch(gateway.origin + native, { method: 'POST', headers, body: twice })
  t.equal(res.status, 400, 'a member twice')
})

void t.test('Claude on Bedrock', async (t) => {
  const settings = `platform: bedrock, dialect: anthropic, region: eu-west-1, auth: ${AWS_AUTH}`
  const body = {
    model: 'eu.anthropic.x',
    max_tokens: 9,
    messages: USER,
    'amazon-bedrock-guardrailConfig': { tagSuffix: 'a' },
  }
  const list = 'amazon_bedrock_guardrail_config'
  await check(t, { prefix: 'eu.anthropic.', settings }, [[list, 'guardrailConfig', '/v1/messages', body]])
})

void t.test('Azure', async (t) => {
  const chat = (more: object): object => ({ model: 'gpt-5.4', messages: USER, ...more })
  const responses = (more: object): object => ({ model: 'gpt-5.4', input: 'hi', ...more })
  const search = {
    type: 'azure_search',
    parameters: { endpoint: 'https://x', authentication: { type: 'system_assigned_managed_identity' } },
  }
  const index = { project_connection_id: 'c', index_name: 'i' }
  const cases: Case[] = [
    ['data_sources', 'data_sources', '/v1/chat/completions', chat({ data_sources: [search] })],
    ['data_sources', 'dataSources', '/v1/chat/completions', chat({ dataSources: [search] })],
    [
      'azure_ai_search',
      'tools[0]',
      '/v1/responses',
      responses({ tools: [{ type: 'azure_ai_search', azure_ai_search: { indexes: [index] } }] }),
    ],
    [
      'mcp project_connection_id',
      'tools[0].project_connection_id',
      '/v1/responses',
      responses({
        tools: [{ type: 'mcp', server_label: 'a', server_url: 'https://x', project_connection_id: 'c' }],
      }),
    ],
    ['agent', 'agent', '/v1/responses', responses({ agent: { name: 'a' } })],
  ]
  await check(t, { prefix: 'gpt-5.4', settings: AZURE }, cases)
})

void t.test('an empty list of data sources', async (t) => {
  const { cloud, gateway } = await startCloud(t, 'gpt-5.4', AZURE)
  const refused = await post(gateway, '/v1/chat/completions', {
    model: 'gpt-5.4',
    messages: USER,
    data_sources: [],
  })
  t.match(refused, { status: 400 })
  t.equal(cloud.requests.length, 0)
})

void t.test('lines of a batch', async (t) => {
  const rules = `native: ['POST /openai/v1/files', 'POST /openai/v1/batches']`
  const scene: CloudScene = await startCloud(t, 'gpt-5.4', `${AZURE}, native_usd_per_request: 0, ${rules}`)
  const { gateway, cloud } = scene
  const body = { model: 'gpt-5.4', messages: USER, data_sources: [{ type: 'azure_search' }] }
  const data = new FormData()
  data.append('purpose', 'batch')
  data.append(
    'file',
    new Blob([`${JSON.stringify({ custom_id: '1', method: 'POST', url: '/chat/completions', body })}\n`]),
    'a.jsonl',
  )
  const res = await fetch(`${gateway.origin}/native/cloud/openai/v1/files`, {
    ...{ method: 'POST', body: data },
    headers: { authorization: `Bearer ${gateway.secret}` },
  })
  t.equal(res.status, 400)
  t.match(await res.text(), /Line 1: .*data_sources.*allow_tools/)
  t.equal(cloud.requests.length, 0)
})

void t.test('an upstream of no cloud reads no bucket', async (t) => {
  const { cloud, gateway } = await startCloud(t, 'gpt-own', 'dialect: openai-chat, api_key: k')
  const image = { type: 'image_url', image_url: { url: 'gs://bucket/a.png' } }
  const refused = await post(gateway, '/v1/chat/completions', {
    model: 'gpt-own',
    messages: [{ role: 'user', content: [image] }],
  })
  t.match(refused, { status: 400, text: /messages\[0\]/ })
  t.equal(cloud.requests.length, 0)
})
