/**
 * Goal: a text has one result in every pair of formats, whole and as a stream, for any division into chunks;
 * and nothing behind a refusal reaches the client.
 * Method: random texts with matches and random divisions through the gateway in all pairs of formats, and
 * many random streams through the guard of replies. `SLUICE_LONG=1` runs the whole numbers.
 */
import t from 'tap'
import type { ChatEvent } from '../../src/formats/chat/event.js'
import type { EventGuard } from '../../src/formats/translated-stream.js'
import { guardrailsOf } from '../../src/config/schema/guardrails-schema.js'
import { guardrailSchema } from '../../src/config/schema/guardrails-schema.js'
import { GuardNotes } from '../../src/policy/guard-notes.js'
import { GuardBreaker, Guardrail, type Judge, type JudgedRequest } from '../../src/policy/guardrail.js'
import { PASS } from '../../src/policy/verdict.js'
import { replyJudge } from '../../src/policy/reply-guard.js'
import { atOnce } from '../../src/base/steps.js'
import { dice } from '../helpers/seeded-random.js'
import { CLIENT_FORMATS, MODELS, startScene } from './guarded-gateway.js'
import { IS_LONG } from '../helpers/long-suite.js'

if (IS_LONG) t.setTimeout(0)
const WORDS = ['river', 'joe@example.com', '4111 1111 1111 1111', 'sk_a1b2c3d4', 'é😀', '\n', 'end.']

function textOf(random: () => number, words: readonly string[]): string {
  const count = 3 + Math.floor(random() * 12)
  return Array.from({ length: count }, () => words[Math.floor(random() * words.length)]).join(', ')
}

/** A division into chunks of whole characters. */
function divisionBy(random: () => number): (text: string) => string[] {
  return (text) => {
    const chars = Array.from(text)
    const parts: string[] = []
    while (chars.length > 0) parts.push(chars.splice(0, 1 + Math.floor(random() * 8)).join(''))
    return parts
  }
}

void t.test('one result in every pair of formats, whole and as a stream', async (t) => {
  if (IS_LONG) t.setTimeout(0)
  const { ask, provider } = await startScene(
    t,
    `  pii: { detect: [email, card], action: mask, apply_to: { all: true } }
  secrets: { patterns: ['sk_[a-z0-9]{6,}'], action: mask, apply_to: { all: true } }
  words: { patterns: [FORBIDDEN], apply_to: { all: true } }`,
  )
  const random = dice(3)
  const rounds = IS_LONG ? 200 : 2
  for (let round = 0; round < rounds; round += 1) {
    const isRefused = random() < 0.3
    const text = textOf(random, isRefused ? [...WORDS, 'FORBIDDEN'] : WORDS)
    const refuses = text.includes('FORBIDDEN')
    const expected = text
      .replaceAll('joe@example.com', '[email]')
      .replaceAll('4111 1111 1111 1111', '[card]')
      .replaceAll('sk_a1b2c3d4', '[secrets]')
    provider.reply = { text, split: divisionBy(random) }
    for (const format of CLIENT_FORMATS) {
      for (const model of MODELS) {
        for (const stream of [false, true]) {
          const reply = await ask(format, model, { stream })
          const name = `${format} ${model} ${stream} ${JSON.stringify(text)}`
          if (refuses) t.equal(reply.status, 400, name)
          else t.equal(reply.text, expected, name)
        }
      }
    }
  }
})

const METRICS = { verdict: () => undefined, duration: () => undefined, breaker: () => undefined }

function guardOf(settings: object, judge: Judge | null = null): EventGuard {
  const [config] = guardrailsOf({ own: guardrailSchema.parse(settings) })
  if (config === undefined) throw new Error('no guardrail')
  const breaker = new GuardBreaker(config.breaker, () => undefined)
  const of: JudgedRequest = {
    requestId: '',
    accountId: '',
    keyId: '',
    labels: {},
    request: { model: '', messages: [], stream: true, includeUsage: false, tools: [], rest: {} },
    notes: new GuardNotes(METRICS),
    inTurns: (steps) => Promise.resolve(atOnce(steps)),
    signal: new AbortController().signal,
    log: () => undefined,
  }
  const guardrails = [new Guardrail(config, judge, breaker)]
  const replies = replyJudge({ guardrails, of, observed: null, estimate: () => ({}) })
  if (replies === null) throw new Error('it does not judge replies')
  return replies.open(false)
}

function released(guard: EventGuard, events: readonly ChatEvent[]): readonly ChatEvent[] {
  const taken: ChatEvent[] = []
  const judging = guard.take(events, (judged) => void taken.push(...judged))
  if (judging !== null) throw new Error('a short text needs no turns')
  return taken
}

/** The text that the client gets of a stream in these parts. */
function sentOf(guard: EventGuard, parts: readonly string[]): string {
  let sent = ''
  const take = (events: readonly ChatEvent[]): void => {
    for (const event of released(guard, events)) if (event.type === 'text-delta') sent += event.text
  }
  take([
    { type: 'start', id: 'r', model: 'm' },
    { type: 'text-start', index: 0 },
  ])
  for (const text of parts) take([{ type: 'text-delta', index: 0, text }])
  take([
    { type: 'text-end', index: 0 },
    { type: 'finish', reason: 'stop', raw: null },
  ])
  return sent
}

void t.test('nothing behind a refusal is sent, in many random streams', (t) => {
  if (IS_LONG) t.setTimeout(0)
  const random = dice(5)
  const streams = IS_LONG ? 100_000 : 1_500
  let leaks = 0
  let refusals = 0
  for (let stream = 0; stream < streams; stream += 1) {
    const text = textOf(random, [...WORDS, 'FORBIDDEN', 'FORBID', 'FORFORBIDDEN'])
    const window = 16 + Math.floor(random() * 40)
    const guard = guardOf({ patterns: ['FORBIDDEN'], window_chars: window })
    const sent = sentOf(guard, divisionBy(random)(text))
    const at = text.indexOf('FORBIDDEN')
    if (at >= 0) refusals += 1
    if (at < 0 ? sent !== text : !text.slice(0, at).startsWith(sent)) leaks += 1
  }
  t.equal(leaks, 0, `${streams} streams, ${refusals} refused`)
  t.ok(refusals > streams / 10)
  t.end()
})

void t.test('a masked stream has no character of a match up to the window', (t) => {
  const random = dice(9)
  let leaks = 0
  for (let stream = 0; stream < (IS_LONG ? 500 : 250); stream += 1) {
    const text = textOf(random, WORDS)
    const guard = guardOf({ detect: ['email', 'card'], action: 'mask', window_chars: 24 })
    const sent = sentOf(guard, divisionBy(random)(text))
    const expected = text.replaceAll('joe@example.com', '[email]').replaceAll('4111 1111 1111 1111', '[card]')
    if (sent !== expected) leaks += 1
  }
  t.equal(leaks, 0)
  t.end()
})

/** A guard server that judges one word. */
function judgeOfWord(word: string, action: 'block' | 'mask', maxChars: number): Judge {
  return {
    judge: ([part]) => {
      const text = part?.text ?? ''
      if (Array.from(text).length > maxChars) throw new Error('the window is too large')
      if (!text.includes(word)) return Promise.resolve(PASS)
      const texts = [text.replaceAll(word, '#'.repeat(word.length))]
      return Promise.resolve(
        action === 'mask' ? { kind: 'mask', texts } : { kind: 'block', reason: null, index: null },
      )
    },
    close: () => Promise.resolve(),
  }
}

void t.test('guard servers see a match of up to overlap_chars whole, in any stream', async (t) => {
  if (IS_LONG) t.setTimeout(0)
  const random = dice(7)
  const streams = IS_LONG ? 20_000 : 300
  const word = 'FORBIDDEN'
  let wrong = 0
  let masked = 0
  for (let stream = 0; stream < streams; stream += 1) {
    const text = textOf(random, [...WORDS, word, '😀😀😀', 'FORBID', 'FORFORBIDDEN'])
    const window = 16 + Math.floor(random() * 40)
    const settings = { url: 'http://127.0.0.1:1', protocol: 'webhook', window_chars: window }
    const action = random() < 0.5 ? 'block' : 'mask'
    // What is left of the last window is judged with its overlap.
    const judge = judgeOfWord(word, action, window)
    const guard = guardOf({ ...settings, overlap_chars: word.length }, judge)
    let sent = ''
    const take = async (events: readonly ChatEvent[]): Promise<void> => {
      await guard.take(events, (released) => {
        for (const event of released) if (event.type === 'text-delta') sent += event.text
      })
    }
    // Emoji are divided, too.
    const parts = random() < 0.5 ? divisionBy(random)(text) : text.split('')
    const start: ChatEvent = { type: 'text-start', index: 0 }
    const deltas = parts.map((part): ChatEvent => ({ type: 'text-delta', index: 0, text: part }))
    const end: ChatEvent = { type: 'text-end', index: 0 }
    if (random() < 0.5) await take([start, ...deltas, end])
    else for (const event of [start, ...deltas, end]) await take([event])
    const at = text.indexOf(word)
    const isMask = action === 'mask'
    if (at >= 0 && isMask) masked += 1
    const expected = isMask ? text.replaceAll(word, '#'.repeat(word.length)) : text
    const isRight = at < 0 || isMask ? sent === expected : text.slice(0, at).startsWith(sent)
    if (!isRight) wrong += 1
  }
  t.equal(wrong, 0, `${streams} streams`)
  t.ok(masked > streams / 20, `${masked} masked`)
})
