/**
 * Goal: the chunk boundaries of an upstream's bytes do not change the client's output.
 * Method: every 2-way split (a twentieth of them each day, a sixtieth with other line ends, the long suite
 * all) and every single byte of every transcript, with several line ends and with comments, through every
 * pair of dialects; recorded streams with seeded splits.
 */
import t from 'tap'
import { fixturesFolder } from '../helpers/fixtures.js'
import { isToday, ofToday } from '../helpers/long-suite.js'
import {
  cutAt,
  seededRoll,
  difference,
  PAIRS,
  recorded,
  run,
  singly,
  transcripts,
  type Pair,
} from './transcript-streams.js'

/** The same stream with the framing of other servers. */
function variants(bytes: Buffer): Buffer[] {
  const text = bytes.toString('utf8')
  const lines = text.replaceAll('\r\n', '\n')
  const commented = lines.replaceAll('\n\n', '\n\n: keep-alive\n\n').replaceAll('data:', ':x\ndata:')
  const mixed = [...lines.split('\n')].map((line, index) => line + (['\n', '\r\n', '\r'][index % 3] ?? ''))
  return [
    bytes,
    Buffer.from(lines.replaceAll('\n', '\r\n')),
    Buffer.from(`: hello\n\n${commented}: bye\n\n`),
    Buffer.from(`\uFEFF${lines.replaceAll('\n', '\r')}`),
    Buffer.from(mixed.join('').replaceAll('\n\n', '\n\r\n')),
  ]
}

/** Every 2-way split of which a day has one of `parts`, and every single byte. */
function* everySplit(bytes: Buffer, step: number, parts: number): Generator<Buffer[]> {
  for (let index = 1; index < bytes.length; index += step) {
    if (isToday((index - 1) / step, parts)) yield [bytes.subarray(0, index), bytes.subarray(index)]
  }
  yield singly(bytes)
}

function* someSplits(bytes: Buffer, seed: number, count: number): Generator<Buffer[]> {
  const roll = seededRoll(seed)
  for (let i = 0; i < count; i += 1) {
    const cuts = Array.from({ length: 1 + roll(20) }, () => roll(bytes.length + 1))
    yield cutAt(bytes, cuts)
  }
}

/** Describes the first split that changes the output; null if none does. */
function firstChange(pair: Pair, bytes: Buffer, splits: Iterable<Buffer[]>): string | null {
  const whole = run(pair, [bytes])
  for (const chunks of splits) {
    const changed = difference(run(pair, chunks), whole)
    if (changed === '') continue
    return `cut at ${chunks
      .map((chunk) => chunk.length)
      .join(', ')
      .slice(0, 200)}: ${changed}`
  }
  return null
}

for (const pair of PAIRS) {
  void t.test(`${pair.name}: the client gets the same bytes for all chunk boundaries`, (t) => {
    for (const { dialect, name, bytes } of transcripts) {
      if (dialect !== pair.dialect) continue
      for (const [index, variant] of variants(bytes).entries()) {
        // Each day has half of the rewritten streams.
        if (index > 0 && !isToday(index, 2)) continue
        // The rewritten streams differ only in their line ends, so a part of their splits is sufficient.
        const splits = everySplit(variant, index === 0 || pair.passes ? 1 : 5, index === 0 ? 20 : 60)
        t.equal(firstChange(pair, variant, splits), null, `${name}, variant ${index}`)
      }
    }
    t.end()
  })
}

void t.test('passed: bytes out are bytes in, up to the terminator', (t) => {
  const [pair] = PAIRS
  for (const { dialect, name, bytes } of transcripts) {
    if (pair === undefined || dialect !== pair.dialect) continue
    for (const [index, variant] of variants(bytes).entries()) {
      const { out, outcome } = run(pair, singly(variant))
      // A byte order mark is not passed on.
      const sent = variant.toString('latin1').replace(/^\xef\xbb\xbf/, '')
      // A truncated last event gets a blank line, so that the error event after it can be parsed.
      const isCut = outcome === 'failed' && out === `${sent}\n\n`
      // Events that end with one line feed get the blank line that clients need.
      const isSame = sent.startsWith(out) || withoutLineEnds(sent).startsWith(withoutLineEnds(out))
      t.ok(isCut || isSame, `${name}, variant ${index}`)
      if (outcome === 'complete' && sent.startsWith(out)) t.notMatch(sent.slice(out.length), /^data/m)
    }
  }
  t.end()
})

void t.test('recorded streams, byte by byte and in seeded cuts', (t) => {
  if (fixturesFolder() === null) {
    t.comment('no recordings here: the transcripts are all that was checked')
    t.end()
    return
  }
  let streams = 0
  for (const { dialect, name, bytes } of recorded(8)) {
    if (bytes.length > 60_000) continue
    streams += 1
    for (const pair of PAIRS) {
      if (pair.dialect !== dialect) continue
      const changed =
        firstChange(pair, bytes, [singly(bytes)]) ??
        firstChange(pair, bytes, ofToday(someSplits(bytes, streams, 20)))
      t.equal(changed, null, `${pair.name}: ${name}`)
    }
  }
  t.ok(streams >= 20, `${streams} streams`)
  t.end()
})

function withoutLineEnds(text: string): string {
  return text.replaceAll(/[\r\n]/g, '')
}
