/**
 * Goal: for any truncated or corrupted stream the decoder does not throw, follows the grammar and ends; and
 * the encoding of a message does not depend on later messages. Method: every truncation of every transcript,
 * 20,000 seeded corruptions, random conversations truncated at every turn.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { arrayOf, objectOf, type JsonValue } from '../../../src/base/json.js'
import type { Message } from '../../../src/formats/chat/request.js'
import { framesOf, type Frame } from '../sse-frames.js'
import type { Decoded } from '../collect-events.js'
import { assistant, encode, decodeReply, decodeStream, OLDER, result, stringOrEmpty, user } from './driver.js'
import { SHARE, isToday } from '../../helpers/long-suite.js'

const folder = join(process.cwd(), 'test/transcripts/anthropic')
const streams = readdirSync(folder)
  .filter((file) => file.endsWith('.stream.sse'))
  .map((file) => framesOf(readFileSync(join(folder, file), 'utf8')))
const replies = readdirSync(folder)
  .filter((file) => file.endsWith('.reply.json'))
  .map((file) => readFileSync(join(folder, file), 'utf8'))

/** A seeded generator of whole numbers below `n` (mulberry32). */
function seededRandom(seed: number): (n: number) => number {
  let state = seed
  return (n) => {
    state = (state + 0x6d2b79f5) | 0
    let x = Math.imul(state ^ (state >>> 15), 1 | state)
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x
    return ((x ^ (x >>> 14)) >>> 0) % n
  }
}

function endings(decoded: Decoded): number {
  return decoded.events.filter((event) => event.type === 'finish' || event.type === 'error').length
}

function isSound(decoded: Decoded): boolean {
  const last = decoded.events.at(-1)?.type
  return decoded.breach === null && endings(decoded) === 1 && (last === 'finish' || last === 'error')
}

void t.test('every truncation ends exactly once, with an error unless the reply was complete', (t) => {
  let cuts = 0
  for (const frames of streams) {
    for (let length = 0; length <= frames.length; length++) {
      const decoded = decodeStream(frames.slice(0, length))
      cuts += 1
      const reasoned = frames.slice(0, length).some(({ name }) => name === 'message_delta')
      t.ok(isSound(decoded), `${length} of ${frames.length}`)
      t.equal(decoded.reply !== null, reasoned)
    }
  }
  t.comment(`${cuts} truncations`)
  t.end()
})

const SWAPS = ['0', '1', '-1', '"x"', 'null', '{}', '[]', '"text"', '"tool_use"', 'true']

/** A stream with one to four faults: frames lost, duplicated, swapped, inserted or edited. */
function corrupt(roll: (n: number) => number): Frame[] {
  const frames = [...(streams[roll(streams.length)] ?? [])]
  for (let i = roll(4); i >= 0; i--) {
    const at = roll(frames.length + 1)
    const one = frames[at] ?? { name: '', data: '' }
    switch (roll(7)) {
      case 0:
        frames.splice(at, 1)
        break
      case 1:
        frames.splice(at, 0, one)
        break
      case 2:
        frames.splice(roll(frames.length + 1), 0, ...frames.splice(at, 1))
        break
      case 3: {
        const other = streams[roll(streams.length)] ?? []
        frames.splice(at, 0, other[roll(other.length)] ?? one)
        break
      }
      case 4:
        frames[at] = { ...one, data: one.data.slice(0, roll(one.data.length + 1)) }
        break
      case 5: {
        const byte = roll(one.data.length + 1)
        const data = one.data.slice(0, byte) + String.fromCharCode(roll(128)) + one.data.slice(byte + 1)
        frames[at] = { ...one, data }
        break
      }
      default: {
        const values = [...one.data.matchAll(/(?<=:)("[^"]*"|\d+|null|\{\}|\[\])/g)]
        const value = values[roll(values.length + 1)]
        if (value === undefined) break
        const data =
          one.data.slice(0, value.index) +
          (SWAPS[roll(SWAPS.length)] ?? '') +
          one.data.slice(value.index + value[0].length)
        frames[at] = { ...one, data }
      }
    }
  }
  return frames
}

void t.test(
  '20,000 corrupted streams, a twentieth a day, do not throw, follow the grammar and end once',
  (t) => {
    let [finished, failed, broken] = [0, 0, 0]
    for (let seed = 1; seed <= 20_000; seed++) {
      if (!isToday(seed)) continue
      const frames = corrupt(seededRandom(seed))
      const decoded = decodeStream(frames)
      if (!isSound(decoded)) {
        broken += 1
        if (broken < 5) t.fail(`seed ${seed}: ${decoded.breach ?? 'no end'}`)
      }
      if (decoded.reply === null) failed += 1
      else finished += 1
    }
    t.comment(`${finished} finished, ${failed} failed`)
    t.equal(broken, 0)
    t.ok(finished > 1000 * SHARE && failed > 1000 * SHARE, 'both kinds of end occurred')
    t.end()
  },
)

/** The reply with one value replaced. */
function damaged(value: JsonValue, roll: (n: number) => number): JsonValue {
  if (roll(12) === 0) return JSON.parse(SWAPS[roll(SWAPS.length)] ?? 'null') as JsonValue
  if (Array.isArray(value)) return value.map((one) => damaged(one, roll))
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([key, one]) => [key, damaged(one ?? null, roll)])
  return Object.fromEntries(members) as JsonValue
}

void t.test(
  '5,000 damaged whole replies, a fifth a day: never a throw, always in grammar, always one end',
  (t) => {
    let broken = 0
    for (let seed = 1; seed <= 5_000; seed++) {
      if (!isToday(seed, 5)) continue
      const roll = seededRandom(seed)
      const body = objectOf(damaged(objectOf(JSON.parse(replies[roll(replies.length)] ?? '{}')), roll))
      if (!isSound(decodeReply(body))) broken += 1
    }
    t.equal(broken, 0)
    t.end()
  },
)

/**
 * A random conversation in turns. A turn with calls includes their results, so the conversation may be
 * truncated between turns. No turn ends in a space, because the encoder trims a final assistant turn.
 */
function turns(roll: (n: number) => number): Message[][] {
  const turns: Message[][] = []
  let index = 0
  const word = (): string => ['a', '  ', 'so', '', 'héé'][roll(5)] ?? ''
  if (roll(2) === 0) turns.push([{ role: 'system', index: index++, parts: [{ type: 'text', text: 'S' }] }])
  for (let n = 1 + roll(5); n > 0; n--) {
    turns.push([user(index++, `q${word()}`)])
    if (roll(4) === 0) {
      turns.push([{ role: 'developer', index: index++, parts: [{ type: 'text', text: `d${word()}` }] }])
    }
    const calls = Array.from({ length: roll(4) }, (_, i) => `c${index}.${i}:look:{"n":${i}}`)
    const turn: Message[] = [assistant(index++, `${word()}x`, ...calls)]
    for (const call of calls.reverse()) turn.push(result(index++, call.split(':')[0] ?? '', word()))
    turns.push(turn)
  }
  return turns
}

void t.test('the encoding of a message does not depend on later messages', (t) => {
  let compared = 0
  for (let seed = 1; seed <= 500; seed++) {
    const all = turns(seededRandom(seed))
    const tools = [{ name: 'look' }]
    const model = { ...OLDER, midConversationSystem: seed % 2 === 0 }
    const whole = encode({ messages: [...all.flat(), user(999, 'end')], tools }, model).body
    const text = JSON.stringify(whole.messages)
    for (let cut = 1; cut <= all.length; cut++) {
      const messages = all.slice(0, cut).flat()
      if (!messages.some((message) => message.role === 'user')) continue
      const { body } = encode({ messages, tools }, model)
      t.same(body.system, whole.system)
      const part = JSON.stringify(body.messages)
      // The last turn may get more blocks, because turns of one role are merged; its own blocks must not
      // change.
      if (!text.startsWith(part.slice(0, -3))) t.fail(`seed ${seed}, cut ${cut}`)
      compared += 1
    }
    const again = encode({ messages: [...all.flat(), user(999, 'end')], tools }, model).body
    t.equal(JSON.stringify(again), JSON.stringify(whole), 'equal requests give equal bytes')
  }
  t.comment(`${compared} prefixes`)
  t.end()
})

void t.test('no block is ever empty', (t) => {
  let blocksSeen = 0
  for (let seed = 1; seed <= 500; seed++) {
    const { body } = encode({ messages: turns(seededRandom(seed)).flat(), tools: [{ name: 'look' }] }, OLDER)
    for (const message of arrayOf(body.messages).map(objectOf)) {
      const blocks = arrayOf(message.content).map(objectOf)
      if (blocks.length === 0) t.fail(`seed ${seed}: a message without content`)
      blocksSeen += blocks.length
      for (const block of blocks) {
        if (block.type === 'text' && !/\S/.test(stringOrEmpty(block.text))) t.fail(`seed ${seed}`)
        if (Array.isArray(block.content) && block.content.length === 0) t.fail(`seed ${seed}`)
      }
    }
  }
  t.ok(blocksSeen > 1000)
  t.end()
})
