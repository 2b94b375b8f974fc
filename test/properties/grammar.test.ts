/**
 * Goal: the grammar refuses every ungrammatical stream, and changes no grammatical one.
 * Method: seeded legal streams and seeded illegal ones, checked by a second, declarative grammar: a regular
 * expression over the kinds of events.
 */
import t from 'tap'
import type { ChatEvent } from '../../src/formats/chat/event.js'
import { Grammar } from '../../src/formats/chat/grammar.js'
import { legalStream } from './legal-streams.js'
import { seededRoll } from './transcript-streams.js'

/** One letter per kind: blocks in lower case (start, delta, end), the rest in capitals. */
const LETTERS: Readonly<Record<ChatEvent['type'], string>> = {
  start: 'S',
  usage: 'U',
  opaque: 'O',
  image: 'I',
  citation: 'C',
  logprobs: 'P',
  finish: 'F',
  error: 'E',
  'text-start': 'a',
  'text-delta': 'b',
  'text-end': 'c',
  'refusal-start': 'd',
  'refusal-delta': 'e',
  'refusal-end': 'f',
  'thinking-start': 'g',
  'thinking-delta': 'h',
  'thinking-end': 'i',
  'tool-start': 'j',
  'tool-delta': 'k',
  'tool-end': 'l',
}

const BLOCK = '(?:C|U|O|I|a[bCPU]*c|d[CeU]*f|g[ChU]*i|j[CkU]*l)'
const OPEN = '(?:a[bCPU]*|d[CeU]*|g[ChU]*|j[CkU]*)?'
/** A stream that has ended, complete or failed; and one that has not ended. */
const ENDED = new RegExp(`^(?:S${BLOCK}*F|S${BLOCK}*${OPEN}E|E)$`)
const UNENDED = new RegExp(`^(?:S${BLOCK}*${OPEN})?$`)

function word(events: readonly ChatEvent[]): string {
  return events.map(({ type }) => LETTERS[type]).join('')
}

/**
 * Whether blocks are numbered in order of start, and every event has the number of its block; a citation has
 * that of any earlier text.
 */
function numbersAreRight(events: readonly ChatEvent[]): boolean {
  let next = 0
  const texts = new Set<number>()
  for (const event of events) {
    if (!('index' in event)) continue
    if (event.type === 'text-start') texts.add(event.index)
    if (event.type === 'citation') {
      if (!texts.has(event.index)) return false
      continue
    }
    const opens = /^(?:opaque|image)$|-start$/.test(event.type)
    if (event.index !== (opens ? next : next - 1)) return false
    if (opens) next += 1
  }
  return true
}

function through(events: readonly ChatEvent[]): { out: ChatEvent[]; grammar: Grammar } {
  const out: ChatEvent[] = []
  const grammar = new Grammar({ event: (event) => void out.push(event) })
  for (const event of events) grammar.event(event)
  return { out, grammar }
}

void t.test('5,000 legal streams pass unchanged', (t) => {
  for (let seed = 1; seed <= 5_000; seed += 1) {
    const events = legalStream(seededRoll(seed))
    const { out, grammar } = through(events)
    const same = out.length === events.length && out.every((event, index) => event === events[index])
    if (!same || grammar.breach !== null || !grammar.ended || !ENDED.test(word(events))) {
      t.fail(`seed ${seed}: ${word(events)} became ${word(out)}: ${grammar.breach ?? 'no breach'}`)
    }
  }
  t.pass('none was touched')
  t.end()
})

/** A legal stream with one to three events removed, duplicated, moved, added or renumbered. */
function disturbed(roll: (n: number) => number): ChatEvent[] {
  const events = legalStream(roll)
  const others = legalStream(roll)
  for (let hits = roll(3); hits >= 0; hits -= 1) {
    const index = roll(events.length + 1)
    const one = events[index] ?? others[0]
    if (one === undefined) continue
    switch (roll(5)) {
      case 0:
        events.splice(index, 1)
        break
      case 1:
        events.splice(index, 0, one)
        break
      case 2:
        events.splice(roll(events.length + 1), 0, ...events.splice(index, 1))
        break
      case 3:
        events.splice(index, 0, others[roll(others.length)] ?? one)
        break
      default:
        if ('index' in one) events[index] = { ...one, index: one.index + 1 - 2 * roll(2) }
    }
  }
  return events
}

void t.test('20,000 disturbed streams: the output is legal and ends at the violation', (t) => {
  let breaches = 0
  for (let seed = 1; seed <= 20_000; seed += 1) {
    const events = disturbed(seededRoll(seed))
    const { out, grammar } = through(events)
    const isLegal = ENDED.test(word(events)) && numbersAreRight(events)
    const letters = word(out)
    const isOutLegal = (ENDED.test(letters) || UNENDED.test(letters)) && numbersAreRight(out)
    const wholly = isLegal || (UNENDED.test(word(events)) && numbersAreRight(events))
    if (!isOutLegal) t.fail(`seed ${seed}: ${letters} came out of ${word(events)}`)
    if (wholly !== (grammar.breach === null)) {
      t.fail(`seed ${seed}: ${word(events)}: ${grammar.breach ?? 'no breach'}`)
    }
    if (grammar.breach === null) continue
    breaches += 1
    if (!grammar.ended) t.fail(`seed ${seed}: a breach is an end`)
  }
  t.ok(breaches > 5_000 && breaches < 20_000, `${breaches} were broken`)
  t.end()
})
