/**
 * Goal: a text is quoted like by `JSON.stringify`.
 * Method: every character up to U+0FFF and half surrogate pairs, alone, between letters, at an end.
 */
import t from 'tap'
import { quote } from '../../../../src/formats/wire/json/write-json.js'

void t.test('quoting equals JSON.stringify', (t) => {
  const wrong: string[] = []
  const characters = Array.from({ length: 0x1000 }, (_, code) => String.fromCharCode(code))
  for (const one of [...characters, '\ud800', '\udfff', '\u2028', '\uffff', '🙂', '']) {
    for (const text of [one, `a${one}`, `${one}b`, `plain ${one} text`]) {
      if (quote(text) !== JSON.stringify(text)) wrong.push(text)
    }
  }
  t.same(wrong, [])
  t.end()
})
