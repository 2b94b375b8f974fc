/**
 * Goal: a request that `plan` rebuilds from a recorded sketch has the same losses and refusals as the
 * original request.
 * Method: each concept of `docs/reference/dialects.md` is decoded, sketched, sent through JSON, rebuilt
 * and translated for every dialect; its losses and refusals are compared with those of the original.
 */
import t from 'tap'
import type { JsonObject } from '../../../src/base/json.js'
import type { ChatRequest } from '../../../src/formats/chat/request.js'
import { CLIENTS } from '../../../docs/generate/dialect-matrix/messages-clients.js'
import { COLUMNS } from '../../../docs/generate/dialect-matrix/outcomes.js'
import { REQUEST_GROUPS } from '../../../src/gateway/explain/request-concepts.js'
import { factsFor } from '../../../src/config/catalogue.js'
import { loadConfig } from '../../../src/config/load-config.js'
import { resolveEndpoint, upstreamCodecOf, type ResolvedEndpoint } from '../../../src/formats/index.js'
import { GatewayError } from '../../../src/errors.js'
import { reportNative } from '../../../src/formats/dialect.js'
import { LossList } from '../../../src/formats/losses.js'
import { requestShapeOf, type RequestShape } from '../../../src/gateway/report/recent-requests.js'
import { sampleRequest } from '../../../src/cli/plan/sample-request.js'

const loaded = loadConfig('config/gateway.yaml', {})
if (!loaded.ok) throw new Error('the shipped configuration is good')
const { catalogue } = loaded

const CHAT = {
  title: 'Chat completions',
  path: '/v1/chat/completions',
  plain: { messages: [{ role: 'user', content: 'Hello.' }] },
  concepts: REQUEST_GROUPS.flatMap(({ concepts }) => concepts),
}

/** The fields of a request that are lost for an upstream of the dialect, or the field that it refuses. */
function fateOf(request: ChatRequest, at: ResolvedEndpoint, column: (typeof COLUMNS)[number]): object {
  const upstreamCodec = upstreamCodecOf(column.dialect)
  if (upstreamCodec === null) throw new Error(`no ${column.dialect}`)
  const losses = new LossList()
  try {
    if (at.dialect !== column.dialect) reportNative(request, losses)
    upstreamCodec.encodeRequest(request, factsFor(catalogue, column.model), losses)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return { refused: topOf(error.wire.param ?? '') }
  }
  return { lost: [...losses.paths].sort() }
}

function topOf(path: string): string {
  return path.replace(/\[\d+\]/g, '').replace(/\..*$/, '')
}

for (const { title, path, plain, concepts } of [CHAT, ...CLIENTS]) {
  void t.test(title, (t) => {
    const at = resolveEndpoint('POST', path.replace('{model}', 'm'))
    if (at === null) throw new Error(`no endpoint ${path}`)
    for (const { name, base, members } of concepts) {
      for (const column of COLUMNS) {
        const body: JsonObject = { model: column.model, ...plain, ...base, ...members }
        const request = at.clientCodec.decodeRequest(body, at.endpoint)
        const sketch = JSON.parse(JSON.stringify(requestShapeOf(request))) as RequestShape
        const { model, stream } = request
        const rebuilt = sampleRequest({ model, stream, sketch })
        t.same(fateOf(rebuilt, at, column), fateOf(request, at, column), `${name} at ${column.dialect}`)
      }
    }
    t.end()
  })
}

void t.test('a sketch has no contents of the request', (t) => {
  const at = resolveEndpoint('POST', '/v1/chat/completions')
  if (at === null) throw new Error('no endpoint')
  const secret = 'the secret words'
  const body: JsonObject = {
    model: 'gpt-5.4',
    user: secret,
    stop: [secret],
    metadata: { name: secret },
    prediction: { type: 'content', content: secret },
    [secret]: secret,
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'secret', schema: { type: 'object', title: secret } },
    },
    tools: [{ type: 'function', function: { name: 'secret', description: secret } }],
    messages: [
      { role: 'system', content: secret },
      {
        role: 'user',
        content: [
          { type: 'text', text: secret },
          { type: 'image_url', image_url: { url: 'https://example.com/secret.png' } },
          {
            type: 'file',
            file: { filename: 'secret.pdf', file_data: 'data:application/pdf;base64,c2VjcmV0' },
          },
        ],
      },
      {
        role: 'assistant',
        tool_calls: [
          {
            id: 'secret',
            type: 'function',
            function: { name: 'secret', arguments: '{"secret":1}' },
          },
        ],
      },
      { role: 'tool', tool_call_id: 'secret', content: secret },
    ],
  }
  const text = JSON.stringify(requestShapeOf(at.clientCodec.decodeRequest(body, at.endpoint)))
  t.notMatch(text, /secret|c2Vj/)
  t.match(text, /image url/)
  t.match(text, /file base64 application\/pdf/)
  t.end()
})

void t.test('the sketch of a conversation of 10,000 turns is small', (t) => {
  const at = resolveEndpoint('POST', '/v1/chat/completions')
  if (at === null) throw new Error('no endpoint')
  const messages = Array.from({ length: 10_000 }, (_, index) => ({
    role: index % 2 === 0 ? 'user' : 'assistant',
    content: `turn ${index}`,
  }))
  const rest = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`field_${at}`, 'x'.repeat(100)]))
  const request = at.clientCodec.decodeRequest({ model: 'gpt-5.4', messages, ...rest }, at.endpoint)
  const text = JSON.stringify(requestShapeOf(request))
  t.ok(text.length < 2_000, `${text.length} characters`)
  t.end()
})
