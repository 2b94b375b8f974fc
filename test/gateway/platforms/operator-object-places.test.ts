/**
 * Goal: nothing that a cloud reads or calls with the gateway's identity reaches it from any place of a
 * request in any client format, and texts that look like an address are not refused.
 * Method: each such object is put at each place of a request of each format with many members; the request
 * is refused, or what the upstream gets does not have the object, except in data of the client's own tools.
 * Each day a fourth of the objects, the long suite all.
 */
import t from 'tap'
import { isObject, type JsonObject, type JsonValue } from '../../../src/base/json.js'
import { GatewayError } from '../../../src/errors.js'
import type { WireFormat } from '../../../src/formats/dialect.js'
import { resolveEndpoint, upstreamCodecOf } from '../../../src/formats/index.js'
import { ordinaryModel, reportNative, type DialectName } from '../../../src/formats/dialect.js'
import {
  refusalOfBody,
  refusalOfCall,
  type CloudRules,
} from '../../../src/gateway/objects/operator-objects.js'
import { parseObject } from '../../../src/formats/wire/json/parse-body.js'
import { memberOf, membersOf, type Members } from '../../../src/policy/request-members.js'
import { isToday } from '../../helpers/long-suite.js'
import { skipWithoutFixtures } from '../../helpers/fixtures.js'
import {
  BODIES,
  changed,
  NEW_MEMBER,
  placesIn,
  recordedRequests,
  valueAt,
} from '../../policy/request-places.js'

type CloudName = 'vertex' | 'bedrock' | 'azure'

const PLATFORMS = {
  vertex: { name: 'vertex', project: 'acme', location: 'global' },
  bedrock: { name: 'bedrock', region: 'eu-west-1' },
  azure: { name: 'azure', apiVersion: null },
} as unknown as Readonly<Record<CloudName, NonNullable<CloudRules['config']['platform']>>>

function rulesOf(cloud: CloudName): CloudRules {
  const config = {
    ...{ name: 'cloud', preset: null, baseUrl: 'https://cloud.example', allowBuckets: [], allowTools: ['*'] },
    ...{ platform: PLATFORMS[cloud], native: { sharing: 'shared' } },
  } as unknown as CloudRules['config']
  return { config, namesModel: () => false }
}

/** The formats of the upstreams of a cloud. */
const DIALECTS: Readonly<Record<CloudName, readonly DialectName[]>> = {
  vertex: ['gemini', 'anthropic', 'openai-chat'],
  bedrock: ['converse', 'anthropic', 'openai-chat'],
  azure: ['openai-chat', 'openai-responses', 'anthropic'],
}

const BUCKET_URL = { vertex: 'gs://operator/x.pdf', bedrock: 's3://operator/x.pdf', azure: '' } as const
/** What the cloud reads or calls. */
const OBJECTS: Readonly<Record<CloudName, readonly JsonObject[]>> = {
  vertex: [
    { fileData: { fileUri: BUCKET_URL.vertex, mimeType: 'application/pdf' } },
    { file_data: { file_uri: BUCKET_URL.vertex } },
    { type: 'image_url', image_url: { url: BUCKET_URL.vertex } },
    { retrieval: { vertexAiSearch: { datastore: 'projects/operator/x' } } },
    { tools: [{ retrieval: { externalApi: { endpoint: 'https://x.example' } } }] },
    { modelArmorConfig: { promptTemplateName: 'projects/operator/x' } },
    { cachedContent: 'projects/operator/locations/global/cachedContents/1' },
    { apiKeySecretVersion: 'projects/operator/secrets/x/versions/1' },
  ],
  bedrock: [
    { image: { format: 'png', source: { s3Location: { uri: BUCKET_URL.bedrock } } } },
    { guardrailConfig: { guardrailIdentifier: 'operator' } },
    { 'amazon-bedrock-guardrailConfig': { tagSuffix: 'operator' } },
    { systemTool: { name: 'operator' } },
    { promptArn: 'arn:aws:bedrock:eu-west-1:1:prompt/operator' },
    { anything: 'arn:aws:s3:::operator' },
  ],
  azure: [
    { data_sources: [{ type: 'azure_search', parameters: { endpoint: 'https://operator.example' } }] },
    { connection_id: 'operator' },
    { agent: { name: 'operator', type: 'agent_reference' } },
    { input_blob: 'https://operator.blob.core.windows.net/x.jsonl' },
    { output_folder: { url: 'https://operator.blob.core.windows.net/x' } },
  ],
}

const CONVERSE: JsonObject = {
  system: [{ text: 'Be brief.' }],
  messages: [
    { role: 'user', content: [{ text: 'Weather?' }, { document: { name: 'd', source: { text: 'Dry.' } } }] },
    { role: 'assistant', content: [{ toolUse: { toolUseId: 't', name: 'look', input: { city: 'B' } } }] },
    {
      role: 'user',
      content: [{ toolResult: { toolUseId: 't', content: [{ text: 'sun' }, { json: { a: 'b' } }] } }],
    },
  ],
  toolConfig: {
    tools: [{ toolSpec: { name: 'look', description: 'Looks', inputSchema: { json: { type: 'object' } } } }],
    toolChoice: { auto: {} },
  },
  inferenceConfig: { maxTokens: 9, stopSequences: ['END'] },
  additionalModelRequestFields: { top_k: 1, note: 'x' },
  requestMetadata: { a: 'b' },
}

/** Data of the client's own tools, schemas and labels, in bodies that upstreams get. */
const OWN_DATA = new RegExp(
  String.raw`(?:^|\.)(?:function_?call\.args|tool_?call\.args|function_?response\.response` +
    String.raw`|function_?declarations(?:\.\d+)?\.(?:parameters|response)|tools\.\d+\.(?:function\.)?(?:input_schema|parameters)` +
    String.raw`|functions\.\d+\.parameters|tool_?spec\.input_?schema|tool_?use\.input|tool_?result\.content\.\d+\.json|content\.\d+\.input` +
    String.raw`|function\.arguments|arguments|json_schema(?:\.schema)?|schema|response_?(?:json_?)?schema)(?:\.|$)`,
  'i',
)

const LABELS = /^(?:metadata|requestMetadata)$/

interface Found {
  readonly path: string
  readonly what: string
}

/** The objects of the operator that the body has outside of texts and data. */
function* foundIn(value: JsonValue, keys: ReadonlySet<string>, path = ''): Generator<Found> {
  if (OWN_DATA.test(path)) return
  if (Array.isArray(value)) {
    for (const [at, item] of value.entries()) yield* foundIn(item, keys, `${path}.${at}`)
  } else if (isObject(value)) {
    for (const [key, item = null] of Object.entries(value)) {
      const at = path === '' ? key : `${path}.${key}`
      // A label is a text under a name of the client's choice.
      if (LABELS.test(path) && typeof item === 'string') continue
      const isMark = keys.has(key) && /operator|x\.example/.test(JSON.stringify(item))
      if (isMark && !OWN_DATA.test(at)) yield { path: at, what: key }
      else yield* foundIn(item, keys, at)
    }
  }
}

/** Copies of the body with the object at each place: as a value, in a list, as members, as a further item. */
function* placed(body: JsonObject, object: JsonObject): Generator<[place: string, body: JsonObject]> {
  for (const place of placesIn(body)) {
    const name = place.join('.')
    yield [name, changed(body, place, object)]
    yield [`${name}[]`, changed(body, place, [object])]
    const holderPlace = place.slice(0, -1)
    const holder = valueAt(body, holderPlace)
    if (holderPlace.length > 0 && Array.isArray(holder)) {
      yield [`${holderPlace.join('.')}+`, changed(body, holderPlace, [...holder, object])]
    }
    if (place.at(-1) === NEW_MEMBER && isObject(holder)) {
      const more = { ...holder, ...object }
      yield [`${holderPlace.join('.')}{}`, holderPlace.length === 0 ? more : changed(body, holderPlace, more)]
      // Lists of the holder get the object as an item.
      for (const [key, list] of Object.entries(holder)) {
        if (Array.isArray(list))
          yield [
            `${[...holderPlace, key].join('.')}+`,
            changed(body, [...holderPlace, key], [...list, object]),
          ]
      }
    }
  }
}

interface Sent {
  readonly refusal: GatewayError | null
  /** What the upstream gets; null if the request is refused. */
  readonly body: JsonObject | null
}

/** The request at an upstream of a cloud. */
function sent(
  path: string,
  body: JsonObject,
  { cloud, dialect }: { cloud: CloudName; dialect: DialectName },
): Sent {
  const resolved = resolveEndpoint('POST', path)
  if (resolved === null) throw new Error(`no endpoint ${path}`)
  const { clientCodec, endpoint, wire } = resolved
  try {
    const request = clientCodec.decodeRequest(structuredClone(body), endpoint, {})
    const target = { wire: dialect as WireFormat, dialect, quirks: { drop: [] } }
    const refusal = refusalOfCall({ wire, request, body }, target, rulesOf(cloud))
    if (refusal !== null) return { refusal, body: null }
    if (wire === dialect) return { refusal, body }
    const losses = { drop: () => undefined }
    reportNative(request, losses)
    const facts = ordinaryModel('m', dialect)
    return { refusal, body: upstreamCodecOf(dialect)?.encodeRequest(request, facts, losses) ?? null }
  } catch (error) {
    if (error instanceof GatewayError) return { refusal: error, body: null }
    throw error
  }
}

function keysOf(object: JsonObject): Set<string> {
  const keys = new Set<string>()
  const visit = (value: JsonValue): void => {
    if (Array.isArray(value)) value.forEach(visit)
    else if (isObject(value)) {
      for (const [key, item = null] of Object.entries(value)) {
        if (!['type', 'name', 'tools', 'parameters', 'format', 'mimeType', 'tagSuffix'].includes(key))
          keys.add(key)
        visit(item)
      }
    }
  }
  visit(object)
  // As other formats write it.
  for (const key of ['fileUri', 'uri', 'url']) keys.add(key)
  return keys
}

for (const cloud of ['vertex', 'bedrock', 'azure'] as const) {
  void t.test(`no object of the operator reaches ${cloud}`, (t) => {
    let refused = 0
    let cases = 0
    const failed = new Set<string>()
    for (const [number, object] of OBJECTS[cloud].entries()) {
      if (!isToday(number, 4)) continue
      const keys = keysOf(object)
      for (const [path, body] of BODIES) {
        for (const [place, copy] of placed(body, object)) {
          for (const dialect of DIALECTS[cloud]) {
            const { refusal, body: upstream } = sent(path, copy, { cloud, dialect })
            cases += 1
            if (refusal !== null) refused += 1
            for (const found of upstream === null ? [] : foundIn(upstream, keys)) {
              failed.add(`${path} ${place} → ${dialect}: ${found.path}: ${JSON.stringify(object)}`)
            }
          }
        }
      }
      for (const [path, body] of [...BODIES, ['native Converse', CONVERSE] as const]) {
        for (const [place, copy] of placed(body, object)) {
          if (refusalOfBody(copy, rulesOf(cloud)) !== null) continue
          for (const found of foundIn(copy, keys))
            failed.add(`native ${path} ${place}: ${found.path}: ${JSON.stringify(object)}`)
        }
      }
    }
    t.comment(`${cases} cases, ${refused} refused`)
    t.ok(refused > 300, 'most are refused')
    t.strictSame([...failed].slice(0, 40), [], `${failed.size} reach it`)
    t.end()
  })
}

/** The kind of the string at a place, by the table of guardrails; undefined if it is in no table. */
function kindAt(members: Members, place: readonly string[]): string | undefined {
  let at: Members[string] | undefined = members
  for (const key of place) {
    if (/^\d+$/.test(key)) continue
    if (at === undefined || typeof at === 'string') return at
    const inner: Members = Array.isArray(at) ? (at as readonly ['text', Members])[1] : (at as Members)
    at = memberOf(inner, key)
  }
  return typeof at === 'string' ? at : Array.isArray(at) ? 'text' : undefined
}

void t.test('texts that are like an address are not refused', (t) => {
  const clouds = [
    ['vertex', 'gemini', 'gs://bucket/a is the place'],
    ['vertex', 'anthropic', 'projects/a is the folder'],
    ['bedrock', 'converse', 's3://bucket/a is the place'],
    ['bedrock', 'anthropic', 'arn:aws:s3:::a is a name'],
    ['vertex', 'openai-chat', 'gs://bucket/a'],
  ] as const
  let texts = 0
  for (const [path, body] of BODIES) {
    const wire = resolveEndpoint('POST', path)?.wire
    if (wire === undefined) throw new Error(path)
    for (const place of placesIn(body)) {
      const kind = kindAt(membersOf(wire), place)
      const isHarmless =
        ['text', 'value', 'schema', 'unjudged'].includes(kind ?? '') || place[0] === 'metadata'
      if (!isHarmless || typeof valueAt(body, place) !== 'string') continue
      texts += 1
      for (const [cloud, , text] of clouds) {
        // A schema has no other types.
        const copy = changed(body, place, place.at(-1) === 'arguments' ? JSON.stringify({ a: text }) : text)
        const refusal = refusalOfBody(copy, rulesOf(cloud))
        t.equal(refusal?.message, undefined, `${path} ${place.join('.')} at ${cloud}`)
      }
    }
  }
  const titles: JsonObject = {
    messages: [
      {
        role: 'user',
        content: [
          {
            type: 'search_result',
            source: 's3://docs/a.pdf',
            title: 's3://docs/a.pdf',
            content: [{ type: 'text', text: 'x' }],
          },
          { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'arn:aws:s3:::a' } },
        ],
      },
    ],
  }
  t.equal(refusalOfBody(titles, rulesOf('bedrock'))?.message, undefined, 'results of a search of the client')
  const converse = { ...CONVERSE, requestMetadata: { a: 'arn:aws:x' } }
  t.equal(refusalOfBody(converse, rulesOf('bedrock'))?.message, undefined, 'labels of Converse')
  t.ok(texts > 25, `${texts} texts`)
  t.end()
})

void t.test('an address that is a long text, and one in an earlier turn, are found', (t) => {
  const uri = `${' '.repeat(5_000)}gs://operator/x.pdf`
  const parts = [{ fileData: { fileUri: uri, mimeType: 'application/pdf' } }]
  const raw = Buffer.from(JSON.stringify({ contents: [{ role: 'user', parts }] }))
  t.match(refusalOfBody(parseObject(raw).value, rulesOf('vertex'))?.message, /fileUri.*allow_buckets/)
  const text = Buffer.from(JSON.stringify({ contents: [{ role: 'user', parts: [{ text: uri }] }] }))
  t.equal(refusalOfBody(parseObject(text).value, rulesOf('vertex')), null)
  const body = { model: 'm', input: 'Hi', previous_response_id: 'resp_1' }
  const resolved = resolveEndpoint('POST', '/v1/responses')
  if (resolved === null) throw new Error('no endpoint')
  const request = resolved.clientCodec.decodeRequest({ model: 'm', input: 'Hi' }, resolved.endpoint, {})
  const earlier = {
    type: 'message',
    role: 'user',
    content: [{ type: 'input_text', text: 'a', connection_id: 'c' }],
  }
  const history = { members: ['input'], bodyFor: () => ({ model: 'm', input: [earlier, 'Hi'] }) }
  const target = { wire: resolved.wire, dialect: 'openai-responses', quirks: { drop: [] } } as const
  const refusal = refusalOfCall({ wire: resolved.wire, request, body, history }, target, rulesOf('azure'))
  t.match(refusal?.message, /connection_id.*allow_tools/)
  t.end()
})

/** What recordings name on purpose: tools of other vendors, files in buckets, a template of Model Armor. */
const RECORDED =
  /`(?:tools\[\d+\]|modelArmorConfig|[\w.[\]]*file_?[dD]ata\.file_?[uU]ri|[\w.[\]]*_url\.url)` names/

void t.test('no recorded request is refused for an address', skipWithoutFixtures(), (t) => {
  let requests = 0
  for (const { path, body } of recordedRequests()) {
    requests += 1
    for (const cloud of ['vertex', 'bedrock'] as const) {
      const refusal = refusalOfBody(body, rulesOf(cloud))
      if (refusal !== null && !RECORDED.test(refusal.message)) t.fail(`${path}: ${refusal.message}`)
    }
  }
  t.ok(requests > 100)
  t.end()
})
