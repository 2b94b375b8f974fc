/**
 * Goal: a client of the Messages format gets complete and correct replies from every upstream dialect,
 * regardless of chunk boundaries; and the encoder's output contains all information of the events.
 * Method: prefixes, splits and seeded corruptions of every transcript; seeded legal streams through grammar
 * and encoder, and back through the decoder that reads Anthropic's own replies.
 */
import t from 'tap'
import type { ChatEvent } from '../../../src/formats/chat/event.js'
import { Fold, type Reply } from '../../../src/formats/chat/fold.js'
import { Grammar } from '../../../src/formats/chat/grammar.js'
import { objectOf } from '../../../src/base/json.js'
import { clientCodecOf } from '../../../src/formats/index.js'
import { SseFramer } from '../../../src/formats/wire/frames/sse-framer.js'
import { faultsOfReply } from '../../conformance/clients/client-forms.js'
import { isToday } from '../../helpers/long-suite.js'
import { checkClient } from './client-format.js'
import { legalStream } from '../legal-streams.js'
import { seededRoll, SEED, upstream } from '../transcript-streams.js'

const ENDPOINT = { operation: 'chat' } as const
const BODY = {
  model: 'client-model',
  max_tokens: 100,
  messages: [{ role: 'user', content: 'Hello' }],
  stream: true,
}

checkClient(t, {
  dialect: 'anthropic',
  body: BODY,
  endpoint: ENDPOINT,
  claims: (frames) => frames.some((data) => /"type"\s*:\s*"message_stop"/.test(data)),
})

const client = clientCodecOf('anthropic')
const upstreamCodec = upstream('anthropic')
const REQUEST = client.decodeRequest(BODY, ENDPOINT)
const seed = { ...SEED, id: 'msg_property', origin: 'openai-responses' as const }

function folded(events: readonly ChatEvent[]): Reply {
  return read((grammar) => {
    for (const event of events) grammar.event(event)
  })
}

function read(feed: (grammar: Grammar) => void): Reply {
  const fold = new Fold()
  const grammar = new Grammar(fold)
  feed(grammar)
  const reply = fold.reply()
  if (reply === null) throw new Error(grammar.breach ?? fold.error?.message ?? 'no reply')
  return reply
}

/** The texts of a reply by kind, its calls, its finish reason, and its usage. */
function contentOf(reply: Reply): unknown {
  const words = (kind: 'text' | 'thinking' | 'refusal'): string =>
    reply.blocks.map((block) => (block.type === kind ? block.text : '')).join('')
  const calls = reply.blocks.flatMap((block) =>
    block.type === 'tool' ? [[block.id, block.name, JSON.parse(block.json || '{}') as unknown]] : [],
  )
  const { input = 0, output = 0, reasoning } = reply.usage
  return { text: words('text'), thinking: words('thinking'), calls, input, output, reasoning }
}

void t.test('2,000 replies through the encoders, and back', (t) => {
  for (let index = 1; index <= 2_000; index += 1) {
    if (!isToday(index)) continue
    const events = legalStream(seededRoll(index))
    const reply = folded(events)
    const encoder = client.newEncoder(REQUEST, seed)
    for (const event of events) encoder.event(event)
    const bytes = Buffer.from(encoder.take())
    const text = bytes.toString('utf8')
    const answered = { status: 200, type: 'text/event-stream', text, whole: true }
    // Opaque blocks represent those of Anthropic's own tools.
    const faults = faultsOfReply(answered, true).filter((fault) => !/^a block of type/.test(fault))
    if (!t.same(faults, [], `seed ${index}: the order of the format`)) break
    const streamed = read((grammar) => {
      const decoder = upstreamCodec.newDecoder(REQUEST, grammar)
      const framer = new SseFramer(decoder)
      framer.write(bytes)
      framer.end()
      decoder.end()
    })
    if (!t.same(contentOf(streamed), contentOf(reply), `seed ${index}: the stream`)) break
    const { text: body, bytes: size } = client.encodeReply(reply, REQUEST, seed)
    if (size !== Buffer.byteLength(body)) t.fail(`seed ${index}: has other bytes`)
    const whole = read((grammar) => {
      upstreamCodec.decodeReply(objectOf(JSON.parse(body)), REQUEST, grammar)
    })
    if (!t.same(contentOf(whole), contentOf(reply), `seed ${index}: the whole reply`)) break
    if (!t.equal(whole.reason, streamed.reason, `seed ${index}: one reason`)) break
  }
  t.end()
})
