/**
 * Goal: no input makes the decoder throw or break the grammar, and no content is lost between encoder and
 * decoder. Method: truncations and seeded corruptions of hand-written streams; seeded random replies and
 * requests that are encoded and decoded; a twentieth of them each day, the long suite all.
 */
import t from 'tap'
import type { ChatEvent, FinishReason } from '../../../src/formats/chat/event.js'
import { Fold, type Reply } from '../../../src/formats/chat/fold.js'
import type { ModelFacts } from '../../../src/formats/chat/model-facts.js'
import type { ChatRequest, Message, Tool, ToolCall, UserPart } from '../../../src/formats/chat/request.js'
import { encodeFinishReason } from '../../../src/formats/openai-chat/client/encode-reply.js'
import { stopReasonOf } from '../../../src/formats/wire/stop-reasons.js'
import {
  chunk,
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
  usageChunk,
} from './driver.js'
import { TODAY } from '../../helpers/long-suite.js'
import { dice } from '../../helpers/seeded-random.js'

const args = (index: number, text: string): string =>
  chunk({ tool_calls: [{ index, function: { arguments: text } }] })
const head = (index: number): string =>
  chunk({
    tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name: 'f', arguments: '' } }],
  })
const ROLE = chunk({ role: 'assistant', content: '' })

/** Complete streams. A truncation or corruption of one must end in exactly one error or finish. */
const STREAMS = [
  [ROLE, chunk({ content: 'Hé' }), chunk({ content: 'llo \u{1F600}' }), chunk({}, 'stop'), '[DONE]'],
  [ROLE, head(0), args(0, '{"a":'), args(0, '1}'), chunk({}, 'tool_calls'), usageChunk(3, 4), '[DONE]'],
  [head(0), head(1), args(1, '{"b":'), args(0, '{}'), args(1, '2}'), chunk({}, 'tool_calls'), '[DONE]'],
  [
    ROLE,
    chunk({ reasoning_content: 'Hm' }),
    chunk({ refusal: 'No' }),
    chunk({}, 'content_filter'),
    usageChunk(1, 1),
    '[DONE]',
  ],
]

const ends = (events: readonly ChatEvent[]): number =>
  events.filter(({ type }) => type === 'finish' || type === 'error').length

void t.test('every truncation ends in exactly one finish or error', (t) => {
  let cuts = 0
  for (const frames of STREAMS) {
    const finished = frames.findIndex((frame) => /"finish_reason":"/.test(frame))
    for (let length = 0; length <= frames.length; length += 1) {
      const { events, breach, error } = decodeFrames(frames.slice(0, length))
      t.equal(breach, null)
      t.equal(ends(events), 1)
      t.equal(error === null, length > finished, `${length} of ${frames.length} frames`)
      cuts += 1
    }
    // A frame that is truncated inside is never complete.
    for (const [at, frame] of frames.entries()) {
      for (let length = 1; length < frame.length; length += 7) {
        const { error, breach } = decodeFrames([...frames.slice(0, at), frame.slice(0, length)])
        t.equal(breach, null)
        t.equal(error?.kind, 'upstream_malformed')
        cuts += 1
      }
    }
  }
  t.comment(`${cuts} cuts`)
  t.end()
})

for (const part of TODAY)
  void t.test(`1,000 corrupted streams, part ${part}, follow the grammar`, (t) => {
    const next = dice(part)
    const pick = <T>(from: readonly T[]): T => {
      const it = from[Math.floor(next() * from.length)]
      if (it === undefined) throw new Error('nothing to pick from')
      return it
    }
    const VALUES = [
      'null',
      '-1',
      '1e400',
      '"x"',
      '[]',
      '{}',
      '[{}]',
      'true',
      '""',
      '{"index":7}',
      '"\\ud83d"',
    ]
    const damage = (frame: string): string => {
      const at = Math.floor(next() * frame.length)
      switch (Math.floor(next() * 5)) {
        case 0:
          return frame.slice(0, at)
        case 1:
          return frame.slice(0, at) + String.fromCharCode(next() * 128) + frame.slice(at + 1)
        case 2:
          return frame.slice(0, at) + frame.slice(at + Math.floor(next() * 9))
        case 3:
          return frame.replace(/:("[^"]*"|null|\d+|\{\}|\[\])/g, (it) =>
            next() < 0.15 ? `:${pick(VALUES)}` : it,
          )
        default:
          return frame.replace(/"(\w+)":/g, (it) => (next() < 0.1 ? `"x":` : it))
      }
    }
    let broken = 0
    for (let round = 0; round < 1_000; round += 1) {
      const frames = [...pick(STREAMS)]
      for (let hits = 1 + Math.floor(next() * 3); hits > 0; hits -= 1) {
        const at = Math.floor(next() * frames.length)
        const kind = next()
        if (kind < 0.6) frames[at] = damage(frames[at] ?? '')
        else if (kind < 0.75) frames.splice(at, 1)
        else frames.splice(at, 0, pick(pick(STREAMS)))
      }
      const { events, breach, error } = decodeFrames(frames)
      if (breach !== null) t.fail(`${breach}: ${JSON.stringify(frames)}`)
      if (ends(events) !== 1) t.fail(`${ends(events)} ends: ${JSON.stringify(frames)}`)
      if (error !== null) broken += 1
      const watcher = upstreamCodec.newWatcher?.({ includeUsage: false })
      for (const frame of frames) watcher?.frame('', frame)
      decodeBody(safe(frames[0] ?? ''))
    }
    t.ok(broken > 50 && broken < 1_000, `${broken} ended in an error`)
    t.end()
  })

function safe(text: string): Record<string, never> {
  try {
    return JSON.parse(text) as Record<string, never>
  } catch {
    return {}
  }
}

const TEXTS = ['a', ' ', '\n', 'é\u{1F600}', '"\\', '</s>', '\u2028', 'data: x', '\ud83d', 'null']
const JSONS = ['{}', '{"a":1}', '{"n":12345678901234567890}', '{"s":"}{"}', '{"é":[1,{"x":null}]}']
const REASONS: FinishReason[] = ['stop', 'length', 'tool-use', 'filter', 'pause', 'other']

/** A grammatical stream whose neighbouring blocks differ in kind, because this format merges equal ones. */
function randomEvents(next: () => number): ChatEvent[] {
  const events: ChatEvent[] = [{ type: 'start', id: 'up', model: 'up' }]
  const from = (list: readonly string[]): string => list[Math.floor(next() * list.length)] ?? ''
  let last = ''
  for (let index = 0, count = Math.floor(next() * 6); index < count; index += 1) {
    const kinds = (['text', 'thinking', 'refusal', 'tool', 'tool'] as const).filter(
      (kind) => kind === 'tool' || kind !== last,
    )
    const kind = kinds[Math.floor(next() * kinds.length)] ?? 'tool'
    last = kind
    if (kind === 'tool') {
      const json = next() < 0.2 ? '' : from(JSONS)
      const cut = Math.floor(next() * json.length)
      events.push({ type: 'tool-start', index, id: `call_${index}`, name: `f_${index}` })
      events.push({ type: 'tool-delta', index, json: json.slice(0, cut) })
      events.push({ type: 'tool-delta', index, json: json.slice(cut) })
      events.push({ type: 'tool-end', index })
    } else {
      events.push({ type: `${kind}-start`, index })
      for (let at = 0; at <= next() * 4; at += 1) {
        events.push({ type: `${kind}-delta`, index, text: from(TEXTS) })
      }
      events.push({ type: `${kind}-end`, index })
    }
  }
  events.push({ type: 'usage', usage: { input: 5, output: 2, cacheRead: 1, reasoning: 1 } })
  const reason = REASONS[Math.floor(next() * REASONS.length)] ?? 'stop'
  events.push({ type: 'finish', reason, raw: null })
  return events
}

function folded(events: readonly ChatEvent[]): Reply {
  const fold = new Fold()
  for (const event of events) fold.event(event)
  const reply = fold.reply()
  if (reply === null) throw new Error('no reply')
  return reply
}

for (const part of TODAY)
  void t.test(
    `50 random replies, part ${part}, are equal after encoding and decoding, streamed and whole`,
    (t) => {
      const next = dice(20 + part)
      const chatRequest: ChatRequest = { ...request(), stream: true, includeUsage: true }
      for (let round = 0; round < 50; round += 1) {
        const events = randomEvents(next)
        const reply = folded(events)
        for (const block of reply.blocks) if (block.type === 'tool') block.json ||= '{}'
        const tools = reply.blocks.some(({ type }) => type === 'tool')
        const raw = encodeFinishReason(reply.reason, tools, false)
        const expected = {
          ...reply,
          id: SEED.id,
          model: SEED.model,
          raw,
          reason: tools && raw === 'stop' ? 'tool-use' : stopReasonOf('openai-chat', raw),
        }
        const streamed = decodeFrames(framesOf(encodeEvents(events, chatRequest)))
        if (streamed.breach !== null) t.fail(streamed.breach)
        if (!t.same(streamed.reply, expected, `stream ${round}`)) break
        const whole = decodeBody(
          expectObject(JSON.parse(clientCodec.encodeReply(reply, chatRequest, SEED).text)),
        )
        const text = (from: Reply | null, kind: string): string[] =>
          (from?.blocks ?? []).flatMap((it) =>
            it.type !== kind || !('text' in it || 'json' in it) ? [] : ['json' in it ? it.json : it.text],
          )
        for (const kind of ['text', 'thinking', 'refusal']) {
          t.equal(text(whole.reply, kind).join(''), text(reply, kind).join(''))
        }
        t.same(text(whole.reply, 'tool'), text(reply, 'tool'))
      }
      t.end()
    },
  )

const FACTS: ModelFacts = { id: 'm', family: 'openai', createdAtSeconds: 0 }

/** A request that `decodeRequest` could return, with every field of this format. */
function randomRequest(next: () => number): ChatRequest {
  const some = <T>(value: T): T | undefined => (next() < 0.5 ? value : undefined)
  const one = <T>(...from: T[]): T => from[Math.floor(next() * from.length)] as T
  const text = (): { type: 'text'; text: string } => ({ type: 'text', text: one(...TEXTS) + 'x' })
  const part = (): UserPart =>
    one<UserPart>(
      text(),
      { type: 'image', source: { kind: 'url', url: 'https://a.example/x.png' }, detail: 'high' },
      { type: 'image', source: { kind: 'base64', mediaType: 'image/png', data: 'AAAA' } },
      { type: 'audio', format: 'mp3', data: 'AA+/' },
      { type: 'file', source: { kind: 'file-id', id: 'file-1' } },
      {
        type: 'file',
        source: { kind: 'base64', mediaType: 'application/pdf', data: 'JVBE' },
        filename: 'a.pdf',
      },
    )
  const messages: Message[] = []
  const add = (message: Message): void => void messages.push({ ...message, index: messages.length })
  if (next() < 0.5) add({ role: 'system', index: 0, parts: [text()] })
  for (let turn = 0; turn <= next() * 3; turn += 1) {
    add({ role: 'user', index: 0, parts: [part(), text()] })
    const toolCalls = ['a', 'b'].flatMap((name): ToolCall[] =>
      next() < 0.5 ? [] : [{ id: `${name}${turn}`, name, arguments: one(...JSONS, '{bad') }],
    )
    const call = toolCalls[0]
    if (call !== undefined && next() < 0.3) call.signature = 'sig'
    const thought = { type: 'thinking', text: 'Hm', origin: 'openai-chat' } as const
    const parts = next() < 0.5 ? [thought, text()] : [text(), text()]
    add({ role: 'assistant', index: 0, parts, toolCalls })
    for (const { id } of toolCalls) add({ role: 'tool', index: 0, callId: id, parts: [text()] })
  }
  add({ role: 'developer', index: 0, parts: [text()] })
  const tools: Tool[] = [
    { name: 'a', description: 'A', parameters: { type: 'object' }, strict: true },
    { name: 'b' },
    { name: 'c', custom: { format: { type: 'text' } } },
  ]
  const stream = next() < 0.5
  const whole = {
    model: 'm',
    messages,
    stream,
    includeUsage: stream,
    tools,
    toolChoice: some(
      one(
        { mode: one('auto', 'none', 'required') } as const,
        { mode: 'named', name: one('a', 'c') } as const,
        { mode: 'allowed', required: true, names: ['b', 'c'] } as const,
      ),
    ),
    parallelToolCalls: some(false),
    maxOutputTokens: some(7),
    temperature: some(0.5),
    topP: some(0.25),
    stop: some(['x', 'y']),
    frequencyPenalty: some(-2),
    presencePenalty: some(2),
    seed: some(3),
    candidates: some(2),
    logprobs: some(true),
    topLogprobs: some(5),
    responseFormat: some(
      one(
        { type: one('text', 'json-object') } as const,
        { type: 'json-schema', name: 'n', schema: { type: 'object' }, strict: true } as const,
      ),
    ),
    reasoningEffort: some(one<'none' | 'low' | 'max'>('none', 'low', 'max')),
    verbosity: some('low' as const),
    userId: some('u'),
    serviceTier: some('flex'),
    rest: next() < 0.5 ? {} : { logit_bias: { '5': 1 }, store: true, metadata: { k: 'v' } },
  }
  const given = Object.entries(whole).filter(([, value]) => value !== undefined)
  return Object.fromEntries(given) as unknown as ChatRequest
}

for (const part of TODAY)
  void t.test(`50 random requests, part ${part}, are equal after encoding and decoding`, (t) => {
    const next = dice(60 + part)
    const none = { drop: (path: string): never => t.fail(`lost ${path}`) as never }
    for (let round = 0; round < 50; round += 1) {
      const chatRequest = randomRequest(next)
      const body = upstreamCodec.encodeRequest(chatRequest, FACTS, none)
      if (!t.same(decode(expectObject(JSON.parse(JSON.stringify(body)))), chatRequest, `request ${round}`))
        break
    }
    t.end()
  })
