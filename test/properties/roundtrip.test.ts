/**
 * Goal: the output of the client's encoder contains all information of the events, and the stream and the
 * whole form of a reply are equal.
 * Method: seeded legal streams through grammar, encoder, framer, decoder and grammar again; the same through
 * the whole reply; every transcript's stream against its whole reply.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { ChatEvent } from '../../src/formats/chat/event.js'
import { Fold, type Reply } from '../../src/formats/chat/fold.js'
import { Grammar } from '../../src/formats/chat/grammar.js'
import { objectOf } from '../../src/base/json.js'
import type { DialectName } from '../../src/formats/dialect.js'
import { encodeFinishReason } from '../../src/formats/openai-chat/client/encode-reply.js'
import { stopReasonOf } from '../../src/formats/wire/stop-reasons.js'
import { streamReply, translateReply } from '../../src/gateway/streams/whole-reply.js'
import { SseFramer } from '../../src/formats/wire/frames/sse-framer.js'
import { ofToday } from '../helpers/long-suite.js'
import { legalStream } from './legal-streams.js'
import {
  client,
  cutAt,
  seededRoll,
  PAIRS,
  REQUEST,
  run,
  SEED,
  transcripts,
  upstream,
} from './transcript-streams.js'

/** Of the replies. */
const SEEDS = Array.from({ length: 2_000 }, (_, at) => at + 1)
const WHOLE = { ...REQUEST, stream: false, includeUsage: false }

function folded(events: readonly ChatEvent[]): Reply {
  const fold = new Fold()
  const grammar = new Grammar(fold)
  for (const event of events) grammar.event(event)
  return finished(fold, grammar)
}

function finished(fold: Fold, grammar: Grammar): Reply {
  const reply = fold.reply()
  if (reply === null) throw new Error(grammar.breach ?? fold.error?.message ?? 'no reply')
  return reply
}

function encoded(events: readonly ChatEvent[]): string {
  const encoder = client.newEncoder(REQUEST, SEED)
  for (const event of events) encoder.event(event)
  return encoder.take()
}

function decoded(bytes: Buffer, dialect: DialectName): Reply {
  const fold = new Fold()
  const grammar = new Grammar(fold)
  const decoder = upstream(dialect).newDecoder(REQUEST, grammar)
  const framer = new SseFramer(decoder)
  framer.write(bytes)
  framer.end()
  decoder.end()
  return finished(fold, grammar)
}

/** The reply as chat completions represent it: with their id, model and finish reason. */
function representable(reply: Reply): Reply {
  const tools = reply.blocks.some(({ type }) => type === 'tool')
  const raw = encodeFinishReason(reply.reason, tools, false)
  const reason = tools && raw === 'stop' ? 'tool-use' : stopReasonOf('openai-chat', raw)
  // Only the ledger uses the lifetime of cache writes, and numbers of pictures.
  const usage = { ...reply.usage }
  delete usage.cacheWrite1h
  delete usage.units
  return { ...reply, id: SEED.id, model: SEED.model, raw, reason, usage }
}

void t.test('replies through encoder, framer and decoder', (t) => {
  const [passed] = PAIRS
  const again = PAIRS.find(({ name }) => name === 'openai-chat translated')
  if (passed === undefined || again === undefined) throw new Error('the pairs are gone')
  for (const seed of ofToday(SEEDS)) {
    const roll = seededRoll(seed)
    const events = legalStream(roll, { isRepresentable: true })
    const bytes = Buffer.from(encoded(events))
    if (!t.same(decoded(bytes, 'openai-chat'), representable(folded(events)), `seed ${seed}`)) break
    const chunks = cutAt(
      bytes,
      Array.from({ length: roll(9) }, () => roll(bytes.length + 1)),
    )
    // The gateway's own stream, read as an upstream's, must pass unchanged.
    const text = bytes.toString('latin1')
    if (run(passed, chunks).out !== text) t.fail(`seed ${seed}: is not forwarded unchanged`)
    const { out, outcome } = run(again, chunks)
    if (out !== text || outcome !== 'complete') t.fail(`seed ${seed}: is translated to another`)
  }
  t.end()
})

/** The texts of a reply by kind, and its calls: the parts that a whole reply distinguishes. */
function contentOf(reply: Reply): unknown {
  const words = (kind: 'text' | 'thinking' | 'refusal'): string =>
    reply.blocks.map((block) => (block.type === kind ? block.text : '')).join('')
  const calls = reply.blocks.flatMap((block) =>
    block.type === 'tool' ? [{ id: block.id, name: block.name, json: compact(block.json) }] : [],
  )
  const { usage: counts, reason } = reply
  // Chat completions have no counts of the calls of a provider's tools.
  const usage = { ...counts }
  delete usage.calls
  return [words('text'), words('thinking'), words('refusal'), calls, usage, reason]
}

/** Arguments without spaces, because a whole reply has different ones. */
function compact(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json))
  } catch {
    return json
  }
}

void t.test('replies through the whole form, and back to a stream', (t) => {
  const upstreamCodec = upstream('openai-chat')
  for (const seed of ofToday(SEEDS)) {
    const reply = folded(legalStream(seededRoll(seed), { isRepresentable: true }))
    const { text: body, bytes } = client.encodeReply(reply, WHOLE, SEED)
    if (bytes !== Buffer.byteLength(body)) t.fail(`seed ${seed}: has other bytes`)
    const parsed = objectOf(JSON.parse(body))
    const once = translateReply(parsed, {
      upstreamCodec,
      clientCodec: client,
      request: WHOLE,
      seed: SEED,
    })
    if (once.body !== body) t.fail(`seed ${seed}: is translated to another`)
    const streamed = streamReply(parsed, {
      upstreamCodec,
      clientCodec: client,
      request: REQUEST,
      seed: SEED,
    })
    const received = decoded(Buffer.from(streamed.body), 'openai-chat')
    if (!t.same(contentOf(received), contentOf(representable(reply)), `seed ${seed}`)) break
  }
  t.end()
})

void t.test('every transcript: its stream and its whole reply are equal', (t) => {
  let pairs = 0
  for (const { dialect, name, bytes } of transcripts) {
    const file = join(process.cwd(), 'test/transcripts', `${name}.reply.json`)
    if (!existsSync(file)) continue
    pairs += 1
    const body = objectOf(JSON.parse(readFileSync(file, 'utf8')))
    const recorder = decoded(bytes, dialect)
    const whole = translateReply(body, {
      upstreamCodec: upstream(dialect),
      clientCodec: client,
      request: WHOLE,
      seed: SEED,
    })
    t.equal(whole.outcome, 'complete', name)
    // Without `include_usage`, chat completions have the counts only in a whole reply.
    const isCounted = Object.keys(recorder.usage).length > 0
    const reply = isCounted ? recorder : { ...recorder, usage: whole.usage }
    const streamed = objectOf(JSON.parse(client.encodeReply(reply, WHOLE, SEED).text))
    t.same(spaceless(objectOf(JSON.parse(whole.body))), spaceless(streamed), name)
    t.equal(whole.reason, reply.reason)
    const again = streamReply(body, {
      upstreamCodec: upstream(dialect),
      clientCodec: client,
      request: REQUEST,
      seed: SEED,
    })
    t.same(contentOf(decoded(Buffer.from(again.body), 'openai-chat')), contentOf(representable(reply)), name)
  }
  t.ok(pairs >= 15, `${pairs} transcripts`)
  t.end()
})

function spaceless(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, member: unknown) =>
      key === 'arguments' && typeof member === 'string' ? compact(member) : member,
    ),
  ) as unknown
}
