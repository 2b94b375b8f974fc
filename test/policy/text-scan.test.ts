/**
 * Goal: the built-in rules and own expressions find the same matches in any text, for any division of it.
 * Method: examples of each rule; random divisions; a comparison with `re2js` on whole texts; and large texts
 * that keep many matches open.
 */
import { RE2JS } from 're2js'
import t from 'tap'
import { builtInRule, PERSONAL_NAMES, SECRET_NAMES } from '../../src/policy/rules/built-in-rules.js'
import { compileExpression } from '../../src/policy/rules/expressions.js'
import { RuleSet } from '../../src/policy/rules/rule-set.js'
import { TextScan } from '../../src/policy/rules/text-scan.js'
import { dice } from '../helpers/seeded-random.js'
import { IS_LONG } from '../helpers/long-suite.js'

const WIDE = 8_192

function rulesNamed(names: readonly string[]): RuleSet {
  return new RuleSet(names.map((name) => builtInRule(name) ?? { name: 'own', expression: name }))
}

const ALL = rulesNamed([...SECRET_NAMES, ...PERSONAL_NAMES])

function masked(rules: RuleSet, parts: readonly string[], limit = WIDE): string {
  const scan = new TextScan(rules, { mode: 'mask', limit })
  return parts.map((part) => scan.write(part)).join('') + scan.end()
}

const KEY_BODY = 'MIIEowIBAAKCAQEA7\nabc+/=\n'
const MATCHES: readonly [rule: string, text: string][] = [
  ['aws_access_key', 'AKIAIOSFODNN7EXAMPLE'.replace('8', '7').replace('0', 'O')],
  ['private_key', `-----BEGIN RSA PRIVATE KEY-----\n${KEY_BODY}-----END RSA PRIVATE KEY-----`],
  ['private_key', `-----BEGIN PRIVATE KEY-----\n${KEY_BODY}-----END PRIVATE KEY-----`],
  ['github_token', `ghp_${'a1B2'.repeat(9)}`],
  ['github_token', `github_pat_${'a1B2'.repeat(20)}_x`],
  ['slack_token', 'xoxb-123456789012-abcdef'],
  ['google_api_key', `AIza${'a1B2-'.repeat(7)}`],
  ['llm_api_key', `sk-${'a1B2_'.repeat(5)}`],
  ['stripe_key', `sk_live_${'a1B2'.repeat(5)}`],
  ['jwt', 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.dozjgNryP4J3jVmNHl0w5N'],
  ['email', 'first.last+tag@mail.example.co.uk'],
  ['phone', '+49 30 1234567'],
  ['phone', '+1 (212) 555-0123'],
  ['phone', '(212) 555-0123'],
  ['phone', '212-555-0123'],
  ['phone', '212.555.0123'],
  ['card', '4111 1111 1111 1111'],
  ['card', '378282246310005'],
  ['iban', 'DE89370400440532013000'],
  ['iban', 'GB29 NWBK 6016 1331 9268 19'],
  ['us_ssn', '123-45-6789'],
  ['us_ssn', '123 45 6789'],
]

void t.test('each built-in rule replaces its matches by its name', (t) => {
  for (const [rule, text] of MATCHES) {
    t.equal(masked(ALL, [`see ${text}, end`]), `see [${rule}], end`, text)
    t.equal(masked(ALL, [text]), `[${rule}]`, `${text} alone`)
  }
  t.end()
})

void t.test('what only resembles a match stays', (t) => {
  for (const text of [
    'AKIA2E0A8F3B244C9986', // a digit that keys do not have
    'XAKIAIOSFODNN7EXAMPLE', // no word boundary
    'ghp_short',
    '4111 1111 1111 1112', // the checksum is wrong
    '14111111111111111', // a digit beside it
    '1234567890', // bare digits
    '2026-11-26 10.20.30.40',
    'DE89370400440532013001',
    '000-12-3456, 666-12-3456, 900-12-3456, 123-00-4567, 123-45-0000',
    '1123-45-6789',
    'user@localhost',
    '.@example.com',
    'sk-tooshort',
  ]) {
    t.equal(masked(ALL, [text]), text)
  }
  t.end()
})

void t.test('a private key without its end reaches to the end of the text', (t) => {
  const begin = `a -----BEGIN EC PRIVATE KEY-----\n${KEY_BODY}`
  t.equal(masked(ALL, [begin, '-----END RSA PRIVATE KEY----- b']), 'a [private_key]')
  t.equal(masked(ALL, [begin, '-----END EC PRIVATE', ' KEY----- b']), 'a [private_key] b')
  t.end()
})

void t.test('of overlapping matches the first counts, then the longest', (t) => {
  const rules = rulesNamed(['b+c?', 'abb', 'bbbbb'])
  t.equal(masked(rules, ['abbc']), '[own]c')
  t.equal(masked(rules, ['xbbbbbc']), 'x[own]')
  t.end()
})

/** The text in random parts. */
function divided(text: string, random: () => number): string[] {
  const parts: string[] = []
  for (let at = 0; at < text.length;) {
    const end = at + 1 + Math.floor(random() * 9)
    parts.push(text.slice(at, end))
    at = end
  }
  return parts
}

void t.test('every division of a text gives the same result, at any limit', (t) => {
  const random = dice(7)
  const filler = ['words ', '12 ', 'x@', 'A-', '😀 ', '+1', 'eyJ', '\n', '4', 'é']
  for (let round = 0; round < 300; round += 1) {
    let text = ''
    for (let fragment = 0; fragment < 30; fragment += 1) {
      const from = random() < 0.3 ? MATCHES.map(([, match]) => match) : filler
      text += from[Math.floor(random() * from.length)] ?? ''
    }
    for (const limit of [16, 40, 400]) {
      const whole = masked(ALL, [text], limit)
      if (masked(ALL, divided(text, random), limit) !== whole) {
        t.fail(`limit ${limit}: ${JSON.stringify(text)}`)
        break
      }
    }
  }
  t.pass('900 texts')
  t.end()
})

void t.test('own expressions match as RE2 does', (t) => {
  const random = dice(11)
  const expressions = [
    'a+b',
    '(?i)foo|bar+',
    '\\bx[0-9]{2,4}\\b',
    '^ab',
    'ba$',
    '\\p{Greek}+',
    'a.c',
    '(?s)a.c',
  ]
  const letters = Array.from('abxfoFOr019 \nαΩ😀c')
  for (const expression of expressions) {
    const rules = rulesNamed([expression])
    const reference = RE2JS.compile(expression, RE2JS.LONGEST_MATCH)
    for (let round = 0; round < 200; round += 1) {
      const text = Array.from({ length: 14 }, () => letters[Math.floor(random() * letters.length)]).join('')
      const expected = reference.matcher(text).replaceAll('[own]')
      if (masked(rules, divided(text, random)) !== expected) {
        t.equal(masked(rules, [text]), expected, `${expression} in ${JSON.stringify(text)}`)
        break
      }
    }
  }
  t.pass('1600 texts')
  t.end()
})

void t.test('expressions that RE2 does not have are refused', (t) => {
  t.throws(() => compileExpression('(?=a)b'), { message: /look-around/ })
  t.throws(() => compileExpression('(?<!a)b'), { message: /look-around/ })
  t.throws(() => compileExpression('(a)\\1'), { message: /back-reference/ })
  t.throws(() => compileExpression('a('), { message: /not a valid RE2 expression/ })
  for (const empty of ['a*', '', '\\b', '^$', '(a|)']) {
    t.throws(() => compileExpression(empty), { message: /empty text/ }, empty)
  }
  t.end()
})

void t.test('a match that grows beyond the limit is replaced at once, and its rest is dropped', (t) => {
  const rules = rulesNamed(['sk_[A-Za-z0-9]{8,}'])
  const scan = new TextScan(rules, { mode: 'mask', limit: 20 })
  t.equal(scan.write(`go sk_${'a'.repeat(40)}`), 'go [own]')
  t.equal(scan.write('b'.repeat(100)), '')
  t.equal(scan.write(' end') + scan.end(), ' end')
  t.end()
})

void t.test('text that cannot be part of a match is released at once', (t) => {
  const scan = new TextScan(rulesNamed(['aws_access_key']), { mode: 'mask', limit: 400 })
  t.equal(scan.write('Hello wor'), 'Hello wor')
  t.equal(scan.write('ld AK'), 'ld ')
  t.equal(scan.write('A'), 'AKA')
  t.end()
})

void t.test('large texts that keep matches open are scanned in short steps', (t) => {
  const size = IS_LONG ? 1_048_576 : 131_072
  const hostile: Record<string, string> = {
    digits: '41234 5678 9012-3456 ',
    letters: 'a',
    dots: 'a.',
    countries: 'DE89',
    tokens: '-eyJsk-aaaaaaaaaaaaaaaaaaaaaa',
    hosts: 'a@a.',
    plus: '+1 2',
    begins: '-----BEGIN ',
  }
  for (const [name, unit] of Object.entries(hostile)) {
    const text = unit.repeat(Math.ceil(size / unit.length))
    const scan = new TextScan(ALL, { mode: 'mask', limit: WIDE })
    const steps = scan.steps(text, true)
    const times: number[] = []
    for (;;) {
      const before = process.cpuUsage()
      const { done } = steps.next()
      const { user, system } = process.cpuUsage(before)
      times.push((user + system) / 1000)
      if (done === true) break
    }
    times.sort((a, b) => a - b)
    t.ok(times.length > 1, `${name}: in ${times.length} steps`)
    // A collection of garbage may fall into a single step.
    t.ok((times[Math.floor(times.length * 0.98)] ?? 0) < 50, `${name}: no long step`)
  }
  t.end()
})
