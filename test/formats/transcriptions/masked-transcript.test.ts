/**
 * Goal: segments and words of a masked transcript are parts of the judged text: nothing that was masked is
 * left, a mask appears once, and parts that a mask spans become one.
 * Method: transcripts as vendors write them, and rules that mask one or several places.
 */
import t from 'tap'
import { JudgedTranscript } from '../../../src/formats/transcriptions/masked-transcript.js'

function masked(text: string, lists: string[][], judge: (text: string) => string): string[][] {
  const transcript = new JudgedTranscript(text, lists)
  return transcript.masked(transcript.texts.map(judge)).map((parts) => parts.map((part) => part.text))
}

void t.test('masks of several places are each in its own part', (t) => {
  const segments = [' Kim called,', ' then Kim left', ' with Lee.']
  const judge = (text: string): string => text.replaceAll('Kim', '[name]').replaceAll('Lee', '[name]')
  t.same(masked('Kim called, then Kim left with Lee.', [segments], judge), [
    [' [name] called,', ' then [name] left', ' with [name].'],
  ])
  const transcript = new JudgedTranscript('Kim called, then Kim left with Lee.', [segments])
  t.same(transcript.texts, ['Kim called, then Kim left with Lee.'], 'one text is judged')
  t.end()
})

void t.test('parts that a mask spans become one', (t) => {
  const transcript = new JudgedTranscript('My number is 212 555 0123, bye', [
    ['My', 'number', 'is', '212', '555', '0123', 'bye'],
    ['My number is 212', '555', '0123, bye'],
  ])
  const [words = [], segments = []] = transcript.masked(['My number is [phone], bye'])
  t.same(words[3], { first: 3, last: 5, text: '[phone]' })
  t.same(
    segments.map(({ text }) => text),
    ['My number is [phone]', ', bye'],
  )
  t.end()
})

void t.test('parts that the text does not have are judged by themselves', (t) => {
  const transcript = new JudgedTranscript('Call Kim.', [['call', 'kim', '555']])
  t.same(transcript.texts, ['Call Kim.', 'call kim 555'])
  t.same(
    masked('Call Kim.', [['call', 'kim', '555']], (text) => text.replace('555', '[n]')),
    [['call', 'kim', '[n]']],
  )
  t.end()
})

void t.test('texts without spaces, other texts of a guard server, and empty ones', (t) => {
  const judge = (text: string): string => text.replace('田中', '[名前]')
  t.same(masked('田中さんは来ました。', [['田中さんは', '来ました。']], judge), [
    ['[名前]さんは', '来ました。'],
  ])
  t.same(
    masked('One two three', [['One', 'two', 'three']], () => '***'),
    [['***']],
  )
  t.same(
    masked('One two three', [['One', 'two three']], () => ''),
    [['']],
  )
  t.same(
    masked('', [[]], (text) => text),
    [[]],
  )
  t.end()
})

void t.test('no part has more than the judged text', (t) => {
  let seed = 7
  const random = (below: number): number => (seed = (seed * 48_271) % 2_147_483_647) % below
  for (let round = 0; round < 300; round += 1) {
    const words = Array.from(
      { length: 1 + random(30) },
      () => ['a1', 'be', 'sec9ret', 'x,', 'lo-ng'][random(5)] ?? '',
    )
    const judge = (text: string): string =>
      text.replace(/sec9ret(?: a1)?/g, () => ['[s]', 'S T', ''][random(3)] ?? '')
    const [parts = []] = masked(words.join(' '), [words], judge)
    t.notMatch(parts.join('|'), 'sec9ret', words.join(' '))
  }
  t.end()
})
