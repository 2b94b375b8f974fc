/**
 * Goal: the framer gives the same frames, unframed text and results for all chunk boundaries.
 * Method: handwritten streams and every recorded one, in every 2-way split, byte by byte and in seeded k-way
 * splits, compared with a simple parser of the whole text.
 */
import t from 'tap'
import type { Test } from 'tap'
import { SseFramer } from '../../src/formats/wire/frames/sse-framer.js'
import { fixturesFolder, recordings } from '../helpers/fixtures.js'

interface Frame {
  name: string
  data: string
}

/** A naive implementation of the rules: split at every line end, then fold. */
function naive(bytes: Buffer): Frame[] {
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '')
  const frames: Frame[] = []
  let name = ''
  let data: string[] = []
  const lines = text.split(/\r\n|\r|\n/)
  const tail = lines.pop() ?? ''
  const field = (line: string): void => {
    const match = /^([^:]*)(?::(?: )?([^]*))?$/.exec(line)
    if (match === null) return
    if (match[1] === 'data') data.push(match[2] ?? '')
    if (match[1] === 'event') name = match[2] ?? ''
  }
  const flush = (): void => {
    const joined = data.join('\n')
    if (joined !== '') frames.push({ name, data: joined })
    name = ''
    data = []
  }
  for (const line of lines) {
    if (line === '') flush()
    else field(line)
  }
  if (tail !== '') field(tail)
  try {
    if (data.join('\n') !== '[DONE]') JSON.parse(data.join('\n'))
    flush()
  } catch {
    data = []
  }
  return frames
}

function run(chunks: Buffer[]): { frames: Frame[]; truncated: boolean } {
  const frames: Frame[] = []
  const framer = new SseFramer({ frame: (name, data) => frames.push({ name, data }) })
  for (const chunk of chunks) framer.write(chunk)
  framer.end()
  return { frames, truncated: framer.truncatedTail }
}

/** The same in byte mode: frames decoded, and everything that a pass-through would write. */
function runBytes(chunks: Buffer[]): { frames: Frame[]; raws: string[]; written: string } {
  const frames: Frame[] = []
  const raws: string[] = []
  let written = ''
  const framer: SseFramer = new SseFramer(
    {
      frame(name, data) {
        frames.push({ name: decoded(name), data: decoded(data) })
        raws.push(framer.raw)
        written += framer.raw
      },
    },
    { bytes: true },
  )
  for (const chunk of chunks) {
    framer.write(chunk)
    written += framer.takeUnframed()
  }
  framer.end()
  written += framer.takeUnframed()
  return { frames, raws, written }
}

function decoded(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString('utf8')
}

function cutAt(bytes: Buffer, cuts: number[]): Buffer[] {
  const edges = [0, ...cuts.sort((a, b) => a - b), bytes.length]
  return edges.slice(1).map((edge, i) => bytes.subarray(edges[i] ?? 0, edge))
}

/** A random generator with a seed, so that failures can be reproduced (mulberry32). */
function seeded(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let x = Math.imul(state ^ (state >>> 15), 1 | state)
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x
    return ((x ^ (x >>> 14)) >>> 0) % below
  }
}

const written: Record<string, string> = {
  'line feeds': 'data: {"a":1}\n\ndata: {"a":2}\n\ndata: [DONE]\n\n',
  'carriage returns and line feeds': 'data: {"a":1}\r\n\r\ndata: {"b":"é"}\r\n\r\n',
  'lone carriage returns': 'event: x\rdata: {"a":1}\r\rdata: 2\r\rdata: 3\r\r',
  'every line end in one': 'data: 1\n\r\ndata: 2\r\n\rdata: 3\r\n\ndata: 4\r\r\n\n\r\rdata: 5\n\n',
  'a byte order mark': '\uFEFFdata: {"a":1}\n\ndata: \uFEFFx\n\n',
  'a byte order mark on a blank line': '\uFEFF\n\ndata: 1\n\n',
  'characters of two to four bytes': 'event: grüße\ndata: {"t":"äöü 漢字 🦊👩‍👩‍👧 \u2028"}\n\n',
  'comments everywhere':
    ': hello\n\n: OPENROUTER PROCESSING\n\nevent: a\n: inside\ndata: 1\n:\n\n: after\ndata: 2\n\n: last',
  'data in many lines': 'data: {\ndata: "a":\ndata:1\ndata: }\n\ndata\ndata\n\ndata\n\n',
  'one space only': 'data:  two\n\ndata:none\n\ndata:\ttab\n\nevent:  e\ndata: 1\n\n',
  'unknown fields': 'id: 1\nretry: 10\nfoo: bar\ndatas: 1\ndat: 2\n data: 3\nDATA: 4\ndata: 5\n\nx\n\n',
  'an event without data': 'event: ping\n\ndata: 1\n\nevent\ndata: 2\n\nevent: a\nevent: b\ndata: 3\n\n',
  'empty data': 'data:\n\ndata: \n\nevent: x\ndata\n\ndata: 1\n\n',
  'colons in the value': 'data: a:b: c\nevent: x:y\n\n',
  'a whole tail': 'data: 1\n\nevent: end\ndata: {"x":[1,2]}',
  'a whole tail with its line end': 'data: 1\n\ndata: [DONE]\n',
  'a tail with a carriage return': 'data: 1\n\ndata: {"a":2}\r',
  'a cut tail': 'data: 1\n\ndata: {"x":[1,2',
  'a tail cut in a character': 'data: {"x":"é"}\n\ndata: {"x":"\u00e9',
  'a tail without data': 'data: 1\n\nevent: mess',
  'only line ends': '\n\n\r\n\r\r\n',
  nothing: '',
}

function check(t: Test, bytes: Buffer, cuts: Iterable<number[]>): void {
  const expected = naive(bytes)
  const whole = run([bytes])
  const wholeBytes = runBytes([bytes])
  t.same(whole.frames, expected, 'the frames are those of the naive parser')
  t.same(wholeBytes.frames, expected, 'and so in byte mode')
  const unmarked = bytes.toString('latin1').replace(/^\u00EF\u00BB\u00BF/, '')
  t.equal(wholeBytes.written, unmarked, 'no byte but a mark at the start is lost')
  let cutting = 0
  let wrong = 0
  for (const cut of cuts) {
    const chunks = cutAt(bytes, cut)
    const parts = run(chunks)
    const partBytes = runBytes(chunks)
    cutting += 1
    const isSame =
      JSON.stringify(parts) === JSON.stringify(whole) &&
      JSON.stringify(partBytes.frames) === JSON.stringify(expected) &&
      partBytes.written === wholeBytes.written
    if (!isSame && wrong++ === 0) t.same({ cut, ...parts }, { cut, ...whole })
  }
  t.equal(wrong, 0, `${cutting} cuts give the same`)
}

function* everySplit(length: number): Generator<number[]> {
  for (let index = 0; index <= length; index += 1) yield [index]
  yield Array.from({ length }, (_, index) => index)
}

function* someSplits(length: number, seed: number, count: number): Generator<number[]> {
  const random = seeded(seed)
  for (let i = 0; i < count; i += 1) {
    yield Array.from({ length: 1 + random(12) }, () => random(length + 1))
  }
}

for (const [name, text] of Object.entries(written)) {
  void t.test(`a stream with ${name} in all chunk boundaries`, (t) => {
    const bytes = Buffer.from(text)
    check(t, bytes, everySplit(bytes.length))
    check(t, bytes, someSplits(bytes.length, 7, 200))
    t.end()
  })
}

void t.test('invalid UTF-8 is replaced the same way for all chunk boundaries', (t) => {
  const bytes = Buffer.concat([
    Buffer.from('data: '),
    Buffer.from([0xff, 0xe2, 0x82, 0x41, 0xf0, 0x9f, 0x98]),
    Buffer.from('\n\ndata: 1\n\n'),
  ])
  check(t, bytes, everySplit(bytes.length))
  t.end()
})

void t.test('every recorded stream, in seven-byte chunks and in seeded cuts', (t) => {
  const folder = fixturesFolder()
  if (folder === null) {
    t.comment('no recordings here: the streams above are all that was checked')
    t.end()
    return
  }
  let streams = 0
  let frames = 0
  for (const { name, recording } of recordings(folder)) {
    const body = sseBody(recording)
    if (body === null) continue
    streams += 1
    const bytes = Buffer.from(body)
    const expected = naive(bytes)
    frames += expected.length
    const sevens = Array.from({ length: Math.floor(bytes.length / 7) }, (_, i) => i * 7)
    for (const cut of [[], sevens, ...someSplits(bytes.length, streams, 2)]) {
      const chunks = cutAt(bytes, cut)
      const parts = run(chunks)
      if (JSON.stringify(parts.frames) !== JSON.stringify(expected)) t.fail(`${name} differs`)
      if (runBytes(chunks).written !== bytes.toString('latin1')) t.fail(`${name} loses bytes`)
    }
  }
  t.comment(`${streams} streams, ${frames} frames`)
  t.ok(streams > 100, 'the recordings hold streams')
  t.end()
})

function sseBody(recording: unknown): string | null {
  if (typeof recording !== 'object' || recording === null) return null
  if (!('response_body' in recording) || !('stream' in recording)) return null
  const { response_body: body, stream } = recording
  return stream === true && typeof body === 'string' && /^(data|event|:)/.test(body) ? body : null
}
