/**
 * Goal: a truncated stream never looks complete, in any pair of dialects.
 * Method: every byte prefix of every transcript (a twentieth of them each day, the long suite all), at once
 * and byte by byte, ended by an end of file or by a failure of the transport; recorded streams at seeded
 * offsets.
 */
import t from 'tap'
import type { Test } from 'tap'
import { fixturesFolder } from '../helpers/fixtures.js'
import { isToday } from '../helpers/long-suite.js'
import {
  claimsCompletion,
  seededRoll,
  PAIRS,
  recorded,
  run,
  singly,
  transcripts,
  type Pair,
  type Run,
} from './transcript-streams.js'

/** The finish reasons of upstreams, in all dialects. */
const REASON =
  /"(?:finish_reason|stop_reason|finishReason|blockReason)"\s*:\s*"|"type"\s*:\s*"response\.(?:completed|incomplete)"/

/** Describes the error in the output for a prefix; null if there is none. */
function fault({ out, outcome, kind, reason }: Run, chunks: readonly Buffer[]): string | null {
  if (outcome === 'open') return 'is still open'
  if (outcome === 'complete') {
    if (kind !== null || reason === null) return `complete with ${kind ?? 'no reason'}`
    const sent = Buffer.concat(chunks).toString('latin1')
    if (!REASON.test(sent)) return 'complete though the upstream gave no reason'
    return claimsCompletion(out) ? null : 'complete, but the frames for the client do not show it'
  }
  if (kind === null) return 'failed without an error'
  return claimsCompletion(out) ? 'failed, and looks complete' : null
}

function check(
  t: Test,
  pair: Pair,
  { name, bytes, cuts }: { name: string; bytes: Buffer; cuts: Iterable<number> },
): void {
  let first: string | null = null
  let completeFrom: number | null = null
  for (const cut of cuts) {
    const prefix = bytes.subarray(0, cut)
    const ended = run(pair, [prefix])
    const wrong = fault(ended, [prefix])
    if (wrong !== null) first ??= `${cut} of ${bytes.length} bytes: ${wrong}`
    if (ended.outcome === 'complete') completeFrom ??= cut
    else if (completeFrom !== null) first ??= `complete at ${completeFrom} and not at ${cut}`
  }
  t.equal(first, null, name)
}

function* every(length: number, step = 1): Generator<number> {
  for (let index = 0; index < length; index += step) if (isToday(index / step)) yield index
  yield length
}

for (const pair of PAIRS) {
  void t.test(`${pair.name}: every prefix has exactly one correct result`, (t) => {
    for (const [at, { dialect, name, bytes }] of transcripts.entries()) {
      if (dialect !== pair.dialect) continue
      check(t, pair, { name, bytes, cuts: every(bytes.length) })
      // Each day has half of the streams with other line ends, and byte by byte.
      if (!isToday(at, 2)) continue
      const text = bytes.toString('utf8')
      const crlf = text.includes('\r\n')
      const other = Buffer.from(crlf ? text.replaceAll('\r\n', '\n') : text.replaceAll('\n', '\r\n'))
      check(t, pair, {
        name: `${name}, ${crlf ? 'LF' : 'CRLF'}`,
        bytes: other,
        cuts: every(other.length, 5),
      })
      let wrong: string | null = null
      for (const cut of every(bytes.length, 13)) {
        const chunks = singly(bytes.subarray(0, cut))
        wrong ??= fault(run(pair, chunks), chunks)
      }
      t.equal(wrong, null, `${name}, byte by byte`)
    }
    t.end()
  })

  void t.test(`${pair.name}: a failure of the transport is final`, (t) => {
    for (const { dialect, name, bytes } of transcripts) {
      if (dialect !== pair.dialect) continue
      let wrong = 0
      for (const cut of every(bytes.length)) {
        const translation = pair.open()
        translation.write(bytes.subarray(0, cut))
        const before = translation.outcome
        translation.fail({ kind: 'upstream_timeout', message: 'The upstream fell silent.' })
        const after = translation.outcome
        const more = [translation.write(bytes.subarray(cut)), translation.end()]
        const isFinal = translation.outcome === after && more.every((it) => it.length === 0)
        const isRight =
          before === 'open'
            ? after === 'failed' && translation.error?.kind === 'upstream_timeout'
            : after === before
        if (!isFinal || !isRight) wrong += 1
      }
      t.equal(wrong, 0, name)
    }
    t.end()
  })
}

void t.test('recorded streams, cut at seeded places', (t) => {
  if (fixturesFolder() === null) {
    t.comment('no recordings here: the transcripts are all that was checked')
    t.end()
    return
  }
  const roll = seededRoll(11)
  let streams = 0
  for (const { dialect, name, bytes } of recorded(8)) {
    if (bytes.length > 60_000) continue
    streams += 1
    const cuts = Array.from({ length: 20 }, () => roll(bytes.length + 1)).sort((a, b) => a - b)
    for (const pair of PAIRS) {
      if (pair.dialect === dialect) check(t, pair, { name: `${pair.name}: ${name}`, bytes, cuts })
    }
  }
  t.ok(streams >= 20, `${streams} streams`)
  t.end()
})
