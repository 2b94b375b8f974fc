/**
 * Goal: looking for the beginnings of matches first changes no result, and makes the search of large texts
 * fast, with and without matches.
 * Method: random expressions and texts, compared with the scan alone, which `steps` replaces from 4,096
 * characters on, and with `re2js`; times of CPU for expressions that are slow for other engines.
 */
import { RE2JS } from 're2js'
import t from 'tap'
import { atOnce } from '../../src/base/steps.js'
import { builtInRule, PERSONAL_NAMES, SECRET_NAMES } from '../../src/policy/rules/built-in-rules.js'
import { RuleSet } from '../../src/policy/rules/rule-set.js'
import { TextScan } from '../../src/policy/rules/text-scan.js'
import { dice } from '../helpers/seeded-random.js'
import { IS_LONG, ofToday } from '../helpers/long-suite.js'

const LARGE = 4_096

function rulesOf(expressions: readonly string[]): RuleSet {
  return new RuleSet(expressions.map((each) => builtInRule(each) ?? { name: 'own', expression: each }))
}

interface Found {
  readonly text: string
  readonly found: string | null
}

/** Large parts, whose beginnings of matches are looked for. */
function quick(rules: RuleSet, parts: readonly string[], mode: 'mask' | 'find', limit: number): Found {
  const scan = new TextScan(rules, { mode, limit })
  const taken = parts.map((part, at) => atOnce(scan.steps(part, at === parts.length - 1)))
  return { text: taken.join(''), found: scan.found }
}

/** `write` looks for nothing first. */
function slow(rules: RuleSet, parts: readonly string[], mode: 'mask' | 'find', limit: number): Found {
  const scan = new TextScan(rules, { mode, limit })
  const taken = parts.map((part) => scan.write(part))
  return { text: taken.join('') + scan.end(), found: scan.found }
}

/** The first place at which two texts differ. */
function difference(got: string, expected: string): string {
  let at = 0
  while (at < got.length && got[at] === expected[at]) at += 1
  const [from, to] = [Math.max(0, at - 20), at + 30]
  return JSON.stringify({ at, got: got.slice(from, to), expected: expected.slice(from, to) })
}

type Random = () => number

function oneOf<T>(random: Random, items: readonly [T, ...T[]]): T {
  return items[Math.floor(random() * items.length)] ?? items[0]
}

function textOf(random: Random, letters: string, length: number): string {
  const chars = Array.from(letters)
  return Array.from({ length }, () => chars[Math.floor(random() * chars.length)]).join('')
}

const ATOMS = [
  'a',
  'b',
  'c',
  '[ab]',
  '[^a]',
  '.',
  '\\b',
  '\\B',
  '^',
  '$',
  '(?m:^)',
  '(?m:$)',
  'é',
  '[α-ω😀]',
  '(?i:K)',
] as const
const REPEATS = ['', '', '', '*', '+', '?', '{2,5}', '*?'] as const

function expressionOf(random: Random, depth: number): string {
  const count = 1 + Math.floor(random() * 3)
  const parts = Array.from({ length: count }, () => {
    const atom = depth > 0 && random() < 0.4 ? `(?:${expressionOf(random, depth - 1)})` : oneOf(random, ATOMS)
    return atom.length > 1 && /^(?:\\[bB]|\^|\$|\(\?m)/.test(atom) ? atom : atom + oneOf(random, REPEATS)
  })
  const whole = parts.join('')
  return random() < 0.25 ? `${whole}|${oneOf(random, ATOMS)}c` : whole
}

void t.test('beginnings change no result of random expressions, whole and in parts', (t) => {
  const random = dice(23)
  let tried = 0
  let matched = 0
  for (let round = 0; round < (IS_LONG ? 400 : 260); round += 1) {
    let rules: RuleSet
    const expressions = Array.from({ length: 1 + Math.floor(random() * 2) }, () => expressionOf(random, 2))
    try {
      rules = rulesOf(expressions)
    } catch {
      continue
    }
    tried += 1
    // Long runs, or many short matches, or few of them.
    const fill = oneOf(random, ['a', 'ab', 'abc \n', 'x', 'x \n', 'éαK\u212a'])
    const text =
      textOf(random, fill, LARGE) +
      textOf(random, 'abcαω😀éKk \n', 60) +
      oneOf(random, ['', 'c', '\n', '\ud83d'])
    const cut = LARGE + Math.floor(random() * 40)
    const limit = oneOf(random, [16, 400, 8_192])
    const mode = oneOf(random, ['mask', 'find'] as const)
    for (const parts of [[text], [text.slice(0, cut), text.slice(cut)], [text.slice(0, 30), text]]) {
      const expected = slow(rules, parts, mode, limit)
      if (expected.found !== null) matched += 1
      const got = quick(rules, parts, mode, limit)
      if (got.text !== expected.text || got.found !== expected.found) {
        t.fail(
          `${expressions.join(' and ')}, ${mode} ${limit}, parts ${parts.length}: ${difference(got.text, expected.text)}`,
        )
        t.end()
        return
      }
    }
  }
  t.ok(tried > 100 && matched > tried, `${tried} expressions, ${matched} with matches`)
  t.end()
})

void t.test('large texts match as RE2 does', (t) => {
  const random = dice(29)
  const expressions = [
    'a{2,9}b',
    '(?:a+b?)+c$',
    '\\bab+\\b',
    '[^b]{3,40}c',
    'a.{0,20}b.{0,20}c',
    '(?i)k\\S*é',
  ]
  for (const expression of ofToday(expressions, 3)) {
    const rules = rulesOf([expression])
    const reference = RE2JS.compile(expression, RE2JS.LONGEST_MATCH)
    for (const letters of ['ab', 'abc', 'aab ', 'abcéKk\n', 'a']) {
      const text = textOf(random, letters, LARGE + 100)
      const expected = reference.matcher(text).replaceAll('[own]')
      t.equal(quick(rules, [text], 'mask', 8_192).text, expected, `${expression} in ${letters}`)
    }
  }
  t.end()
})

void t.test('beginnings change no result of the built-in rules', (t) => {
  const rules = rulesOf([...SECRET_NAMES, ...PERSONAL_NAMES, 'own_[a-z]{2,300}'])
  const random = dice(31)
  const matches = [
    '4111 1111 1111 1111',
    'x@example.com',
    `ghp_${'a1B2'.repeat(9)}`,
    '123-45-6789',
    'own_abc',
  ]
  const texts = [
    ...matches,
    '1234 ',
    '-----BEGIN PRIVATE KEY-----',
    'a.b@',
    'words and ',
    'DE89',
    '\n',
  ] as const
  for (let round = 0; round < 10; round += 1) {
    let text = ''
    while (text.length < LARGE) text += texts[Math.floor(random() * texts.length)] ?? ''
    for (const limit of [16, 400]) {
      const expected = slow(rules, [text], 'mask', limit)
      if (quick(rules, [text], 'mask', limit).text !== expected.text) {
        t.fail(difference(quick(rules, [text], 'mask', limit).text, expected.text))
        t.end()
        return
      }
    }
  }
  t.pass('20 texts')
  t.end()
})

const MEGABYTE = 1_048_576
const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

void t.test('expressions that are slow for other engines take less than a second of CPU', (t) => {
  const random = dice(37)
  const base64 = textOf(random, BASE64, MEGABYTE).repeat(2)
  const dense = `${base64.slice(0, 200)}.corp `
  const cases: readonly [expression: string, text: string, matches: boolean][] = [
    ['[A-Za-z0-9+/]{40,200}={0,2}\\.corp', base64, false],
    ['[A-Za-z0-9+/]{40,200}={0,2}\\.corp', dense.repeat(10_000), true],
    ['(a+)+$', `${'a'.repeat(MEGABYTE)}b`, false],
    ['(a+)+$', 'a'.repeat(MEGABYTE), true],
    ['(a|a?)+b', 'a'.repeat(MEGABYTE), false],
    ['(a{1,50}){1,20}$', `${'a'.repeat(MEGABYTE)}b`, false],
    ['(?i)(password|secret).{0,200}[0-9]{4}', 'the secret of 12 words '.repeat(MEGABYTE / 23), false],
    ['a.{0,500}b.{0,500}c$', textOf(random, 'abcd', MEGABYTE), false],
    ['[\\p{Han}]{5,100}。秘密', textOf(random, '的一是不了人我在有他这为之大来以个中上们', MEGABYTE), false],
  ]
  for (const [expression, text, matches] of cases) {
    const rules = rulesOf([expression])
    const before = process.cpuUsage()
    const { found } = quick(rules, [text], 'mask', 8_192)
    const { user, system } = process.cpuUsage(before)
    const tookMs = Math.round((user + system) / 1000)
    t.equal(found !== null, matches, expression)
    t.ok(tookMs < 1_000, `${expression}: ${tookMs} ms`)
  }
  t.end()
})

void t.test(
  'a text that makes new sets of instructions at each character is searched without a table',
  (t) => {
    const random = dice(41)
    const rules = rulesOf(['x.{0,300}y.{0,300}z'])
    const text = textOf(random, 'xyzabcdefgh', 60_000)
    const expected = slow(rules, [text], 'mask', 8_192)
    t.equal(quick(rules, [text], 'mask', 8_192).text, expected.text)
    t.end()
  },
)
