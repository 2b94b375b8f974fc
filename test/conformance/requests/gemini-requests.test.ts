/**
 * Goal: every recorded request of Google's clients reaches a Gemini upstream byte for byte, and upstreams of
 * every other dialect with all its text, tools and calls, or is refused with a 400 that names the field.
 * Method: sends each recording's bytes for a model of each upstream. An upstream that records bytes
 * represents Google; for the others the emulator applies the provider's rules and must accept every request
 * that the gateway accepts.
 */
import t from 'tap'
import { arrayOf, isObject, objectOf, stringOf, type JsonObject } from '../../../src/base/json.js'
import { fixtures, skipWithoutFixtures, type Recording, labelOf } from '../../helpers/fixtures.js'
import { IS_LONG, ofToday } from '../../helpers/long-suite.js'
import { startGateway } from '../../helpers/gateway.js'
import { startRawUpstream } from '../../helpers/raw-upstream.js'
import { contentOfUpstream, contentOfChat, stringsIn, isWord } from './request-content.js'
import { Tally } from '../run-in-parallel.js'

const APIS = ['generateContent', 'streamGenerateContent']
const asked = ['gemini', 'vertex-gemini'].flatMap((provider) =>
  APIS.flatMap((api) => fixtures({ provider, api })),
)
const OTHERS = ['gpt-4o', 'gpt-5-pro', 'claude-sonnet-4-5', 'claude-opus-5-5']

const REPLY = {
  candidates: [{ content: { role: 'model', parts: [{ text: 'Yes.' }] }, finishReason: 'STOP', index: 0 }],
  usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
  modelVersion: 'gemini-2.5-flash',
}

t.setTimeout(120_000)
const google = await startRawUpstream(t, ({ url }) =>
  url.includes('alt=sse')
    ? { type: 'text/event-stream', chunks: [`data: ${JSON.stringify(REPLY)}\r\n\r\n`] }
    : { type: 'application/json', chunks: [JSON.stringify(REPLY)] },
)
const gateway = await startGateway(t, {
  upstreams: { gemini: `${google.origin}/v1beta` },
  upstreamOptions: 'native_sharing: shared',
})
const { emulator } = gateway

/** An expected refusal and its reason. */
interface Exception {
  readonly models: RegExp
  readonly name: RegExp
  /** The field in the refusal. */
  readonly param: RegExp
  readonly reason: string
}

const ALL = /./

const REFUSED: readonly Exception[] = [
  {
    models: ALL,
    name: /./,
    param: /^tools\[\d+\]\.(?:codeExecution|googleSearch|fileSearch|urlContext|googleMaps)$/,
    reason: 'Google runs the tool',
  },
  {
    models: ALL,
    name: /uploaded_file|_gs_/,
    param: /^contents\[\d+\]$/,
    reason: "a file in a store of Google's",
  },
  {
    models: ALL,
    name: /invalid_temperature/,
    param: /^generationConfig\.temperature$/,
    reason: 'invalid on purpose; Google returned 400 as well',
  },
  {
    models: /^gpt-5-pro$|^claude-/,
    name: /audio/,
    param: /^contents\[\d+\]$/,
    reason: 'Responses and Anthropic take no audio',
  },
  {
    models: /^claude-/,
    name: /video|_url_input_force_download/,
    param: /^contents\[\d+\]$/,
    reason: 'Anthropic takes no video',
  },
  {
    models: /^gpt-5-pro$|^claude-/,
    name: /stop_settings|extra_params/,
    param: /^generationConfig\.stopSequences$/,
    reason: 'Responses has no stop strings, Anthropic none of white space only',
  },
  {
    models: /^claude-/,
    name: /instructions_only_with_tool_calls/,
    param: /^contents\[[01]\]$/,
    reason: 'Anthropic requires a non-empty first message of a user',
  },
  {
    models: /^claude-|^gpt-5-pro$/,
    name: /logprobs/,
    param: /^generationConfig\.responseLogprobs$/,
    reason: 'no log probabilities',
  },
  {
    models: /^gpt-4o$/,
    name: /_url_|url-(?:audio|document|video)/,
    param: /^contents\[\d+\]/,
    reason: 'chat completions take no file by URL',
  },
  {
    models: /^claude-opus-5-5$/,
    name: /additional_properties|recursive_schema/,
    param: /^generationConfig\.responseSchema$/,
    reason: 'a schema that Anthropic cannot hold a model to',
  },
]

function actionOf({ url }: Recording): string {
  return /:(\w+)(?=$|\?)/.exec(url)?.[0] ?? ''
}

async function send(recording: Recording, model: string, body: string): Promise<Response> {
  const query = recording.url.includes('alt=sse') ? '?alt=sse' : ''
  return fetch(`${gateway.origin}/v1beta/models/${model}${actionOf(recording)}${query}`, {
    method: 'POST',
    headers: { 'x-goog-api-key': gateway.secret, 'content-type': 'application/json' },
    body,
  })
}

void t.test('to a Gemini upstream, byte for byte', skipWithoutFixtures(), async (t) => {
  for (const recording of ofToday(asked, 3)) {
    // Spaces and order are the client's too.
    const body = JSON.stringify(recording.request_body, null, 1)
    const response = await send(recording, 'gemini-2.5-flash', body)
    const text = await response.text()
    const label = labelOf(recording)
    t.equal(response.status, 200, `${label}: ${text}`)
    const sent = google.requests.at(-1)
    t.equal(sent?.body.toString(), body, label)
    const streams = recording.api === 'streamGenerateContent'
    const action = streams ? ':streamGenerateContent?alt=sse' : ':generateContent'
    t.equal(sent?.url, `/v1beta/models/gemini-2.5-flash${action}`, label)
    t.equal(sent?.headers['x-goog-api-key'], 'emulated', "with the upstream's key")
    if (!streams) t.equal(text, JSON.stringify(REPLY), label)
    else if (recording.url.includes('alt=sse')) {
      t.equal(text, `data: ${JSON.stringify(REPLY)}\r\n\r\n`, label)
    } else t.equal(text, `[${JSON.stringify(REPLY)}]`, label)
  }
})

/** The content of a request of this format, read naively, with both spellings of every name. */
function contentOfGemini(body: JsonObject): { words: string[]; tools: string[]; calls: string[] } {
  const words: string[] = []
  const calls: string[] = []
  const contents = [body['systemInstruction'] ?? body['system_instruction']]
  for (const content of [...contents, ...arrayOf(body['contents'])].map(objectOf)) {
    for (const part of arrayOf(content['parts']).map(objectOf)) {
      const call = part['functionCall'] ?? part['function_call']
      if (isObject(call)) calls.push(stringOf(call['name']) ?? '')
      if (part['thought'] === true) continue
      const result = objectOf(part['functionResponse'] ?? part['function_response'])
      words.push(...stringsIn(part['text'] ?? ''), ...stringsIn(result['response'] ?? ''))
      const data = objectOf(part['inlineData'] ?? part['inline_data'])
      words.push(...stringsIn(data['data'] ?? '').map((text) => bytesIn(text, data)))
    }
  }
  const declared = [body['tools']]
    .flat()
    .map(objectOf)
    .flatMap((tool) => {
      return arrayOf(tool['functionDeclarations'] ?? tool['function_declarations']).map(objectOf)
    })
  const tools = declared.map(({ name }) => stringOf(name) ?? '')
  return { words: words.map((word) => word.trim()).filter(isWord), tools, calls }
}

/** Base64 in the form of every format; a text file may arrive as text. */
function bytesIn(data: string, blob: JsonObject): string {
  if (!isWord(data)) return data
  const standard = data.replaceAll('-', '+').replaceAll('_', '/')
  const type = stringOf(blob['mimeType'] ?? blob['mime_type']) ?? ''
  if (!type.startsWith('text/')) return standard
  return Buffer.from(standard, 'base64').toString()
}

const used = new Set<Exception>()

function exceptionFor(label: string, model: string, param: string): Exception | undefined {
  const found = REFUSED.find((it) => it.models.test(model) && it.name.test(label) && it.param.test(param))
  if (found !== undefined) used.add(found)
  return found
}

/** Claude gets only the allowed tools, unless it can be forced to call the only one. */
function withheld(model: string, body: JsonObject): string[] {
  const config = objectOf(objectOf(body['toolConfig'])['functionCallingConfig'])
  const allowed = arrayOf(config['allowedFunctionNames'])
  if (allowed.length === 0) return []
  const { tools } = contentOfGemini(body)
  const isForced = allowed.length === 1 && model !== 'claude-opus-5-5'
  const kept =
    model.startsWith('claude-') && !isForced ? tools.filter((name) => allowed.includes(name)) : tools
  return tools.filter((name) => !kept.includes(name))
}

/** Unchanged, inside JSON, or as the base64 of a file. */
function arrives(word: string, all: string): boolean {
  const inJson = JSON.stringify(word).slice(1, -1)
  return [word, inJson, Buffer.from(word).toString('base64')].some((form) => all.includes(form))
}

/** The field that an error names. */
function fieldIn(error: JsonObject): string {
  const violations = arrayOf(error['details'])
    .map(objectOf)
    .flatMap((detail) => {
      return arrayOf(detail['fieldViolations']).map(objectOf)
    })
  return stringOf(violations[0]?.['field']) ?? ''
}

for (const model of ofToday(OTHERS, 4)) {
  void t.test(`to ${model}`, skipWithoutFixtures(), async (t) => {
    const tally = new Tally()
    for (const recording of ofToday(asked, 3)) {
      const label = labelOf(recording)
      const body = objectOf(recording.request_body)
      const last = emulator.ledger.at(-1)
      const response = await send(recording, model, JSON.stringify(body))
      const text = await response.text()
      const entry = emulator.ledger.at(-1)
      const sent = entry === last ? undefined : entry?.body
      if (response.status === 200) {
        const want = contentOfGemini(body)
        const received = model === 'gpt-4o' ? contentOfChat(sent ?? {}) : contentOfUpstream(sent ?? {})
        const all = [...received.words, ...stringsIn(sent)].join('\n')
        t.same(
          want.words.filter((word) => !arrives(word, all)),
          [],
          `${label}: all words arrive`,
        )
        t.same(received.calls, want.calls, `${label}: all calls arrive`)
        t.same(
          want.tools.filter((name) => !received.tools.includes(name)),
          withheld(model, body),
          `${label}: all tools arrive`,
        )
        tally.add(`${recording.provider} taken`)
        continue
      }
      t.equal(sent, undefined, `${label}: no provider refuses what the gateway took: ${text}`)
      t.equal(response.status, 400, label)
      const error = objectOf(objectOf(JSON.parse(text))['error'])
      const field = fieldIn(error)
      const exception = exceptionFor(label, model, field)
      t.ok(exception, `${label}: ${model}: ${JSON.stringify(error)}`)
      t.ok(field !== '' && stringOf(error['message'])?.includes(field), `${label} names ${field}`)
      tally.add(`${recording.provider} refused`)
      tally.add(`(${exception?.reason ?? '?'})`)
    }
    t.comment(tally.toString())
  })
}

// Each day has some of the models.
if (IS_LONG)
  void t.test('every exception occurs', skipWithoutFixtures(), (t) => {
    t.same(
      REFUSED.filter((it) => !used.has(it)).map(({ reason }) => reason),
      [],
    )
    t.end()
  })
