/**
 * Goal: bytes pass unchanged between a Gemini client and a Gemini upstream; otherwise errors have Google's
 * format, failed arrays have no end, and state of other providers' models is removed.
 * Method: a real gateway, and an upstream that keeps the received bytes and replies with given bytes.
 */
import { request as httpRequest } from 'node:http'
import t, { type Test } from 'tap'
import { arrayOf, objectOf, type JsonObject } from '../../../src/base/json.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { startRawUpstream, type Canned, type RawUpstream } from '../../helpers/raw-upstream.js'

const CHUNKS = [
  'data: {"candidates": [{"content": {"parts": [{"text": "Gr\u00fc\u00dfe "}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 5,"totalTokenCount": 5},"modelVersion": "gemini-x","responseId": "r1"}\r\n\r\n',
  'data: {"candidates": [{"content": {"parts": [{"text": "\ud83d\udc0b"}],"role": "model"},"finishReason": "STOP","index": 0}],"usageMetadata": {"promptTokenCount": 5,"candidatesTokenCount": 7,"totalTokenCount": 12},"modelVersion": "gemini-x","responseId": "r1"}\r\n\r\n',
]
const STREAM: Canned = { type: 'text/event-stream', chunks: CHUNKS }
const BODY = { contents: [{ parts: [{ text: 'Hello' }] }] }

interface Scene {
  readonly gateway: TestGateway
  readonly google: RawUpstream
  readonly post: (path: string, body?: unknown) => Promise<Response>
}

async function scene(t: Test, answer: Canned): Promise<Scene> {
  const google = await startRawUpstream(t, () => answer)
  const gateway = await startGateway(t, { upstreams: { gemini: `${google.origin}/v1beta` } })
  const post = (path: string, body: unknown = BODY): Promise<Response> =>
    fetch(`${gateway.origin}${path}`, {
      method: 'POST',
      headers: { 'x-goog-api-key': gateway.secret, 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  return { gateway, google, post }
}

const GENERATE = '/v1beta/models/gemini-2.5-flash:generateContent'
const STREAMING = '/v1beta/models/gemini-2.5-flash:streamGenerateContent'

void t.test('a stream passes as events or as an array, and its counts are kept', async (t) => {
  const { gateway, google, post } = await scene(t, STREAM)
  const events = await post(`${STREAMING}?alt=sse`)
  t.equal(events.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  t.equal(await events.text(), CHUNKS.join(''))
  t.equal(google.requests.at(-1)?.url, `${STREAMING}?alt=sse`)
  for (const path of [STREAMING, `${STREAMING}?alt=json`, STREAMING.replace('v1beta', 'v1')]) {
    const array = await post(path)
    t.match(array.headers.get('content-type'), /^application\/json/)
    const text = await array.text()
    t.equal(text, `[${CHUNKS.map((chunk) => chunk.slice(6).trim()).join(',\n')}]`)
    t.equal(google.requests.at(-1)?.url, `${STREAMING}?alt=sse`, 'the upstream gets a request for events')
  }
  t.match(JSON.stringify(gateway.lines), /"input_tokens":5/)
  t.match(JSON.stringify(gateway.lines), /"output_tokens":7/)
})

void t.test('a key in the query is accepted and not logged', async (t) => {
  const { gateway, google } = await scene(t, STREAM)
  const url = `${gateway.origin}${STREAMING}?alt=sse&key=${gateway.secret}`
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(BODY),
  })
  t.equal(response.status, 200)
  await response.text()
  t.notMatch(JSON.stringify(gateway.lines), new RegExp(gateway.secret))
  t.notMatch(JSON.stringify(google.requests.at(-1)?.headers), new RegExp(gateway.secret))
  t.notMatch(google.requests.at(-1)?.url, /key=/)
})

void t.test("an upstream's error before the stream keeps its message", async (t) => {
  const error = { code: 400, message: 'Add a user turn.', status: 'FAILED_PRECONDITION' }
  const { post } = await scene(t, {
    status: 400,
    type: 'application/json',
    chunks: [JSON.stringify({ error })],
  })
  for (const path of [GENERATE, STREAMING, `${STREAMING}?alt=sse`]) {
    const response = await post(path)
    t.equal(response.status, 400)
    const body = objectOf(await response.json())
    t.match(body['error'], error)
    t.match(objectOf(body['error'])['details'], [{ reason: 'upstream_rejected', domain: 'sluice' }])
  }
})

/** The body up to the end of its connection. */
function broken(url: string, key: string): Promise<{ text: string; whole: boolean }> {
  return new Promise((resolve, reject) => {
    const headers = { 'x-goog-api-key': key, 'content-type': 'application/json' }
    const req = httpRequest(url, { method: 'POST', headers }, (res) => {
      let text = ''
      res.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      res.on('error', () => undefined)
      res.on('close', () => resolve({ text, whole: res.complete }))
    })
    req.on('error', reject)
    req.end(JSON.stringify(BODY))
  })
}

void t.test('a truncated stream ends with an error, and an array without its bracket', async (t) => {
  const { gateway } = await scene(t, { ...STREAM, chunks: CHUNKS.slice(0, 1), cut: true })
  const array = await broken(`${gateway.origin}${STREAMING}`, gateway.secret)
  t.equal(array.whole, false)
  t.notOk(array.text.trimEnd().endsWith(']'))
  const elements = arrayOf(JSON.parse(`${array.text}]`)).map(objectOf)
  t.equal(elements.length, 2)
  t.match(elements[1], { error: { code: 502, status: 'UNAVAILABLE' } })
  const events = await broken(`${gateway.origin}${STREAMING}?alt=sse`, gateway.secret)
  t.equal(events.whole, false)
  t.ok(events.text.startsWith(CHUNKS[0] ?? ''))
  t.match(events.text, /data: \{"error":\{"code":502,/)
})

void t.test("reasoning state of another provider's model does not reach Google", async (t) => {
  const reply = { candidates: [{ content: { parts: [{ text: 'Yes' }] }, finishReason: 'STOP' }] }
  const { gateway, google, post } = await scene(t, {
    type: 'application/json',
    chunks: [JSON.stringify(reply)],
  })
  const tools = [{ functionDeclarations: [{ name: 'get_time' }] }]
  const generationConfig = { thinkingConfig: { thinkingLevel: 'high', includeThoughts: true } }
  const contents: JsonObject[] = [{ role: 'user', parts: [{ text: 'Use get_time' }] }]
  const claude = await post('/v1beta/models/claude-opus-4-8:generateContent', {
    contents,
    tools,
    generationConfig,
  })
  const modelTurn = objectOf(objectOf(arrayOf(objectOf(await claude.json())['candidates'])[0])['content'])
  t.match(JSON.stringify(modelTurn), /"thought":true,"thoughtSignature":"c2x1aWNl/)
  const call = arrayOf(modelTurn['parts'])
    .map(objectOf)
    .find(({ functionCall }) => functionCall)
  const functionResponse = { name: 'get_time', response: { output: 'noon' } }
  contents.push(modelTurn, { role: 'user', parts: [{ functionResponse }] })
  const onward = await post('/v1beta/models/gemini-3.5-flash:generateContent', { contents, tools })
  t.equal(onward.status, 200)
  t.equal(onward.headers.get('x-sluice-lost'), 'contents.thoughtSignature')
  const sent = objectOf(JSON.parse(google.requests.at(-1)?.body.toString() ?? ''))
  t.same(sent['contents'], [
    contents[0],
    {
      role: 'model',
      parts: [
        {
          functionCall: objectOf(call)['functionCall'],
          thoughtSignature: 'skip_thought_signature_validator',
        },
      ],
    },
    contents[2],
  ])
  const back = await post('/v1beta/models/claude-opus-4-8:generateContent', {
    contents,
    tools,
    generationConfig,
  })
  t.equal(back.headers.get('x-sluice-lost'), null, 'and Claude gets its own signature back')
  t.match(JSON.stringify(gateway.emulator.ledger.at(-1)?.body), /"signature":"[\w+/=]{40,}"/)
})

void t.test('a body that names another model, and settings in both spellings', async (t) => {
  const reply = { candidates: [{ content: { parts: [{ text: 'Yes' }] }, finishReason: 'STOP' }] }
  const chunks = [JSON.stringify(reply)]
  const { google, post } = await scene(t, { type: 'application/json', chunks })
  t.equal((await post(GENERATE, { model: 'models/gemini-other', ...BODY })).status, 200)
  t.same(JSON.parse(google.requests.at(-1)?.body.toString() ?? ''), BODY, 'the path decides')
  const twice = await post(GENERATE, {
    ...BODY,
    generationConfig: { maxOutputTokens: 5, max_output_tokens: 50_000 },
  })
  t.equal(twice.status, 400)
  t.match(await twice.text(), /generationConfig\.maxOutputTokens is given twice/)
})

void t.test('a token count is sent to Google with the model of the path', async (t) => {
  const reply = '{"totalTokens": 9,"promptTokensDetails": []}'
  const { google, post } = await scene(t, { type: 'application/json', chunks: [reply] })
  const path = GENERATE.replace('generateContent', 'countTokens')
  const plain = await post(path)
  t.same(await plain.json(), { totalTokens: 9 })
  t.equal(google.requests.at(-1)?.url, path)
  t.equal(google.requests.at(-1)?.body.toString(), JSON.stringify(BODY))
  const generateContentRequest = { model: 'models/alias', ...BODY, systemInstruction: 'Be brief.' }
  await post(path, { generateContentRequest })
  t.same(JSON.parse(google.requests.at(-1)?.body.toString() ?? ''), {
    generateContentRequest: { ...generateContentRequest, model: 'models/gemini-2.5-flash' },
  })
})
