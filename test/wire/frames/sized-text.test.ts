/**
 * Goal: the size of a text that is counted by its parts is what it takes in UTF-8.
 * Method: parts of all kinds of characters, alone and together, compared with `Buffer.byteLength`.
 */
import t from 'tap'
import { quote } from '../../../src/wire/json/quote.js'
import { sizedText, TextSizer } from '../../../src/wire/frames/sized-text.js'

const PARTS = [
  '',
  'plain',
  'é',
  '\u2028',
  '日本',
  'a 😀',
  'half \ud800',
  '"\\',
  'line\nline',
  '\u007f',
]

void t.test('a text of many parts has the bytes of its parts', (t) => {
  const sizer = new TextSizer()
  let text = ''
  for (const part of PARTS) {
    const json = sizer.quoted(part)
    t.equal(json, quote(part))
    text += `${json},${sizer.part(JSON.stringify({ part }))}`
    t.same(sizer.whole(text), { text, bytes: Buffer.byteLength(text) })
  }
  t.end()
})

void t.test('a name is written and counted the same whenever it comes', (t) => {
  const many = Array.from({ length: 300 }, (_, n) => `model-${n}`)
  for (const name of [...PARTS, ...many, 'é'.repeat(100), ...PARTS, ...many]) {
    const sizer = new TextSizer()
    const text = sizer.name(name)
    t.equal(text, quote(name))
    t.same(sizer.whole(text), { text, bytes: Buffer.byteLength(text) })
  }
  t.end()
})

void t.test('a text of one piece is counted as it is', (t) => {
  for (const text of PARTS) t.same(sizedText(text), { text, bytes: Buffer.byteLength(text) })
  t.end()
})
