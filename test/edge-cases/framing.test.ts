/**
 * Goal: known bugs of other gateways in bytes and events do not occur here; each test is one edge case of
 * `docs/reference/test-cases/edge-cases.md`, by its number.
 * Method: a provider's bytes in chosen chunks through the codecs.
 */
import t from 'tap'
import { TranslatedStream } from '../../src/formats/translated-stream.js'
import { SseFramer } from '../../src/formats/wire/frames/sse-framer.js'
import { client, REQUEST, SEED } from '../properties/transcript-streams.js'
import { fed, framed, streamed, upstream } from './drive-codecs.js'
import { candidate, chunk, messageEnd, messageStart, textBlock } from './provider-frames.js'

const WORDS = 'grüße 漢字 🐋 👩‍👩‍👧 \u2028'
const CLAUDE = [messageStart(), ...textBlock(0, WORDS), ...messageEnd('end_turn')]

function singly(text: string): Buffer[] {
  return [...Buffer.from(text)].map((byte) => Buffer.from([byte]))
}

void t.test('29: characters cut by the network became U+FFFD', (t) => {
  // https://github.com/musistudio/claude-code-router/issues/1672; https://github.com/katanemo/plano/issues/980; https://github.com/api7/aisix/issues/111
  const received = fed('anthropic', singly(framed('anthropic', CLAUDE)))
  t.equal(received.text, WORDS)
  t.notMatch(received.bytes, '\ufffd')
  t.end()
})

void t.test('30: a stream with CRLF was buffered until its end', (t) => {
  // https://github.com/nyroway/nyro/issues/265; https://github.com/praxis-proxy/praxis/issues/739
  const stream = new TranslatedStream({
    upstreamCodec: upstream('gemini'),
    clientCodec: client,
    request: REQUEST,
    seed: SEED,
  })
  const text = framed('gemini', [candidate([{ text: 'Hi' }])])
  t.ok(text.endsWith('\r\n\r\n'))
  t.match(stream.write(Buffer.from(text)), '"content":"Hi"', 'sent before the next frame')
  const collected: string[] = []
  const framer = new SseFramer({ frame: (_name, data) => collected.push(data) })
  for (const part of ['data: 1\r', '\n\r', '\ndata: 2\r\n', '\r\n', 'data: 3\r\r']) {
    framer.write(Buffer.from(part))
  }
  framer.end()
  t.same(collected, ['1', '2', '3'], 'and a CRLF in two chunks is one line end')
  t.end()
})

void t.test('31: a line end after every network chunk split the JSON', (t) => {
  // https://github.com/BerriAI/litellm/issues/30224
  const bytes = framed('anthropic', CLAUDE)
  const expected = fed('anthropic', [Buffer.from(bytes)]).bytes
  for (const size of [1, 2, 7, 64]) {
    const chunks: Buffer[] = []
    const all = Buffer.from(bytes)
    for (let index = 0; index < all.length; index += size) chunks.push(all.subarray(index, index + size))
    t.equal(fed('anthropic', chunks).bytes, expected, `${size} bytes at a time`)
  }
  t.end()
})

void t.test('32: data: without a space was not an event', (t) => {
  // https://github.com/praxis-proxy/praxis/issues/739
  const frames = [chunk({ content: ' Hi' }), chunk({}, 'stop'), '[DONE]']
  const tight = framed('openai-chat', frames).replaceAll('data: ', 'data:')
  t.match(fed('openai-chat', [Buffer.from(tight)]), { outcome: 'complete', text: ' Hi' })
  t.end()
})

void t.test('67: a surrogate pair split over two deltas became U+FFFD', (t) => {
  // "\ud83d" and "\udc0b" together are 🐋.
  const halves = ['\ud83d', '\udc0b']
  const deltas = halves.map((text) => ({
    type: 'content_block_delta',
    index: 0,
    delta: { type: 'text_delta', text },
  }))
  const [start, , stop] = textBlock(0, '')
  if (start === undefined || stop === undefined) throw new Error('a block has three frames')
  const frames = [messageStart(), start, ...deltas, stop, ...messageEnd('end_turn')]
  t.match(framed('anthropic', frames), '\\ud83d')
  const received = streamed('anthropic', frames)
  t.match(received.bytes, '"content":"\\ud83d"', 'as an escape')
  t.equal(received.text, '🐋')
  t.notMatch(Buffer.from(received.bytes).toString(), '\ufffd')
  t.end()
})
