/**
 * Goal: for any truncated or corrupted stream the decoder ends exactly once and follows the grammar.
 * Method: every prefix of the transcripts' frames, and 20,000 seeded corruptions of them.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { GeminiDecoder } from '../../../src/formats/gemini/upstream/decode-reply.js'
import { dice } from '../../helpers/seeded-random.js'
import { collectEvents, type Decoded } from '../collect-events.js'
import { chatRequest, decodeStream } from './driver.js'
import { SHARE, isToday } from '../../helpers/long-suite.js'

const FOLDER = join(process.cwd(), 'test/transcripts/gemini')

const TRANSCRIPTS = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.stream.sse'))
  .map((file) => {
    const frames = readFileSync(join(FOLDER, file), 'utf8').split('\r\n\r\n')
    return frames.filter((frame) => frame !== '').map((frame) => frame.slice('data: '.length))
  })

function terminals(decoded: Decoded): number {
  return decoded.events.filter(({ type }) => type === 'finish' || type === 'error').length
}

void t.test('every prefix of every transcript ends in exactly one finish or error', (t) => {
  t.ok(TRANSCRIPTS.length >= 6)
  for (const frames of TRANSCRIPTS) {
    for (let count = 0; count <= frames.length; count += 1) {
      const decoded = decodeStream(frames.slice(0, count))
      t.equal(decoded.breach, null)
      t.equal(terminals(decoded), 1)
      const last = decoded.events.at(-1)?.type
      if (count < frames.length) t.equal(last, 'error', `cut after ${count} of ${frames.length}`)
    }
  }
  t.end()
})

void t.test('every truncation inside the last frame is an error', (t) => {
  for (const frames of TRANSCRIPTS) {
    const last = frames.at(-1) ?? ''
    for (let at = 1; at < last.length; at += 1) {
      const decoded = decodeStream([...frames.slice(0, -1), last.slice(0, at)])
      if (terminals(decoded) !== 1 || decoded.error === null) t.fail(`cut at ${at} of ${last}`)
    }
  }
  t.pass('all cuts seen')
  t.end()
})

const JUNK = ['null', '[]', '{}', '0', '-1', '"x"', 'true', '1e400', '[[{}]]', '"STOP"', '{"a":']

/** A frame with one fault, as networks and proxies cause them. */
function corrupt(frame: string, random: () => number): string {
  const at = Math.floor(random() * (frame.length + 1))
  const more = at + 1 + Math.floor(random() * 20)
  switch (Math.floor(random() * 5)) {
    case 0:
      return frame.slice(0, at)
    case 1:
      return frame.slice(0, at) + frame.slice(more)
    case 2:
      return frame.slice(0, at) + String.fromCharCode(random() * 0xffff) + frame.slice(at + 1)
    case 3: {
      // A value of the wrong type; the frame stays valid JSON.
      const junk = JUNK[Math.floor(random() * JUNK.length)] ?? 'null'
      const values = [...frame.matchAll(/: ("[^"]*"|\d+|\{\}|\[\])/g)]
      const hit = values[Math.floor(random() * values.length)]
      return hit === undefined
        ? junk
        : `${frame.slice(0, hit.index)}: ${junk}${frame.slice(hit.index + hit[0].length)}`
    }
    default: {
      const keys = [...frame.matchAll(/"(\w+)": [[{]/g)]
      const hit = keys[Math.floor(random() * keys.length)]
      if (hit === undefined) return frame
      return `${frame.slice(0, hit.index)}"${hit[1] ?? ''}": 7, "was": ${frame.slice(hit.index + hit[0].length - 1)}`
    }
  }
}

void t.test('20,000 corrupted streams, a twentieth a day, do not throw and follow the grammar', (t) => {
  const tally = { finish: 0, error: 0 }
  for (let run = 0; run < 20_000; run += 1) {
    if (!isToday(run)) continue
    const random = dice(20_261_120 + run)
    const frames = [...(TRANSCRIPTS[Math.floor(random() * TRANSCRIPTS.length)] ?? [])]
    for (let hits = 1 + Math.floor(random() * 2); hits > 0; hits -= 1) {
      const at = Math.floor(random() * frames.length)
      frames[at] = corrupt(frames[at] ?? '', random)
    }
    const decoded = collectEvents((sink) => {
      const decoder = new GeminiDecoder(chatRequest(), sink)
      for (const frame of frames) decoder.frame('', frame)
      decoder.end()
      decoder.frame('', '{"candidates":[{"content":{"parts":[{"text":"late"}]}}]}')
    })
    if (decoded.breach !== null) t.fail(`${decoded.breach}: ${frames.join('\n')}`)
    if (terminals(decoded) !== 1) t.fail(`not one end: ${frames.join('\n')}`)
    tally[decoded.error === null ? 'finish' : 'error'] += 1
  }
  t.comment(`finished ${tally.finish}, failed ${tally.error}`)
  t.ok(tally.finish > 1000 * SHARE && tally.error > 1000 * SHARE, 'both kinds of end occurred')
  t.end()
})
