/**
 * Goal: recorded traffic of six providers is unchanged by decoding and encoding.
 * Method: a naive extraction in this test reads text, calls, finish reason and usage of each recording; the
 * codec must return the same, directly and after encoding and decoding again.
 */
import t from 'tap'
import { arrayOf, type JsonObject, objectOf, stringOf } from '../../../src/base/json.js'
import type { ChatRequest } from '../../../src/formats/chat/request.js'
import type { Reply } from '../../../src/formats/chat/fold.js'
import { GatewayError } from '../../../src/errors.js'
import { stopReasonOf } from '../../../src/formats/wire/stop-reasons.js'
import { fixturesFolder, recordings } from '../../helpers/fixtures.js'
import {
  decode,
  decodeBody,
  decodeFrames,
  upstreamCodec,
  encodeEvents,
  framesOf,
  clientCodec,
  expectObject,
  request,
  SEED,
} from './driver.js'

const PROVIDERS = ['openai', 'azure', 'groq', 'mistral', 'deepseek', 'openrouter']

/** Requests outside the format that their provider accepts: only an upstream of the format gets them. */
const OWN = new Map<RegExp, string>([
  [/groq-qwen3-effort-setting/, 'reasoning_effort "default" is Groq\'s alone'],
  [/-document-mistral\]\.[23]/, "document_url parts are Mistral's alone; the format has file parts"],
  [/openrouter_(?:advisor_tool|web_search)/, 'tools of type openrouter:… run at OpenRouter'],
])

interface Gist {
  text: string
  refusal: string
  thinking: string
  calls: { name: string; json: string }[]
  raw: string | null
  input: unknown
  output: unknown
}

const folder = fixturesFolder()
const recorded = folder === null ? [] : [...recordings(folder)]
const chats = recorded
  .map(({ name, recording }) => ({ name, it: expectObject(recording) }))
  .filter(({ name, it }) => {
    return it['api'] === 'chat.completions' && PROVIDERS.includes(name.split('/')[0] ?? '')
  })

/** Joins the content of whole messages or of deltas. */
function naive(fragments: readonly JsonObject[], usage: unknown): Gist {
  const gist: Gist = {
    text: '',
    refusal: '',
    thinking: '',
    calls: [],
    raw: null,
    input: objectOf(usage)['prompt_tokens'],
    output: objectOf(usage)['completion_tokens'],
  }
  for (const choice of fragments) {
    const actual = objectOf(choice['delta'] ?? choice['message'])
    if (typeof actual['content'] === 'string') gist.text += actual['content']
    for (const part of arrayOf(actual['content']).map(objectOf)) {
      gist.text += stringOf(part['text']) ?? ''
      for (const thought of arrayOf(part['thinking'])) {
        gist.thinking += stringOf(objectOf(thought)['text']) ?? ''
      }
    }
    gist.refusal += stringOf(actual['refusal']) ?? ''
    gist.thinking += stringOf(actual['reasoning_content'] ?? actual['reasoning']) ?? ''
    for (const [at, call] of arrayOf(actual['tool_calls']).map(objectOf).entries()) {
      const called = objectOf(call['function'])
      const place = typeof call['index'] === 'number' ? call['index'] : at
      const slot = gist.calls.at(place) ?? { name: '', json: '' }
      gist.calls[place] = slot
      slot.name += stringOf(called['name']) ?? ''
      slot.json += stringOf(called['arguments']) ?? ''
    }
    const legacy = actual['function_call']
    if (legacy !== undefined && legacy !== null) {
      const slot = gist.calls.at(0) ?? { name: '', json: '' }
      gist.calls[0] = slot
      slot.name += stringOf(objectOf(legacy)['name']) ?? ''
      slot.json += stringOf(objectOf(legacy)['arguments']) ?? ''
    }
    gist.raw = stringOf(choice['finish_reason']) ?? gist.raw
  }
  return gist
}

function gistOf(reply: Reply): Gist {
  const gist: Gist = {
    text: '',
    refusal: '',
    thinking: '',
    calls: [],
    raw: reply.raw,
    input: reply.usage.input,
    output: reply.usage.output,
  }
  for (const block of reply.blocks) {
    if (block.type === 'tool') gist.calls.push({ name: block.name, json: block.json })
    else if ('text' in block) gist[block.type] += block.text
  }
  return gist
}

/** The intended changes of encoding: absent counts become 0, missing arguments become `{}`. */
function asSent(gist: Gist, reply: Reply): Gist {
  const raw =
    gist.calls.length > 0 && reply.reason === 'tool-use'
      ? 'tool_calls'
      : { stop: 'stop', length: 'length', filter: 'content_filter' }[reply.reason as string]
  const calls = gist.calls.map(({ name, json }) => ({ name, json: json === '' ? '{}' : json }))
  return { ...gist, calls, raw: raw ?? 'stop', input: gist.input ?? 0, output: gist.output ?? 0 }
}

function requestOf(body: unknown): ChatRequest {
  try {
    return decode(expectObject(body))
  } catch (error) {
    if (error instanceof GatewayError) return request()
    throw error
  }
}

function firstChoice(chunk: JsonObject): JsonObject | null {
  return (
    arrayOf(chunk['choices'])
      .map(objectOf)
      .find((choice) => (choice['index'] ?? 0) === 0) ?? null
  )
}

void t.test('recorded requests are accepted', (t) => {
  let accepted = 0
  for (const { name, it } of chats) {
    const excuse = [...OWN].find(([pattern]) => pattern.test(name))?.[1]
    try {
      const { native = [] } = decode(expectObject(it['request_body']))
      accepted += 1
      const isBroken = native.some(({ isVendors }) => isVendors === true)
      t.equal(isBroken, excuse !== undefined, `${name} ${excuse ?? 'has no broken rule'}`)
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      t.ok(Number(it['status']) >= 400, `${name}: ${error.message}`)
    }
  }
  t.comment(`${accepted} of ${chats.length} recorded requests accepted`)
  t.end()
})

void t.test('recorded replies keep text, calls, reason and usage', (t) => {
  let count = 0
  for (const { name, it } of chats) {
    if (it['status'] !== 200 || it['stream'] === true) continue
    const body = expectObject(JSON.parse(stringOf(it['response_body']) ?? ''))
    // An error of status 400 in a body of status 200.
    if (name.startsWith('azure/') && body['error'] !== undefined) continue
    const choice = firstChoice(body)
    if (choice === null) throw new Error(`${name} has no choice`)
    const expected = naive([choice], body['usage'])
    const { reply, breach, error } = decodeBody(body, requestOf(it['request_body']))
    t.equal(breach, null, name)
    if (reply === null) {
      t.fail(`${name}: ${error?.message ?? 'no reply'}`)
      continue
    }
    t.same(gistOf(reply), expected, name)
    const plain = { ...request(), includeUsage: true }
    const again = decodeBody(expectObject(JSON.parse(clientCodec.encodeReply(reply, plain, SEED).text)))
    if (again.reply === null) t.fail(`${name}: not read again`)
    else t.same(gistOf(again.reply), asSent(expected, reply), `${name}, encoded`)
    const seen = upstreamCodec.replyFacts?.(body)
    t.equal(seen?.reason, expected.raw === null ? null : stopReasonOf('openai-chat', expected.raw), name)
    t.equal(seen?.usage.output, expected.output, name)
    count += 1
  }
  t.comment(`${count} recorded replies compared`)
  t.end()
})

void t.test('recorded streams keep text, calls, reason and usage', (t) => {
  let count = 0
  let failed = 0
  for (const { name, it } of chats) {
    if (it['status'] !== 200 || it['stream'] !== true) continue
    const frames = framesOf(stringOf(it['response_body']) ?? '')
    const chunks = frames.filter((f) => f !== '[DONE]').map((f) => expectObject(JSON.parse(f)))
    const outcome = decodeFrames(frames, requestOf(it['request_body']))
    t.equal(outcome.breach, null, name)
    const watcher = upstreamCodec.newWatcher?.({ includeUsage: true })
    for (const frame of frames) watcher?.frame('', Buffer.from(frame, 'utf8').toString('latin1'))
    if (chunks.some((chunk) => chunk['error'] !== undefined)) {
      t.ok(outcome.error !== null && watcher?.error !== null, `${name} reports its failure`)
      failed += 1
      continue
    }
    const usage = chunks.map((c) => c['usage'] ?? objectOf(c['x_groq'])['usage']).findLast(Boolean)
    const expected = naive(
      chunks.map(firstChoice).filter((c) => c !== null),
      usage,
    )
    if (outcome.reply === null) {
      t.fail(`${name}: ${outcome.error?.message ?? 'no reply'}`)
      continue
    }
    t.same(gistOf(outcome.reply), expected, name)
    t.equal(watcher?.usage.output, expected.output, name)
    t.equal(watcher?.reason, expected.raw === null ? null : stopReasonOf('openai-chat', expected.raw), name)
    t.equal(watcher?.isComplete, true, name)
    const plain = { ...request(), includeUsage: true }
    const again = decodeFrames(framesOf(encodeEvents(outcome.events, plain)))
    if (again.reply === null) t.fail(`${name}: not read again`)
    else t.same(gistOf(again.reply), asSent(expected, outcome.reply), `${name}, encoded`)
    count += 1
  }
  t.comment(`${count} recorded streams compared, ${failed} end in a reported failure`)
  t.end()
})
