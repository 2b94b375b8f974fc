/**
 * Goal: recorded traffic of Bedrock reaches the clients of every format completely, however its bytes are
 * split.
 * Method: a naive reading of every recording that shares no code with the decoders; each reply is translated
 * for each client format, streams also byte by byte; the text, calls, reasoning and counts must be equal.
 */
import t from 'tap'
import { arrayOf, isObject, objectOf, stringOf, type JsonObject } from '../../../src/base/json.js'
import { anthropic } from '../../../src/formats/anthropic/index.js'
import type { DialectName, UpstreamCodec } from '../../../src/formats/dialect.js'
import { upstreamCodecOf, clientCodecOf } from '../../../src/formats/index.js'
import { newFramer } from '../../../src/formats/wire/aws/event-stream.js'
import { TranslatedStream } from '../../../src/formats/translated-stream.js'
import { translateReply } from '../../../src/gateway/streams/whole-reply.js'
import { fixtures, skipWithoutFixtures, type Recording } from '../../helpers/fixtures.js'
import { collectEvents, type Decoded } from '../collect-events.js'
import { awsCodec } from '../wire/aws/aws-messages.js'
import { upstreamCodec as converse, request } from './driver.js'

if (anthropic.upstreamCodec === null) throw new Error('the dialect has no codec for upstreams')

/** Claude behind InvokeModel. */
const INVOKED: UpstreamCodec = { ...anthropic.upstreamCodec, framing: 'aws-chunks' }

const CLIENTS: readonly DialectName[] = ['openai-chat', 'openai-responses', 'anthropic', 'gemini']
const BODIES: Readonly<Record<string, JsonObject>> = {
  'openai-chat': { model: 'm', messages: [{ role: 'user', content: 'Hi' }] },
  'openai-responses': { model: 'm', input: 'Hi' },
  anthropic: { model: 'm', max_tokens: 99, messages: [{ role: 'user', content: 'Hi' }] },
  gemini: { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
}

/** The payloads of a recorded stream, read by AWS's own codec. */
function payloads(bytes: Buffer): { readonly name: string; readonly payload: JsonObject }[] {
  const found: { name: string; payload: JsonObject }[] = []
  for (let at = 0; at < bytes.length;) {
    const message = bytes.subarray(at, at + bytes.readUInt32BE(at))
    const { headers, body } = awsCodec.decode(message)
    const payload = objectOf(JSON.parse(Buffer.from(body).toString()) as unknown)
    found.push({ name: String(headers[':event-type']?.value), payload })
    at += message.length
  }
  return found
}

interface Naive {
  texts: string[]
  thinking: string
  signatures: string[]
  redacted: string[]
  calls: { id: unknown; name: unknown; args: unknown }[]
  usage: JsonObject
}

/** The message of a whole reply, or the message assembled from a stream. */
function naive({ stream, response_body: body }: Recording): Naive {
  const blocks: JsonObject[] = []
  let usage: JsonObject = {}
  if (stream) {
    const json: string[] = []
    for (const { name, payload } of payloads(Buffer.from(body, 'base64'))) {
      const at = Number(payload.contentBlockIndex)
      if (name === 'contentBlockStart') blocks[at] = { ...objectOf(payload.start) }
      if (name === 'contentBlockDelta') {
        const { text, toolUse, reasoningContent } = objectOf(payload.delta)
        const block = (blocks[at] ??= {})
        if (isObject(toolUse)) json[at] = (json[at] ?? '') + (stringOf(toolUse.input) ?? '')
        if (typeof text === 'string') block.text = (stringOf(block.text) ?? '') + text
        if (isObject(reasoningContent)) {
          const known = objectOf(block.reasoningContent)
          const reasoningText = objectOf(known.reasoningText)
          for (const [key, value] of Object.entries(reasoningContent)) {
            reasoningText[key] = (stringOf(reasoningText[key]) ?? '') + (stringOf(value) ?? '')
          }
          block.reasoningContent = { reasoningText, ...reasoningContent }
        }
      }
      if (name === 'metadata') usage = objectOf(payload.usage)
    }
    for (const [at, block] of blocks.entries()) {
      if (isObject(block.toolUse)) block.toolUse.input = JSON.parse(json[at] || '{}') as JsonObject
    }
  } else {
    const whole = objectOf(JSON.parse(body) as unknown)
    blocks.push(...arrayOf(objectOf(objectOf(whole.output).message).content).map(objectOf))
    usage = objectOf(whole.usage)
  }
  const calls = blocks.map(({ toolUse }) => objectOf(toolUse)).filter(({ name }) => name !== undefined)
  const reasoning = blocks.map(({ reasoningContent }) => objectOf(reasoningContent))
  const texts = reasoning.map(({ reasoningText }) => objectOf(reasoningText))
  return {
    texts: blocks.map(({ text }) => stringOf(text) ?? ''),
    thinking: texts.map(({ text }) => stringOf(text) ?? '').join(''),
    signatures: texts.flatMap(({ signature }) => (typeof signature === 'string' ? [signature] : [])),
    redacted: reasoning.flatMap(({ redactedContent }) =>
      typeof redactedContent === 'string' ? [Buffer.from(redactedContent, 'base64').toString()] : [],
    ),
    calls: calls
      .filter(({ type }) => type !== 'server_tool_use')
      .map(({ toolUseId, name, input }) => ({ id: toolUseId, name, args: input })),
    usage,
  }
}

function decoded({ stream, response_body: body }: Recording): Decoded {
  return collectEvents((sink) => {
    if (!stream) {
      converse.decodeReply(JSON.parse(body) as JsonObject, request(), sink)
      return
    }
    const decoder = converse.newDecoder(request(), sink)
    const framer = newFramer(converse.framing, decoder)
    framer.write(Buffer.from(body, 'base64'))
    framer.end()
    decoder.end()
  })
}

const CONVERSED = ['converse', 'converse-stream'].flatMap((api) =>
  fixtures({ provider: 'bedrock', api, status: 200 }),
)

void t.test('every reply of Converse is decoded completely', skipWithoutFixtures(), (t) => {
  t.ok(CONVERSED.length > 100)
  for (const recording of CONVERSED) {
    const expected = naive(recording)
    const { reply, breach, usage } = decoded(recording)
    const blocks = reply?.blocks ?? []
    t.equal(breach, null, recording.name)
    const texts = blocks.flatMap((block) => (block.type === 'text' ? [block.text] : []))
    t.equal(texts.join(''), expected.texts.join(''), recording.name)
    const thoughts = blocks.flatMap((block) => (block.type === 'thinking' ? [block] : []))
    t.equal(thoughts.map(({ text }) => text).join(''), expected.thinking)
    t.same(
      thoughts.flatMap(({ signature }) => signature ?? []),
      expected.signatures,
    )
    t.same(
      thoughts.flatMap(({ redacted }) => redacted ?? []),
      expected.redacted,
    )
    const calls = blocks.flatMap((block) => (block.type === 'tool' ? [block] : []))
    t.same(
      calls.map(({ id, name, json }) => ({ id, name, args: JSON.parse(json) as unknown })),
      expected.calls,
      recording.name,
    )
    const { inputTokens, outputTokens, cacheReadInputTokens, cacheWriteInputTokens } = expected.usage
    if (inputTokens === undefined) continue
    t.equal(usage.output, outputTokens, recording.name)
    t.equal(
      usage.input,
      Number(inputTokens) + Number(cacheReadInputTokens ?? 0) + Number(cacheWriteInputTokens ?? 0),
      recording.name,
    )
  }
  t.end()
})

/** The translation of a recording for a client, and that of its bytes one by one. */
function replayed(
  { stream, response_body: body }: Recording,
  upstreamCodec: UpstreamCodec,
  client: DialectName,
): { readonly outcomes: unknown; readonly out: string; readonly split: string } {
  const clientCodec = clientCodecOf(client)
  const isPath = client === 'gemini'
  const own = { ...BODIES[client], ...(isPath ? {} : { stream }) }
  const endpoint = { operation: 'chat' as const, ...(isPath && { model: 'm', stream }) }
  const asked = clientCodec.decodeRequest(own, endpoint)
  const seed = { id: 'id_1', createdAtSeconds: 1, model: 'm', origin: 'anthropic' as const }
  const options = { upstreamCodec, clientCodec, request: asked, seed }
  if (!stream) {
    const { body: out, outcome, breach } = translateReply(JSON.parse(body) as JsonObject, options)
    return { outcomes: { outcome, breach }, out, split: out }
  }
  const run = (chunks: readonly Buffer[]): { out: string; outcomes: unknown } => {
    const translation = new TranslatedStream(options)
    const out = chunks.map((chunk) => translation.write(chunk)).join('') + translation.end()
    const { outcome, breach } = translation
    return { out, outcomes: { outcome, breach } }
  }
  const bytes = Buffer.from(body, upstreamCodec.framing === 'sse' ? 'utf8' : 'base64')
  const { out, outcomes } = run([bytes])
  return { out, outcomes, split: run([...bytes].map((byte) => Buffer.of(byte))).out }
}

const COMPLETE = { outcome: 'complete', breach: null }

for (const client of CLIENTS) {
  void t.test(`Converse for clients of ${client}`, skipWithoutFixtures(), (t) => {
    for (const recording of CONVERSED) {
      const { outcomes, out, split } = replayed(recording, converse, client)
      t.same(outcomes, COMPLETE, recording.name)
      t.equal(split, out, recording.name)
      const { texts, calls } = naive(recording)
      for (const text of recording.stream ? [] : texts) {
        t.ok(out.includes(JSON.stringify(text).slice(1, -1)), recording.name)
      }
      for (const { name } of calls) t.ok(out.includes(JSON.stringify(name)), recording.name)
    }
    t.end()
  })
}

void t.test('every boundary of a recorded stream', skipWithoutFixtures(), (t) => {
  const [shortest] = fixtures({ provider: 'bedrock', api: 'converse-stream', status: 200 }).sort(
    (a, b) => a.response_body.length - b.response_body.length,
  )
  if (shortest === undefined) throw new Error('no recorded stream')
  const bytes = Buffer.from(shortest.response_body, 'base64')
  const framesOf = (...chunks: Buffer[]): string[] => {
    const frames: string[] = []
    const framer = newFramer('aws-events', {
      frame: (name, data) => frames.push(`${name} ${data}`),
    })
    for (const chunk of chunks) framer.write(chunk)
    framer.end()
    return frames
  }
  const expected = framesOf(bytes)
  for (let at = 1; at < bytes.length; at += 1) {
    t.same(framesOf(bytes.subarray(0, at), bytes.subarray(at)), expected, `byte ${at}`)
  }
  t.end()
})

/** Streams of InvokeModel: of Claude, and those of models with a format of their own. */
const INVOKES = fixtures({ provider: 'bedrock', api: 'invoke-stream', status: 200 })

void t.test('Claude behind InvokeModel, for clients of each format', skipWithoutFixtures(), (t) => {
  let ofClaude = 0
  for (const recording of INVOKES) {
    const events = payloads(Buffer.from(recording.response_body, 'base64')).map(({ payload }) =>
      objectOf(JSON.parse(Buffer.from(stringOf(payload.bytes) ?? '', 'base64').toString()) as unknown),
    )
    const isClaude = events.some(({ type }) => type === 'message_stop')
    if (isClaude) ofClaude += 1
    const text = events.map(({ delta }) => stringOf(objectOf(delta).text) ?? '').join('')
    for (const client of CLIENTS) {
      const { outcomes, out, split } = replayed(recording, INVOKED, client)
      const expected = isClaude ? COMPLETE : { outcome: 'failed', breach: null }
      t.same(outcomes, expected, recording.name)
      t.equal(split, out, recording.name)
      t.notMatch(out, /invocationMetrics/)
      if (isClaude && text.length > 0) t.ok(out.length > text.length, recording.name)
    }
  }
  t.ok(ofClaude > 3)
  t.end()
})

void t.test("models behind Bedrock's OpenAI endpoints", skipWithoutFixtures(), (t) => {
  const found = [
    ...fixtures({ provider: 'bedrock', api: 'responses', status: 200 }),
    ...fixtures({ provider: 'bedrock', api: 'chat.completions', status: 200 }),
  ]
  t.ok(found.length > 5)
  for (const recording of found) {
    const upstreamCodec = upstreamCodecOf(recording.api === 'responses' ? 'openai-responses' : 'openai-chat')
    if (upstreamCodec === null) throw new Error('the dialect has no upstreamCodec')
    for (const client of CLIENTS) {
      const { outcomes, out, split } = replayed(recording, upstreamCodec, client)
      t.same(outcomes, COMPLETE, recording.name)
      t.equal(split, out, recording.name)
    }
  }
  t.end()
})

void t.test('recorded errors', skipWithoutFixtures(), (t) => {
  const refused = [400, 403, 404, 424, 429, 500, 503].flatMap((status) =>
    fixtures({ provider: 'bedrock', status }),
  )
  t.ok(refused.length > 10)
  for (const { status, response_headers: headers, response_body: body, name } of refused) {
    const error = converse.decodeError(status, headers, body)
    t.equal(error.kind, 'upstream_rejected', name)
    const message = stringOf(objectOf(JSON.parse(body) as unknown).message) ?? ''
    t.ok(message.endsWith(error.message), name)
  }
  t.end()
})
