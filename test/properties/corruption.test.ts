/**
 * Goal: no bytes from an upstream make a translation throw, never end, or report a false result.
 * Method: 100,000 seeded corruptions of the transcripts over all pairs of dialects, in random chunks; a
 * twentieth of them each day, the long suite all. A failure prints its seed; SLUICE_CORRUPTIONS sets another
 * number.
 */
import t from 'tap'
import type { ReplyResult } from '../../src/formats/translated-stream.js'
import { isToday, SHARE } from '../helpers/long-suite.js'
import { corrupt, type Roll } from './damage-bytes.js'
import { client, seededRoll, framesOf, PAIRS, transcripts, type Pair } from './transcript-streams.js'

const TOTAL = Number(process.env['SLUICE_CORRUPTIONS'] ?? 100_000)
const EACH = Math.ceil(TOTAL / PAIRS.length)

/** Describes the error in the pair's output for the bytes; null if there is none. */
function fault(pair: Pair, bytes: Buffer, roll: Roll): { wrong: string | null; result: ReplyResult } {
  const translation = pair.open()
  const fragments: Buffer[] = []
  for (let index = 0; index < bytes.length;) {
    const next = index + 1 + roll(700)
    fragments.push(Buffer.from(translation.write(bytes.subarray(index, next))))
    index = next
  }
  fragments.push(Buffer.from(translation.end()))
  const { outcome, error } = translation
  const resultValue = translation
  if (outcome === 'open') return { wrong: 'is still open', result: resultValue }
  if ((outcome === 'failed') !== (error !== null)) return { wrong: 'both or neither', result: resultValue }
  const sent = framesOf(Buffer.concat(fragments).toString('latin1'))
  const done = sent.indexOf('[DONE]')
  if (outcome === 'failed') {
    if (done !== -1) return { wrong: 'failed after [DONE]', result: resultValue }
    const finished = sent.some((data) => /"finish_reason":"/.test(data))
    if (finished && !pair.passes) return { wrong: 'failed after its finish', result: resultValue }
  } else if (!pair.passes && done !== sent.length - 1) {
    return { wrong: 'complete without [DONE] at its end', result: resultValue }
  }
  if (!pair.passes && !sent.every(isReadable)) return { wrong: 'a frame is not JSON', result: resultValue }
  return { wrong: null, result: resultValue }
}

function isReadable(data: string): boolean {
  if (data === '[DONE]') return true
  try {
    JSON.parse(data)
    return true
  } catch {
    return false
  }
}

for (const [index, pair] of PAIRS.entries()) {
  void t.test(`${pair.name}: ${EACH} corruptions`, (t) => {
    const streams = transcripts.filter(({ dialect }) => dialect === pair.dialect).map(({ bytes }) => bytes)
    const seen = { complete: 0, failed: 0, open: 0 }
    let broken = 0
    for (let i = 0; i < EACH && broken < 5; i += 1) {
      if (!isToday(i)) continue
      const seed = index * 10_000_000 + i
      const roll = seededRoll(seed)
      const bytes = corrupt(streams, roll)
      try {
        const { wrong, result: resultValue } = fault(pair, bytes, roll)
        seen[resultValue.outcome] += 1
        if (resultValue.error !== null) client.encodeStreamError(resultValue.error)
        if (wrong === null) continue
        t.fail(`seed ${seed}: ${wrong}`)
      } catch (error) {
        t.fail(`seed ${seed} throws ${String(error)}`)
      }
      broken += 1
    }
    t.comment(`${seen.complete} complete, ${seen.failed} failed`)
    const least = (EACH * SHARE) / 50
    t.ok(seen.complete > least && seen.failed > least, 'both ends were seen')
    t.end()
  })
}
