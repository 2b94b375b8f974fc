/**
 * Goal: a document by URL reaches an upstream that reads URLs, in the upstream's own form; every other
 * upstream refuses it by name, in each client format.
 * Method: one document in the four client formats, through upstreams of each format and of vendors with a
 * form of their own, to a server that records requests.
 */
import t from 'tap'
import { objectOf, type JsonObject } from '../../../src/base/json.js'
import { startGateway } from '../../helpers/gateway.js'
import { startRawUpstream } from '../../helpers/raw-upstream.js'
import { AWS_AUTH, usualReply } from './capture.js'

const URL_OF_IT = 'https://files.example/annual report.pdf'
const DATA = Buffer.from('%PDF-1.4 and so on').toString('base64')

/** Upstreams by the name of their model, each with what it gets; null: it refuses the request. */
const UPSTREAMS: Readonly<Record<string, { settings: string; byUrl: JsonObject | null }>> = {
  chat: { settings: 'dialect: openai-chat, api_key: k', byUrl: null },
  groq: { settings: 'preset: groq, api_key: k', byUrl: null },
  openrouter: {
    settings: 'preset: openrouter, api_key: k',
    byUrl: { type: 'file', file: { file_data: URL_OF_IT } },
  },
  mistral: {
    settings: 'preset: mistral, api_key: k',
    byUrl: { type: 'document_url', document_url: URL_OF_IT },
  },
  perplexity: {
    settings: 'preset: perplexity, api_key: k',
    byUrl: { type: 'file_url', file_url: { url: URL_OF_IT } },
  },
  responses: {
    settings: 'dialect: openai-responses, api_key: k',
    byUrl: { type: 'input_file', file_url: URL_OF_IT },
  },
  messages: {
    settings: 'dialect: anthropic, api_key: k',
    byUrl: { type: 'document', source: { type: 'url', url: URL_OF_IT } },
  },
  gemini: { settings: 'dialect: gemini, api_key: k', byUrl: null },
  converse: {
    settings: `platform: bedrock, dialect: converse, region: eu-west-1, auth: ${AWS_AUTH}`,
    byUrl: null,
  },
  invoke: {
    settings: `platform: bedrock, dialect: anthropic, region: eu-west-1, auth: ${AWS_AUTH}`,
    byUrl: null,
  },
  vertex: {
    settings: 'platform: vertex, dialect: anthropic, project: acme-prod, location: us-east5, api_key: k',
    byUrl: null,
  },
}

const FORMATS = ['chat', 'messages', 'responses', 'gemini'] as const
type Format = (typeof FORMATS)[number]

/** The upstreams of a client's own format, which judge its bytes themselves. */
const OWN: Readonly<Record<Format, readonly string[]>> = {
  chat: ['chat', 'groq', 'openrouter', 'mistral', 'perplexity'],
  messages: ['messages', 'invoke', 'vertex'],
  responses: ['responses'],
  gemini: ['gemini'],
}

const upstream = await startRawUpstream(t, usualReply)
const gateway = await startGateway(t)
const names = Object.keys(UPSTREAMS)
const settings = names.map(
  (name) => `  t-${name}: { base_url: "${upstream.origin}", ${UPSTREAMS[name]?.settings ?? ''} }\n`,
)
const routes = names.map((name) => `  - { prefix: "to-${name}", upstream: t-${name} }\n`)
gateway.add(settings.join(''), routes.join(''))

/** A request with the document and a question; `where` is its URL, or its bytes. */
function request(format: Format, model: string, where: { url: string } | { data: string }): Asked {
  const question = 'Sum up.'
  switch (format) {
    case 'chat': {
      const file_data = 'url' in where ? where.url : `data:application/pdf;base64,${where.data}`
      const content = [
        { type: 'file', file: { file_data } },
        { type: 'text', text: question },
      ]
      return { path: '/v1/chat/completions', body: { model, messages: [{ role: 'user', content }] } }
    }
    case 'messages': {
      const source =
        'url' in where
          ? { type: 'url', url: where.url }
          : { type: 'base64', media_type: 'application/pdf', data: where.data }
      const content = [
        { type: 'document', source },
        { type: 'text', text: question },
      ]
      return { path: '/v1/messages', body: { model, max_tokens: 9, messages: [{ role: 'user', content }] } }
    }
    case 'responses': {
      const file =
        'url' in where
          ? { file_url: where.url }
          : { filename: 'a.pdf', file_data: `data:application/pdf;base64,${where.data}` }
      const content = [
        { type: 'input_file', ...file },
        { type: 'input_text', text: question },
      ]
      return { path: '/v1/responses', body: { model, input: [{ role: 'user', content }] } }
    }
    case 'gemini': {
      const mimeType = 'application/pdf'
      const document =
        'url' in where
          ? { fileData: { mimeType, fileUri: where.url } }
          : { inlineData: { mimeType, data: where.data } }
      return {
        path: `/v1beta/models/${model}:generateContent`,
        body: { contents: [{ role: 'user', parts: [document, { text: question }] }] },
      }
    }
    default:
      return format satisfies never
  }
}

/** A request to an endpoint. */
interface Asked {
  readonly path: string
  readonly body: JsonObject
}

/** Sends it, and returns the status, the text, and what the upstream got. */
async function send({ path, body }: Asked): Promise<{ status: number; reply: string; sent: string }> {
  upstream.requests.splice(0)
  const response = await fetch(`${gateway.origin}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const reply = await response.text()
  return { status: response.status, reply, sent: upstream.requests.at(-1)?.body.toString() ?? '' }
}

for (const format of FORMATS) {
  void t.test(`${format}: a document by URL`, async (t) => {
    for (const [name, { byUrl }] of Object.entries(UPSTREAMS)) {
      if (OWN[format].includes(name)) continue
      const { status, reply, sent } = await send(request(format, `to-${name}`, { url: URL_OF_IT }))
      if (byUrl === null) {
        t.equal(status, 400, `${name}: ${reply}`)
        t.match(reply, /untranslatable/, name)
        t.match(reply, /URL/, name)
        t.equal(sent, '', name)
      } else {
        t.equal(status, 200, `${name}: ${reply}`)
        t.match(sent, JSON.stringify(byUrl).slice(1, -1), name)
      }
    }
  })
}

void t.test('a document as data in the form of the vendor', async (t) => {
  const prefixed = `data:application/pdf;base64,${DATA}`
  const expected = {
    chat: { file_data: prefixed },
    openrouter: { file_data: prefixed },
    mistral: { type: 'document_url', document_url: prefixed },
    perplexity: { type: 'file_url', file_url: { url: DATA } },
  }
  for (const [name, part] of Object.entries(expected)) {
    for (const format of ['messages', 'responses', 'gemini'] as const) {
      const { status, reply, sent } = await send(request(format, `to-${name}`, { data: DATA }))
      t.equal(status, 200, reply)
      t.match(sent, JSON.stringify(part).slice(1, -1), `${format} to ${name}`)
    }
  }
})

void t.test('between equal formats the vendor judges', async (t) => {
  for (const format of ['chat', 'responses', 'gemini'] as const) {
    for (const name of OWN[format]) {
      const asked = request(format, `to-${name}`, { url: URL_OF_IT })
      const { status, reply, sent } = await send(asked)
      t.equal(status, 200, `${name}: ${reply}`)
      t.match(sent, URL_OF_IT, name)
      t.type(objectOf(JSON.parse(sent)), 'object')
    }
  }
})
