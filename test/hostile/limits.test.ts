/**
 * Goal: requests within the documented limits pass, and others are refused with an error that names the
 * limit.
 * Method: large requests as real clients send them, a quarter each day, for each encoder; then one request
 * beyond each limit.
 */
import t from 'tap'
import { isToday, ofToday } from '../helpers/long-suite.js'
import { HOSTILE } from './costly-bodies.js'
import { ENCODERS, processBody, receiveBody } from './measure-steps.js'

function bodyNamed(name: string): Buffer {
  const found = HOSTILE.find((each) => each.name === name)
  if (found === undefined) throw new Error(`no body named ${name}`)
  return Buffer.from(found.make())
}

void t.test('large requests of real clients pass', (t) => {
  const names = [
    '8 MiB of plain words',
    '8 MiB of Cyrillic',
    '8 MiB of Chinese',
    '20 MiB of images beside 4 MiB of Chinese',
    '10,000 messages',
    '24,000 parts in 6 messages',
    '4,096 tool results',
    '1,024 tools',
  ]
  for (const name of ofToday(names, 4)) {
    const received = receiveBody(bodyNamed(name))
    for (const encoder of ENCODERS) {
      const { refusal } = received.encode(encoder)
      // Gemini accepts at most 20 MiB of inline data, which its encoder checks.
      if (encoder === 'gemini' && refusal?.includes('bytes of images and files') === true) continue
      t.equal(refusal, null, `${name}: ${encoder}`)
    }
  }
  const image = receiveBody(bodyNamed('32 MiB of an image'))
  for (const encoder of ENCODERS.filter((each) => each !== 'gemini')) {
    t.equal(image.encode(encoder).refusal, null, `32 MiB of an image: ${encoder}`)
  }
  t.end()
})

void t.test('each limit is named by its refusal', (t) => {
  const refused = [
    ['500,000 names in one object', /16384 different names/],
    ['190,000 numbers', null],
    ['32 MiB of Cyrillic', /8388608 bytes beside inline data/],
    ['32 MiB of plain words', /8388608 characters of text/],
    ['32 MiB in a schema', /8388608 characters of text/],
    ['10 million lists in lists', /nested more than 64 levels/],
    ['32 MiB of blanks', /65536 blanks/],
    ['one number of 32 MiB', /more than 1000 characters/],
    ['a name twice at the end', /given twice/],
    ['stop strings', /at most 4 strings/],
  ] as const
  for (const [name, words] of ofToday<(typeof refused)[number]>(refused, 3)) {
    const { refusal } = processBody(bodyNamed(name), 'openai-responses')
    if (words === null) t.equal(refusal, null, name)
    else t.match(refusal, words, name)
  }
  if (!isToday(0, 3)) return t.end()
  const copies = bodyNamed('tool: copies of a large definition')
  t.match(processBody(copies, 'gemini').refusal, /^tools\[0\]\.function\.parameters: .*25000 parts/)
  return t.end()
})
