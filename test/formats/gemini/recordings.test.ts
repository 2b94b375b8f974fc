/**
 * Goal: recorded replies of Gemini and Vertex are decoded completely. Method: the framer, with chunks of odd
 * sizes, and the decoder read each recording; text, calls, finish reason and usage are compared with a naive
 * extraction that shares no code with the decoder.
 */
import t, { type Test } from 'tap'
import { fixturesFolder, recordings } from '../../helpers/fixtures.js'
import { isObject, type JsonObject } from '../../../src/base/json.js'
import { decodeError } from '../../../src/formats/gemini/upstream/decode-error.js'
import { GeminiDecoder } from '../../../src/formats/gemini/upstream/decode-reply.js'
import { SseFramer } from '../../../src/formats/wire/frames/sse-framer.js'
import { collectEvents, type Decoded } from '../collect-events.js'
import { chatRequest, decodeReply } from './driver.js'

/** Recordings that are failures although the status was 200: calls of undeclared tools. */
const FAILED: Readonly<Record<string, string>> = {
  UNEXPECTED_TOOL_CALL: 'upstream_failed',
}

interface Naive {
  text: string
  thoughts: string
  calls: { name: unknown; args: unknown }[]
  finish: string | null
  counts: Record<string, number>
  kinds: Record<string, JsonObject[]>
  blocked: boolean
  searches: number
  pictures: number
}

/** The chunks of a recording, in any of its stream formats. */
function chunksOf(body: string): JsonObject[] {
  const trimmed = body.trim()
  const texts = trimmed.startsWith('data:')
    ? body.split('\r\n\r\n').flatMap((block) => (block.trim() === '' ? [] : [block.trim().slice(5)]))
    : [trimmed]
  return texts.flatMap((text) => {
    const value: unknown = JSON.parse(text)
    return (Array.isArray(value) ? value : [value]).filter(isObject)
  })
}

function readNaively(chunks: JsonObject[]): Naive {
  const naive: Naive = {
    text: '',
    thoughts: '',
    calls: [],
    finish: null,
    counts: {},
    kinds: {},
    blocked: false,
    searches: 0,
    pictures: 0,
  }
  for (const chunk of chunks) {
    if (isObject(chunk.promptFeedback)) naive.blocked = true
    for (const [name, value] of Object.entries(isObject(chunk.usageMetadata) ? chunk.usageMetadata : {})) {
      if (typeof value === 'number') naive.counts[name] = value
      const side = SIDES.get(name)
      if (side !== undefined && Array.isArray(value)) naive.kinds[side] = value.filter(isObject)
    }
    const candidate = Array.isArray(chunk.candidates) ? chunk.candidates[0] : undefined
    if (!isObject(candidate)) continue
    naive.searches = searchesIn(candidate, chunk.modelVersion) ?? naive.searches
    const reason = candidate.finishReason
    if (typeof reason === 'string') naive.finish = reason
    if (typeof reason === 'number') naive.finish = reason === 1 ? 'STOP' : 'MAX_TOKENS'
    const content = candidate.content
    const parts = isObject(content) && Array.isArray(content.parts) ? content.parts : []
    for (const part of parts.filter(isObject)) {
      if (typeof part.text === 'string') naive[part.thought === true ? 'thoughts' : 'text'] += part.text
      const { mimeType } = isObject(part.inlineData) ? part.inlineData : {}
      if (typeof mimeType === 'string' && mimeType.startsWith('image/') && part.thought !== true) {
        naive.pictures += 1
      }
      const call = part.functionCall
      if (isObject(call)) naive.calls.push({ name: call.name, args: call.args ?? {} })
    }
  }
  return naive
}

/** Up to generation 2.5 Google bills the prompt, later the queries. */
function searchesIn({ groundingMetadata: metadata }: JsonObject, model: unknown): number | null {
  if (!isObject(metadata) || !Array.isArray(metadata.webSearchQueries)) return null
  const { length } = metadata.webSearchQueries
  if (length === 0) return null
  return typeof model === 'string' && model.startsWith('gemini-2') ? 1 : length
}

function expectedReason(naive: Naive): string {
  if (naive.finish === null && naive.blocked) return 'filter'
  if (naive.finish === 'STOP') return naive.calls.length > 0 ? 'tool-use' : 'stop'
  if (naive.finish === 'MAX_TOKENS') return 'length'
  return naive.finish === 'SAFETY' ? 'filter' : `? ${naive.finish ?? ''}`
}

const SIDES: ReadonlyMap<string, string> = new Map([
  ['promptTokensDetails', 'input'],
  ['cacheTokensDetails', 'cached'],
  ['candidatesTokensDetails', 'output'],
])

const NAMES: ReadonlyMap<unknown, string> = new Map([
  ['TEXT', 'Text'],
  ['IMAGE', 'Image'],
  ['AUDIO', 'Audio'],
  ['VIDEO', 'Video'],
])

function expectedUsage({ counts, kinds, searches, pictures }: Naive): Record<string, unknown> {
  const usage: Record<string, unknown> = {}
  if (searches > 0) usage['calls'] = { web_search: searches }
  if (pictures > 0) usage['units'] = { image: pictures }
  const { promptTokenCount: prompt, candidatesTokenCount: candidates } = counts
  const { thoughtsTokenCount: thoughts, cachedContentTokenCount: cached } = counts
  if (prompt !== undefined) usage['input'] = prompt + (counts['toolUsePromptTokenCount'] ?? 0)
  // One recording has output counts and no prompt count, which stays unknown.
  if ((prompt ?? candidates) !== undefined) usage['output'] = (candidates ?? 0) + (thoughts ?? 0)
  if (cached !== undefined) usage['cacheRead'] = cached
  if (thoughts !== undefined) usage['reasoning'] = thoughts
  for (const [side, counted] of Object.entries(kinds)) {
    if (counted.every(({ modality }) => modality === 'TEXT')) continue
    for (const { modality, tokenCount } of counted) {
      const name = NAMES.get(modality)
      // Zero is omitted.
      const isCounted = side !== 'cached' || modality === 'AUDIO' || modality === 'IMAGE'
      if (name !== undefined && isCounted && typeof tokenCount === 'number') usage[side + name] = tokenCount
    }
  }
  return usage
}

function decode(body: string): Decoded {
  if (!body.startsWith('data:')) {
    return collectEvents((sink) => {
      const decoder = new GeminiDecoder(chatRequest(), sink)
      decoder.frame('', body)
      decoder.end()
    })
  }
  return collectEvents((sink) => {
    const decoder = new GeminiDecoder(chatRequest(), sink)
    const framer = new SseFramer(decoder)
    const bytes = Buffer.from(body)
    for (let at = 0; at < bytes.length; at += 7) framer.write(bytes.subarray(at, at + 7))
    framer.end()
    decoder.end()
  })
}

function check(t: Test, name: string, body: string): string {
  const chunks = chunksOf(body)
  const naive = readNaively(chunks)
  const decoded = decode(body)
  t.equal(decoded.breach, null, `${name}: grammatical`)
  const failure = FAILED[naive.finish ?? '']
  if (failure !== undefined) {
    t.equal(decoded.error?.kind, failure, `${name}: fails`)
    t.equal(decoded.error?.upstreamCode, naive.finish, `${name}: names the reason`)
    return `${naive.finish ?? ''} as ${failure}`
  }
  const blocks = decoded.reply?.blocks ?? []
  const text = blocks.map((block) => (block.type === 'text' ? block.text : '')).join('')
  const thoughts = blocks.map((block) => (block.type === 'thinking' ? block.text : '')).join('')
  const calls = blocks.flatMap((block) => (block.type === 'tool' ? [block] : []))
  t.equal(text, naive.text, `${name}: text`)
  t.equal(thoughts, naive.thoughts, `${name}: thoughts`)
  t.strictSame(
    calls.map((call) => ({ name: call.name, args: JSON.parse(call.json) as unknown })),
    naive.calls,
    `${name}: calls`,
  )
  t.equal(new Set(calls.map((call) => call.id)).size, calls.length, `${name}: ids differ`)
  t.equal(decoded.reply?.reason, expectedReason(naive), `${name}: reason`)
  t.strictSame(decoded.usage, expectedUsage(naive), `${name}: usage`)
  if (chunks.length === 1) {
    t.strictSame(decodeReply(chunks[0] ?? null).reply, decoded.reply, `${name}: whole = stream`)
  }
  return decoded.reply?.reason ?? 'none'
}

void t.test('every recorded reply is decoded completely', (t) => {
  const folder = fixturesFolder()
  if (folder === null) {
    t.comment('No recordings on this machine: nothing was checked.')
    t.pass('skipped loudly')
    t.end()
    return
  }
  const tally = new Map<string, number>()
  const count = (what: string): void => void tally.set(what, (tally.get(what) ?? 0) + 1)
  for (const { name, recording } of recordings(folder)) {
    if (!/^(?:gemini|vertex-gemini)\//.test(name) || !isObject(recording)) continue
    const { api, status, response_body: body } = recording
    if (api !== 'generateContent' && api !== 'streamGenerateContent') continue
    if (typeof body !== 'string' || typeof status !== 'number') {
      t.fail(`${name}: not a recording`)
      continue
    }
    count('recordings')
    if (status === 200) {
      count(check(t, name, body))
      continue
    }
    const error = decodeError(status, {}, body)
    t.equal(error.kind, status === 404 ? 'unknown_model' : 'upstream_rejected', `${name}: error`)
    t.not(error.message, '', `${name}: has a message`)
    count(`error ${status}`)
  }
  for (const [what, times] of tally) t.comment(`${what}: ${times}`)
  t.ok((tally.get('recordings') ?? 0) >= 338, 'all recordings were read')
  t.end()
})
