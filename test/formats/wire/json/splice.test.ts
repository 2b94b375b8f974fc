/**
 * Goal: splicing equals editing the parsed object, and keeps all other bytes.
 * Method: examples with exact bytes, then seeded objects with unusual spacing and random edits.
 */
import t from 'tap'
import { parseObject } from '../../../../src/formats/wire/json/parse-body.js'
import { splice } from '../../../../src/formats/wire/json/splice.js'
import type { Edit } from '../../../../src/formats/wire/json/splice.js'

function edited(text: string, edits: readonly Edit[]): string {
  const bytes = Buffer.from(text)
  return splice(bytes, parseObject(bytes).members, edits).toString()
}

const set = (key: string, json: string): Edit => ({ key, json })
const remove = (key: string): Edit => ({ key, json: null })

void t.test('edits change only their member', (t) => {
  const text = ' { "a" : 12345678901234567890 ,\n "b":"\\u0041ü", "c":[ 1 ] } '
  const cases: [string, Edit[], string][] = [
    ['nothing', [], text],
    ['set the first', [set('a', '1')], ' { "a" : 1 ,\n "b":"\\u0041ü", "c":[ 1 ] } '],
    ['set the last', [set('c', '{}')], ' { "a" : 12345678901234567890 ,\n "b":"\\u0041ü", "c":{} } '],
    ['set non-ASCII', [set('b', '"漢"')], ' { "a" : 12345678901234567890 ,\n "b":"漢", "c":[ 1 ] } '],
    ['add', [set('d', 'true')], ' { "a" : 12345678901234567890 ,\n "b":"\\u0041ü", "c":[ 1 ],"d":true } '],
    ['remove the first', [remove('a')], ' { "b":"\\u0041ü", "c":[ 1 ] } '],
    ['remove the middle', [remove('b')], ' { "a" : 12345678901234567890, "c":[ 1 ] } '],
    ['remove the last', [remove('c')], ' { "a" : 12345678901234567890 ,\n "b":"\\u0041ü" } '],
    ['remove two', [remove('b'), remove('c')], ' { "a" : 12345678901234567890 } '],
    ['remove the first two', [remove('a'), remove('b')], ' { "c":[ 1 ] } '],
    ['remove all', [remove('c'), remove('a'), remove('b')], ' {  } '],
    ['remove all and add', [remove('c'), remove('a'), remove('b'), set('x', '1')], ' { "x":1 } '],
    ['remove what is not there', [remove('x')], text],
    ['the last of two edits', [set('a', '1'), set('a', '2')], edited(text, [set('a', '2')])],
  ]
  for (const [name, edits, expected] of cases) t.equal(edited(text, edits), expected, name)
  t.equal(edited('{}', [set('a', '1'), set('b', '2')]), '{"a":1,"b":2}')
  t.equal(edited('\n{\n}\n', [set('a', '1')]), '\n{"a":1\n}\n')
  t.equal(edited('{"\\u0061":1}', [set('a', '2')]), '{"\\u0061":2}', 'an escaped key is the same key')
  t.equal(edited('{"a":1}', [set('__proto__', '2')]), '{"a":1,"__proto__":2}')
  t.end()
})

void t.test('seeded edits equal edits of the parsed object, and untouched members keep their bytes', (t) => {
  let state = 99
  const random = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return Math.floor((state / 0x80000000) * below)
  }
  const pick = (from: readonly string[]): string => from[random(from.length)] ?? ''
  const space = (): string => pick(['', '', ' ', '\n\t', '  '])
  const keys = ['a', 'b', 'ü', 'd"', '__proto__', 'f']
  const values = ['1', '"x,}"', '[1,{"a":2}]', '{"b":"\\""}', 'null', '1e2', '"🦊"']
  let wrong = 0
  for (let i = 0; i < 5_000; i += 1) {
    const present = keys.filter(() => random(2) === 0)
    const texts = new Map(present.map((key) => [key, pick(values)]))
    const inner = present.map(
      (key) => `${space()}${JSON.stringify(key)}${space()}:${space()}${texts.get(key) ?? ''}${space()}`,
    )
    const text = `${space()}{${inner.length === 0 ? space() : inner.join(',')}}${space()}`
    const edits = keys
      .filter(() => random(3) === 0)
      .map((key) => (random(2) === 0 ? remove(key) : set(key, pick(values))))
    const result = edited(text, edits)
    const expected = new Map(texts)
    for (const { key, json } of edits) {
      if (json === null) expected.delete(key)
      else expected.set(key, json.toString())
    }
    const bytes = Buffer.from(result)
    const found = parseObject(bytes).members.map((member): [string, string] => [
      member.key,
      bytes.toString('utf8', member.valueStart, member.valueEnd),
    ])
    const isSame =
      JSON.stringify(found) === JSON.stringify([...expected]) && (edits.length > 0 || result === text)
    if (!isSame && wrong++ < 3) t.fail(`${text} with ${JSON.stringify(edits)} gave ${result}`)
  }
  t.equal(wrong, 0)
  t.end()
})
