/**
 * Goal: the whole form and the stream of a reply always fold to the same value.
 * Method: every recorded or written reply in one form is converted to the other by code that shares nothing
 * with the dialects; so are generated replies. Both are decoded.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Fold, type Reply } from '../../src/formats/chat/fold.js'
import { Grammar } from '../../src/formats/chat/grammar.js'
import { objectOf, type JsonObject } from '../../src/base/json.js'
import type { DialectName } from '../../src/formats/dialect.js'
import type { WireError } from '../../src/errors.js'
import { cases, objectsOf as framesIn } from '../conformance/recordings/recorded.js'
import { skipWithoutFixtures } from '../helpers/fixtures.js'
import { streamDataOf, wholeOf, type Form } from './convert-forms.js'
import { ofToday } from '../helpers/long-suite.js'
import { seededRoll, REQUEST, transcripts, upstream } from './transcript-streams.js'

const DIALECT: Readonly<Record<Form, DialectName>> = {
  openai: 'openai-chat',
  anthropic: 'anthropic',
  gemini: 'gemini',
}

interface Folded {
  readonly reply: unknown
  readonly error: WireError | null
}

function fold(form: Form, say: (grammar: Grammar) => void): Folded {
  const result = new Fold()
  const grammar = new Grammar(result)
  say(grammar)
  if (grammar.breach !== null) throw new Error(`${form}: ${grammar.breach}`)
  return { reply: comparable(result.reply()), error: result.error }
}

function foldWhole(form: Form, body: JsonObject): Folded {
  return fold(form, (grammar) => {
    upstream(DIALECT[form]).decodeReply(body, REQUEST, grammar)
  })
}

function foldStream(form: Form, fragments: readonly JsonObject[]): Folded {
  return fold(form, (grammar) => {
    const decoder = upstream(DIALECT[form]).newDecoder(REQUEST, grammar)
    for (const fragment of fragments) decoder.frame('', JSON.stringify(fragment))
    if (form === 'openai') decoder.frame('', '[DONE]')
    decoder.end()
  })
}

/**
 * Arguments as values, because a stream keeps their spaces. Unknown members of a chat completion are reported
 * as losses and are not part of the reply, so they are left out.
 */
function comparable(reply: Reply | null): unknown {
  if (reply === null) return null
  const blocks = reply.blocks
    .filter((block) => block.type !== 'opaque' || block.provider !== 'openai-chat')
    .map((block) => (block.type === 'tool' ? { ...block, json: valueOf(block.json) } : block))
  return { ...reply, blocks }
}

function valueOf(json: string): unknown {
  try {
    return json.trim() === '' ? {} : (JSON.parse(json) as unknown)
  } catch {
    return json
  }
}

function formOf(dialect: DialectName): Form | null {
  const forms = ['openai', 'anthropic', 'gemini'] as const
  return forms.find((form) => DIALECT[form] === dialect) ?? null
}

/** Streams of Responses repeat the whole response; `test/formats/openai-responses` compares the two. */
const good = cases().flatMap((it) =>
  it.recording.status === 200 && it.format !== 'responses' ? [{ ...it, format: it.format }] : [],
)

void t.test('every recorded stream, joined to a whole reply', skipWithoutFixtures(), (t) => {
  let count = 0
  for (const { format, label, recording } of good) {
    if (!recording.stream) continue
    const fragments = framesIn(recording.response_body)
    t.same(foldWhole(format, wholeOf(format, fragments)), foldStream(format, fragments), label)
    count += 1
  }
  t.comment(`${count} streams`)
  t.ok(count > 0)
  t.end()
})

void t.test('every recorded whole reply, split into a stream', skipWithoutFixtures(), (t) => {
  let count = 0
  for (const [index, { format, label, recording }] of good.entries()) {
    if (recording.stream) continue
    const body = objectOf(JSON.parse(recording.response_body))
    const fragments = streamDataOf(format, body, seededRoll(index))
    t.same(foldStream(format, fragments), foldWhole(format, body), label)
    count += 1
  }
  t.comment(`${count} replies`)
  t.ok(count > 0)
  t.end()
})

void t.test('every whole reply of the transcripts, split in twenty ways', (t) => {
  let count = 0
  for (const { dialect, name } of transcripts) {
    const file = join(process.cwd(), 'test/transcripts', `${name}.reply.json`)
    const form = formOf(dialect)
    if (form === null || !existsSync(file)) continue
    const body = objectOf(JSON.parse(readFileSync(file, 'utf8')))
    const whole = foldWhole(form, body)
    for (let seed = 1; seed <= 20; seed += 1) {
      t.same(foldStream(form, streamDataOf(form, body, seededRoll(seed))), whole, `${name}, seed ${seed}`)
    }
    count += 1
  }
  t.ok(count > 40)
  t.end()
})

const WORDS = ['a', ' ', '\n', 'é\u{1F600}', '"\\', '\u2028', '{"x":', 'a longer part of a text', '0']

function words(roll: (n: number) => number): string {
  return Array.from({ length: 1 + roll(5) }, () => WORDS[roll(WORDS.length)] ?? '').join('')
}

function inputOf(roll: (n: number) => number): JsonObject {
  const input: JsonObject = {}
  for (let index = roll(4); index > 0; index -= 1) {
    input[`key${index}`] = [words(roll), index, null, { deep: [index] }][roll(4)] ?? true
  }
  return input
}

/**
 * Kinds of blocks without two adjacent ones of the same kind, which a stream of Gemini or of chat completions
 * joins.
 */
function kindsOf(roll: (n: number) => number): ('text' | 'thinking' | 'tool')[] {
  const kinds: ('text' | 'thinking' | 'tool')[] = []
  for (let index = roll(6); index > 0; index -= 1) {
    const kind = (['text', 'thinking', 'tool'] as const)[roll(3)] ?? 'tool'
    if (kind === 'tool' || kinds.at(-1) !== kind) kinds.push(kind)
  }
  return kinds
}

function madeAnthropic(roll: (n: number) => number): JsonObject {
  const content = kindsOf(roll).map((kind, index): JsonObject => {
    if (kind === 'text') return { type: 'text', text: words(roll) }
    if (kind === 'thinking') {
      return {
        type: 'thinking',
        thinking: roll(3) === 0 ? '' : words(roll),
        signature: `s${index}`,
      }
    }
    return { type: 'tool_use', id: `toolu_${index}`, name: `f${index}`, input: inputOf(roll) }
  })
  const reasons = ['end_turn', 'max_tokens', 'tool_use', 'refusal', 'stop_sequence', 'news']
  return {
    id: 'msg_made',
    model: 'made',
    content,
    stop_reason: reasons[roll(reasons.length)] ?? null,
    usage: { input_tokens: roll(99), cache_read_input_tokens: roll(9), output_tokens: roll(99) },
  }
}

function madeGemini(roll: (n: number) => number): JsonObject {
  const parts = kindsOf(roll).map((kind, index): JsonObject => {
    const signed = roll(3) === 0 ? { thoughtSignature: `s${index}` } : {}
    if (kind === 'text') return { text: words(roll), ...signed }
    if (kind === 'thinking') return { text: words(roll), thought: true, ...signed }
    return { functionCall: { name: `f${index}`, args: inputOf(roll) }, ...signed }
  })
  const reasons = ['STOP', 'MAX_TOKENS', 'SAFETY', 'MALFORMED_RESPONSE', 'OTHER']
  const candidate = {
    content: { role: 'model', parts },
    finishReason: reasons[roll(reasons.length)] ?? 'STOP',
  }
  const usageMetadata = { promptTokenCount: roll(99), candidatesTokenCount: roll(99) }
  return { candidates: [candidate], usageMetadata, modelVersion: 'made', responseId: 'made' }
}

/** The whole form has one text, one thought and the calls, in the order of the format. */
function madeOpenAi(roll: (n: number) => number): JsonObject {
  const message: JsonObject = { role: 'assistant', content: roll(3) === 0 ? null : words(roll) }
  if (roll(3) === 0) message['reasoning_content'] = words(roll)
  if (roll(5) === 0) message['refusal'] = words(roll)
  const calls = Array.from({ length: roll(3) }, (_, index) => {
    const call = { name: `f${index}`, arguments: JSON.stringify(inputOf(roll)) }
    return { id: `call_${index}`, type: 'function', function: call }
  })
  if (calls.length > 0) message['tool_calls'] = calls
  const reasons = ['stop', 'length', 'tool_calls', 'content_filter', 'news']
  return {
    id: 'chatcmpl-made',
    model: 'made',
    choices: [{ index: 0, message, finish_reason: reasons[roll(reasons.length)] ?? 'stop' }],
    usage: { prompt_tokens: roll(99), completion_tokens: roll(99) },
  }
}

const MAKERS: Readonly<Record<Form, (roll: (n: number) => number) => JsonObject>> = {
  openai: madeOpenAi,
  anthropic: madeAnthropic,
  gemini: madeGemini,
}

/** Of the random replies. */
const SEEDS = Array.from({ length: 1_000 }, (_, at) => at + 1)

for (const form of ['openai', 'anthropic', 'gemini'] as const) {
  void t.test(`${form}: random replies`, (t) => {
    for (const seed of ofToday(SEEDS)) {
      const roll = seededRoll(seed)
      const body = MAKERS[form](roll)
      const fragments = streamDataOf(form, body, roll)
      const whole = foldWhole(form, body)
      if (!t.same(foldStream(form, fragments), whole, `seed ${seed}`)) break
      if (!t.same(foldWhole(form, wholeOf(form, fragments)), whole, `seed ${seed}, and back`)) break
    }
    t.end()
  })
}
