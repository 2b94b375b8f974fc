/**
 * Goal: arguments of calls are judged string by string, the result has their shape, and many short strings
 * hold no turn of the event loop for long.
 * Method: texts that `JSON.parse` takes or refuses, and the own rules on megabytes of short strings.
 */
import t from 'tap'
import { atOnce, type Steps } from '../../src/base/steps.js'
import { isJson, judgedArguments } from '../../src/policy/json-strings.js'
import { ruleSetOf } from '../../src/policy/rules/rule-set.js'
import { verdictSteps } from '../../src/policy/whole-texts.js'

const NOTHING: Steps<undefined>[] = []

/** Masks each `x`, and notes what it gets. */
function maskingX(seen: string[]): (text: string) => Steps<string> {
  return function* (text) {
    for (const step of NOTHING) yield* step
    seen.push(text)
    return text.replaceAll('x', '[x]')
  }
}

function isParsed(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const VALUES = [
  '{}',
  '[]',
  '""',
  '"a\\"b\\\\"',
  '"\\u00e9\\n"',
  '-1.5e+3',
  '0',
  'true',
  'null',
  ' [1 , {"a" : [] }]\n',
]
const BROKEN = [
  '',
  '{',
  '[1,]',
  '{"a"}',
  '{"a":1,}',
  '{a:1}',
  '01',
  '1.',
  '-',
  '+1',
  '"\n"',
  '"\\x"',
  '"a',
  'nul',
]
const MORE_BROKEN = [
  '[1 2]',
  '{"a":1 "b":2}',
  '[}',
  '{]',
  ']',
  '1 1',
  '"\\"',
  '"\\u12"',
  'NaN',
  '{"a":}',
  '{,}',
  "'a'",
]

void t.test('reads what JSON.parse reads', (t) => {
  for (const value of [...VALUES, ...BROKEN, ...MORE_BROKEN]) {
    for (const text of [value, `[${value}]`, `{"k":${value}}`, `{"k":[${value},${value}]}`, `${value},`]) {
      t.equal(atOnce(isJson(text)), isParsed(text), text)
    }
  }
  t.end()
})

void t.test('judges keys, texts and digits, and changes nothing else', (t) => {
  const cases: readonly (readonly [json: string, judged: string, seen: readonly string[]])[] = [
    ['{"a x": ["\\u0078", 1, 1e2]}', '{"a [x]": ["[x]", 1, 1e2]}', ['a x', 'x', '1', '100']],
    ['{"x":1,"\\u0078":2,"[x]":3}', '{"[x]":1,"[x] 2":2,"[[x]]":3}', ['x', '1', 'x', '2', '[x]', '3']],
    [
      '[123456789012345678901, "x\\"\\\\"]',
      '[123456789012345678901, "[x]\\"\\\\"]',
      ['123456789012345678901', 'x"\\'],
    ],
    ['{"a": "no"}', '{"a": "no"}', ['a', 'no']],
    ['{"x": no}', '{"[x]": no}', ['{"x": no}']],
  ]
  for (const [json, judged, expected] of cases) {
    const seen: string[] = []
    t.equal(atOnce(judgedArguments(json, maskingX(seen))), judged, json)
    t.same(seen, expected, json)
  }
  t.end()
})

void t.test('a value of any depth is judged', (t) => {
  const depth = 300_000
  const json = `${'['.repeat(depth)}"x"${']'.repeat(depth)}`
  t.equal(atOnce(judgedArguments(json, maskingX([]))), json.replace('x', '[x]'))
  t.end()
})

void t.test('many short strings, numbers and parts are judged in many short steps', (t) => {
  const rules = ruleSetOf('own', ['email', 'sk_[a-z]{6}'])
  const strings = Array.from({ length: 20_000 }, (_, at) => `joe${at}@example.com`)
  const cases = {
    strings: [{ text: JSON.stringify(strings), isJson: true }],
    numbers: [{ text: JSON.stringify(strings.map((_, at) => at)), isJson: true }],
    'empty objects': [{ text: `[${'{},'.repeat(100_000)}"joe@example.com"]`, isJson: true }],
    parts: strings.map((text) => ({ text, isJson: false })),
  }
  for (const [name, parts] of Object.entries(cases)) {
    const steps = verdictSteps(rules, parts, { action: 'mask', limit: 8_192 })
    let count = 0
    let longestMs = 0
    for (let isDone = false; !isDone; count += 1) {
      const before = process.cpuUsage()
      isDone = steps.next().done === true
      const { user, system } = process.cpuUsage(before)
      // The first one compiles.
      if (count > 2) longestMs = Math.max(longestMs, (user + system) / 1000)
    }
    t.ok(count > 10, `${name}: ${count} steps`)
    t.ok(longestMs < 150, `${name}: ${longestMs} ms of CPU in the longest step`)
  }
  t.end()
})
