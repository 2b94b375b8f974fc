/**
 * Goal: an image that a client references by URL reaches an upstream that cannot read URLs, if the operator
 * allows it; otherwise the error names the path of the part.
 * Method: an image server on this machine and requests through a gateway; the requests to the emulator are
 * checked.
 */
import { createServer } from 'node:http'
import t, { type Test } from 'tap'
import { objectOf, type JsonValue } from '../../../src/base/json.js'
import { startGateway } from '../../helpers/gateway.js'
import { listen } from '../../helpers/listen.js'

const PNG = Buffer.from('\x89PNG\r\n\x1a\n and so on', 'latin1')
const ALLOWED = 'fetch_media: { enabled: true, allow_private_address: true, max_per_request: 3 }'

async function pictures(t: Test): Promise<{ url: string; seen: string[] }> {
  const seen: string[] = []
  const server = createServer((req, res) => {
    seen.push(req.url ?? '')
    if (req.url === '/hang.png') return
    res.writeHead(req.url === '/missing.png' ? 404 : 200, { 'content-type': 'image/png' })
    res.end(PNG)
  })
  const port = await listen(t, server)
  return { url: `http://127.0.0.1:${port}`, seen }
}

function showing(model: string, ...urls: string[]): { model: string; messages: JsonValue } {
  const parts = urls.map((url) => ({ type: 'image_url', image_url: { url } }))
  const content = [{ type: 'text', text: 'What is this?' }, ...parts]
  return { model, messages: [{ role: 'user', content }] }
}

void t.test('each URL is fetched once and sent inline to upstreams that cannot read it', async (t) => {
  const { url, seen } = await pictures(t)
  const gateway = await startGateway(t, { more: ALLOWED })
  const data = PNG.toString('base64')
  const [a, b] = [`${url}/a.png`, `${url}/b.png`]
  const gemini = await gateway.chat(showing('gemini-2.5-flash', a, b, a))
  t.equal(gemini.status, 200)
  t.same(seen.sort(), ['/a.png', '/b.png'])
  const part = { inlineData: { mimeType: 'image/png', data } }
  t.match(gateway.emulator.ledger.at(-1)?.body, { contents: [{ parts: [{}, part, part, part] }] })

  const claude = await gateway.chat(showing('claude-haiku-4-5', a, 'https://a.example/i.png'))
  t.equal(claude.status, 200)
  const source = { type: 'base64', media_type: 'image/png', data }
  const urlSource = { type: 'url', url: 'https://a.example/i.png' }
  t.match(gateway.emulator.ledger.at(-1)?.body, {
    messages: [{ content: [{}, { source }, { source: urlSource }] }],
  })

  const own = await gateway.chat(showing('gpt-4o', a))
  t.equal(own.status, 200)
  t.match(gateway.emulator.ledger.at(-1)?.body, {
    messages: [{ content: [{}, { image_url: { url: a } }] }],
  })
  t.equal(seen.length, 3, 'OpenAI reads it itself')
})

void t.test('off by default: the error names the part, and nothing is fetched', async (t) => {
  const { url, seen } = await pictures(t)
  const gateway = await startGateway(t)
  for (const model of ['gemini-2.5-flash', 'claude-haiku-4-5']) {
    const response = await gateway.chat(showing(model, `${url}/a.png`))
    t.equal(response.status, 400)
    const error = objectOf(objectOf(await response.json())['error'])
    t.match(error, { kind: 'untranslatable', param: /^messages\[0\]\.content/ })
  }
  t.same(seen, [])
})

void t.test('a URL that cannot be fetched gets a 400 that names the part and not the address', async (t) => {
  const { url } = await pictures(t)
  const gateway = await startGateway(t, { more: ALLOWED })
  const error = async (...urls: string[]): Promise<unknown> => {
    const response = await gateway.chat(showing('gemini-2.5-flash', ...urls))
    t.equal(response.status, 400)
    return objectOf(await response.json())['error']
  }
  const missing = await error(`${url}/hang.png`, `${url}/missing.png`)
  t.match(missing, { kind: 'malformed_request', param: 'messages[0].content[2]' })
  t.match(missing, { message: /^messages\[0\]\.content\[2\]: the URL answered 404\. Send/ })
  const many = [1, 2, 3, 4].map((n) => `${url}/${n}.png`)
  t.match(await error(...many), { param: 'messages', message: /at most 3 URLs/ })
})

void t.test('the network behind the gateway is not reachable', async (t) => {
  const { url, seen } = await pictures(t)
  const gateway = await startGateway(t, { more: 'fetch_media: { enabled: true }' })
  const response = await gateway.chat(showing('gemini-2.5-flash', `${url}/a.png`))
  t.equal(response.status, 400)
  t.match(await response.json(), { error: { message: /could not be fetched/ } })
  t.same(seen, [])
})

void t.test('a client that leaves during the fetch of its image ends the exchange', async (t) => {
  const { url, seen } = await pictures(t)
  const gateway = await startGateway(t, { more: ALLOWED })
  const aborter = new AbortController()
  const pending = gateway.chat(showing('gemini-2.5-flash', `${url}/hang.png`), {
    signal: aborter.signal,
  })
  while (seen.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  aborter.abort()
  await t.rejects(pending)
  while (gateway.lines.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  t.match(gateway.lines.at(-1), { outcome: 'client_gone' })
})

void t.test('sound in a data: URL is sent as base64', async (t) => {
  const gateway = await startGateway(t)
  const data = 'UklGRg=='
  for (const sent of [data, `data:audio/wav;base64,${data}`, `data:audio/wav;codecs=1;base64,${data}`]) {
    const content = [{ type: 'input_audio', input_audio: { data: sent, format: 'wav' } }]
    const messages = [{ role: 'user', content }]
    const response = await gateway.chat({ model: 'gemini-2.5-flash', messages })
    t.equal(response.status, 200, await response.text())
    t.match(gateway.emulator.ledger.at(-1)?.body, { contents: [{ parts: [{ inlineData: { data } }] }] })
  }
})

void t.test('a media type in other letters, with parameters or missing is that of the data', async (t) => {
  const gateway = await startGateway(t)
  const data = PNG.toString('base64')
  const images = [
    'data:;base64,',
    'data:base64,',
    'data:;charset=utf-8;base64,',
    'DATA:IMAGE/PNG;BASE64,',
  ].map((head) => showing('gemini-2.5-flash', head + data))
  const sounds = [{ format: 'WAV' }, { format: 'audio/x-wav' }, {}].map((more) => {
    const input_audio = { data: 'data:audio/wav;base64,UklGRg==', ...more }
    return {
      model: 'gemini-2.5-flash',
      messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio }] }],
    }
  })
  for (const body of [...images, ...sounds]) {
    const response = await gateway.chat(body)
    t.equal(response.status, 200, await response.text())
    const sent = JSON.stringify(gateway.emulator.ledger.at(-1)?.body)
    t.match(sent, /"inlineData":\{"mimeType":"(?:image\/png|audio\/wav)"/, sent)
  }
  const blocks: JsonValue[] = ['IMAGE/PNG', 'image/png; q=1', undefined, null].map((type) => {
    return {
      type: 'image',
      source: { type: 'base64', data, ...(type !== undefined && { media_type: type }) },
    }
  })
  const pdf = { type: 'base64', data: Buffer.from('%PDF-1.4 and so on').toString('base64') }
  blocks.push({ type: 'document', source: pdf })
  for (const block of blocks) {
    const response = await fetch(`${gateway.origin}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': gateway.secret, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'gemini-2.5-flash',
        max_tokens: 99,
        messages: [{ role: 'user', content: [block] }],
      }),
    })
    t.equal(response.status, 200, await response.text())
    const sent = JSON.stringify(gateway.emulator.ledger.at(-1)?.body)
    t.match(sent, /"mimeType":"(?:image\/png|application\/pdf)"/, sent)
  }
})

void t.test('a document by URL is fetched for chat completions, or refused', async (t) => {
  const PDF = Buffer.from('%PDF-1.4 and so on')
  const server = createServer((_req, res) => {
    res.writeHead(200, { 'content-type': 'application/pdf' })
    res.end(PDF)
  })
  const port = await listen(t, server)
  const source = { type: 'url', url: `http://127.0.0.1:${port}/a.pdf` }
  const content = [
    { type: 'document', source },
    { type: 'text', text: 'Sum up.' },
  ]
  const body = { model: 'gpt-4o', max_tokens: 9, messages: [{ role: 'user', content }] }
  for (const more of [ALLOWED, '']) {
    const gateway = await startGateway(t, { more })
    const response = await fetch(`${gateway.origin}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': gateway.secret, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const reply = await response.text()
    t.equal(response.status, more === '' ? 400 : 200, reply)
    const sent = JSON.stringify(gateway.emulator.ledger.at(-1)?.body ?? {})
    t.notMatch(sent, '.pdf"')
    if (more !== '') t.match(sent, `data:application/pdf;base64,${PDF.toString('base64')}`)
  }
})
