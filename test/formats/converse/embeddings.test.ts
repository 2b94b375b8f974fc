/**
 * Goal: embeddings on Bedrock have the body of the model's vendor, and its vectors are read.
 * Method: one request for each vendor, compared with recorded ones; every recorded reply is decoded.
 */
import t from 'tap'
import { objectOf, type JsonObject } from '../../../src/base/json.js'
import type { ChatRequest, EmbeddingInput, Vectors } from '../../../src/formats/chat/request.js'
import { bedrockEmbeddings } from '../../../src/formats/converse/embeddings.js'
import { atOnce } from '../../../src/base/steps.js'
import { outlineOf } from '../../../src/formats/wire/embedding-vectors.js'
import { fixtures, skipWithoutFixtures } from '../../helpers/fixtures.js'
import { refusalOf } from '../collect-events.js'
import { encodeWith, sampleRequest } from '../sample-request.js'

const TITAN = 'amazon.titan-embed-text-v2:0'
const COHERE = 'cohere.embed-v4:0'
const NOVA = 'amazon.nova-2-multimodal-embeddings-v1:0'

function encode(
  model: string,
  inputs: readonly EmbeddingInput[],
  dimensions?: number,
  rest: ChatRequest['rest'] = {},
): { body: JsonObject; lost: string[] } {
  const embedding = { inputs, base64: false, ...(dimensions !== undefined && { dimensions }) }
  const facts = { id: model, family: 'amazon', createdAtSeconds: 0 }
  return encodeWith(bedrockEmbeddings, sampleRequest({ model, embedding, rest }), facts)
}

function read(body: string): Vectors | null {
  const outline = atOnce(outlineOf(body))
  const found = outline === null ? null : (bedrockEmbeddings.readVectors?.(outline) ?? null)
  return found !== null && 'vectors' in found ? found : null
}

void t.test('the body of each vendor', (t) => {
  t.same(encode(TITAN, ['hello'], 256).body, { inputText: 'hello', dimensions: 256 })
  t.same(encode(TITAN, ['hello']).body, { inputText: 'hello' })
  t.same(encode(COHERE, ['a', 'b'], 512, { input_type: 'search_query' }).body, {
    texts: ['a', 'b'],
    input_type: 'search_query',
    output_dimension: 512,
  })
  t.same(encode(COHERE, ['a']).body, { texts: ['a'], input_type: 'search_document' })
  t.same(encode(NOVA, ['hello'], 256).body, {
    taskType: 'SINGLE_EMBEDDING',
    singleEmbeddingParams: {
      embeddingPurpose: 'GENERIC_INDEX',
      text: { truncationMode: 'NONE', value: 'hello' },
      embeddingDimension: 256,
    },
  })
  t.same(encode(TITAN, ['a'], undefined, { input_type: 'x', other: 1 }).lost, [
    'input_type: no-equivalent',
    'other: no-equivalent',
  ])
  t.equal(bedrockEmbeddings.target(TITAN, false).path, '/model/amazon.titan-embed-text-v2%3A0/invoke')
  t.end()
})

void t.test('what a model does not take is refused', (t) => {
  const many = Array.from({ length: 97 }, () => 'a')
  for (const refusal of [
    refusalOf(() => encode(TITAN, ['a', 'b'])),
    refusalOf(() => encode(NOVA, ['a', 'b'])),
    refusalOf(() => encode(COHERE, many)),
    refusalOf(() => encode(COHERE, [[1, 2]])),
  ]) {
    t.equal(refusal.kind, 'untranslatable')
    t.equal(refusal.param, 'input')
  }
  t.end()
})

void t.test('vectors in the forms of the vendors', (t) => {
  const one = { form: 'json' as const, text: '[0.5,1]' }
  const two = { form: 'json' as const, text: '[1,2]' }
  t.same(read('{"embedding":[0.5,1],"inputTextTokenCount":5}'), {
    vectors: [one],
    usage: { input: 5, output: 0 },
    model: null,
  })
  t.same(read('{"embeddings":[[0.5,1],[1,2]]}')?.vectors, [one, two])
  t.same(read('{"embeddings":{"float":[[0.5,1],[1,2]]}}')?.vectors, [one, two])
  t.same(read('{"embeddings":[{"embedding":[0.5,1],"embeddingType":"TEXT"}]}')?.vectors, [one])
  t.equal(read('{"embeddings":[]}'), null)
  t.equal(read('{"message":"no"}'), null)
  t.end()
})

void t.test('recorded replies', skipWithoutFixtures(), (t) => {
  const found = fixtures({ provider: 'bedrock', api: 'invoke', status: 200 }).filter(({ url }) =>
    url.includes('embed'),
  )
  t.ok(found.length > 10)
  for (const { response_body: body, name } of found) {
    const vectors = read(body)?.vectors ?? []
    t.equal(vectors.length, 1, name)
    const numbers = JSON.parse(vectors[0]?.text ?? '[]') as number[]
    const { embedding, embeddings } = objectOf(JSON.parse(body) as unknown)
    t.match(JSON.stringify(embedding ?? embeddings), JSON.stringify(numbers), name)
    t.ok(numbers.length >= 256, name)
  }
  t.end()
})
