/**
 * Goal: every recorded request of an Anthropic client reaches an Anthropic upstream byte for byte, and other
 * upstreams as a request with the same text, or is refused with a 400 that names the field.
 * Method: sends each recording unchanged. A plain server records the bytes for Anthropic; for the others the
 * emulator applies the rules of their providers.
 */
import { createServer } from 'node:http'
import t, { type Test } from 'tap'
import { arrayOf, isObject, objectOf, stringOf, type JsonObject } from '../../../src/base/json.js'
import { fixtures, skipWithoutFixtures } from '../../helpers/fixtures.js'
import { ofToday } from '../../helpers/long-suite.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { stringsIn, valuesIn } from './request-content.js'
import { Tally } from '../run-in-parallel.js'
import { listen } from '../../helpers/listen.js'

/** Some recordings keep a note in place of the request. */
const asked = fixtures({ provider: 'anthropic' }).filter(({ request_body }) =>
  Array.isArray(objectOf(request_body)['messages']),
)

/** The last request of Anthropic's upstream. */
interface Taken {
  body: string
  path: string
  headers: Record<string, unknown>
}

/** An upstream with one fixed reply. */
async function takingUpstream(t: Test, taken: Taken): Promise<string> {
  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.once('end', () => {
      taken.body = Buffer.concat(chunks).toString('utf8')
      taken.path = req.url ?? ''
      taken.headers = req.headers
      res.writeHead(400, { 'content-type': 'application/json' })
      res.end('{"type":"error","error":{"type":"invalid_request_error","message":"taken"}}')
    })
  })
  return `http://127.0.0.1:${await listen(t, server)}/v1`
}

function send(
  gateway: TestGateway,
  path: string,
  { body, headers = {} }: { body: string; headers?: Record<string, string> },
): Promise<Response> {
  return fetch(gateway.origin + path, {
    method: 'POST',
    headers: { 'x-api-key': gateway.secret, 'content-type': 'application/json', ...headers },
    body,
  })
}

void t.test('for Anthropic, byte for byte', skipWithoutFixtures(), async (t) => {
  const taken: Taken = { body: '', path: '', headers: {} }
  const anthropic = await takingUpstream(t, taken)
  const more = 'fetch_media: { enabled: false }'
  const gateway = await startGateway(t, {
    upstreams: { anthropic },
    upstreamOptions: 'native_sharing: shared',
    more,
  })
  for (const { name, url, request_body, request_headers } of asked) {
    const path = new URL(url).pathname
    // Spaces that no serialiser makes.
    const body = JSON.stringify(request_body, null, 1)
    const beta = request_headers['anthropic-beta']
    const version = request_headers['anthropic-version']
    const headers = {
      ...(beta === undefined ? {} : { 'anthropic-beta': beta }),
      ...(version === undefined ? {} : { 'anthropic-version': version }),
    }
    const response = await send(gateway, path, { body, headers })
    t.equal(response.status, 400, name)
    t.match(await response.json(), { error: { message: 'taken' } }, name)
    t.equal(taken.body, body, name)
    t.equal(taken.path, path, name)
    if (beta !== undefined) t.equal(taken.headers['anthropic-beta'], beta, name)
    if (version !== undefined) t.equal(taken.headers['anthropic-version'], version, name)
    t.equal(taken.headers['x-api-key'], 'emulated', "the upstream's own key")
  }
  t.ok(asked.length > 200, `${asked.length} requests`)
})

void t.test('only the name of the model changes', skipWithoutFixtures(), async (t) => {
  const taken: Taken = { body: '', path: '', headers: {} }
  const anthropic = await takingUpstream(t, taken)
  const gateway = await startGateway(t, {
    upstreams: { anthropic },
    upstreamOptions: 'native_sharing: shared',
  })
  const body = '{ "max_tokens":5,"model" : "claude-x" ,"messages":[{"role":"user","content":"\\u0048i 1e3"}]}'
  await send(gateway, '/v1/messages', { body })
  t.equal(taken.body, body)
})

/** An expected refusal and its reason. */
const REFUSED: readonly (readonly [models: RegExp, param: RegExp, reason: string])[] = [
  [/./, /^messages\[\d+\]\.content(?:\[\d+\])?$/, "a file of Anthropic's, or a URL that is not read"],
  [/^gemini-/, /^messages\[\d+\]$/, 'a conversation that begins with the model'],
  [/^gpt-5-pro$/, /^stop_sequences$/, 'Responses has no stop sequences'],
  [/./, /^tool_choice$/, 'forces a tool that only Anthropic has'],
]

/** The texts of a request, and the names of its own tools and calls. */
function wordsOf(body: JsonObject): { words: string[]; tools: string[] } {
  const words: string[] = []
  const addText = (value: unknown): void => {
    if (typeof value === 'string') words.push(value)
    else if (isObject(value) && value['type'] === 'text') addText(value['text'])
    else if (isObject(value) && value['type'] === 'tool_result') addContent(value['content'])
  }
  const addContent = (content: unknown): void => {
    if (Array.isArray(content)) content.forEach(addText)
    else addText(content)
  }
  addContent(body['system'])
  for (const message of arrayOf(body['messages']).map(objectOf)) addContent(message['content'])
  const tools = arrayOf(body['tools'])
    .map(objectOf)
    .filter(({ type }) => type === undefined || type === 'custom')
    .map(({ name }) => stringOf(name) ?? '')
  const texts = words.flatMap(valuesIn).map((word) => word.trim())
  return { words: texts.filter((word) => word !== ''), tools }
}

for (const model of ofToday(['gpt-4o', 'gpt-5-pro', 'gemini-2.5-flash', 'gemini-3.5-flash'], 4)) {
  void t.test(`for ${model}, with all expressible content`, skipWithoutFixtures(), async (t) => {
    const gateway = await startGateway(t, { upstreamOptions: 'native_sharing: shared' })
    const { emulator } = gateway
    const tally = new Tally()
    for (const { name, request_body } of ofToday(asked, 2)) {
      const body = { max_tokens: 100, ...objectOf(request_body), model }
      const last = emulator.ledger.at(-1)
      const response = await send(gateway, '/v1/messages', { body: JSON.stringify(body) })
      const text = await response.text()
      const entry = emulator.ledger.at(-1)
      if (response.status !== 200) {
        t.equal(entry, last, `${name}: no provider refuses what the gateway took: ${text}`)
        const { param, message } = objectOf(objectOf(JSON.parse(text))['error'])
        const reason = REFUSED.find(
          ([models, path]) => models.test(model) && path.test(stringOf(param) ?? ''),
        )
        t.ok(reason, `${name}: ${String(response.status)} ${JSON.stringify(message)}`)
        tally.add(`(${reason?.[2] ?? '?'})`)
        continue
      }
      tally.add('taken')
      const { words, tools } = wordsOf(body)
      const sent = entry?.body ?? {}
      const offered = new Set(stringsIn(sent['tools']))
      const all = stringsIn(sent)
        .flatMap((text) => [text, ...valuesIn(text)])
        .join('\n')
      t.same(
        words.filter((word) => !all.includes(word)),
        [],
        `${name}: all words arrive`,
      )
      t.same(
        tools.filter((tool) => !offered.has(tool)),
        [],
        `${name}: all tools arrive`,
      )
    }
    t.comment(tally.toString())
  })
}
