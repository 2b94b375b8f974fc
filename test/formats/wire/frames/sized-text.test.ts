/**
 * Goal: the size that is counted from the parts of a text is its size in UTF-8.
 * Method: parts with all kinds of characters, alone and joined, compared with `Buffer.byteLength`.
 */
import t from 'tap'
import { quote } from '../../../../src/formats/wire/json/write-json.js'
import { sizedText, TextSizer } from '../../../../src/formats/wire/frames/sized-text.js'

const PARTS = ['', 'plain', 'é', '\u2028', '日本', 'a 😀', 'half \ud800', '"\\', 'line\nline', '\u007f']

void t.test('the size of a text is the sum of its parts', (t) => {
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

void t.test('a repeated name is written and counted equally', (t) => {
  const many = Array.from({ length: 300 }, (_, n) => `model-${n}`)
  for (const name of [...PARTS, ...many, 'é'.repeat(100), ...PARTS, ...many]) {
    const sizer = new TextSizer()
    const text = sizer.name(name)
    t.equal(text, quote(name))
    t.same(sizer.whole(text), { text, bytes: Buffer.byteLength(text) })
  }
  t.end()
})

void t.test('a text without parts is counted', (t) => {
  for (const text of PARTS) t.same(sizedText(text), { text, bytes: Buffer.byteLength(text) })
  t.end()
})
