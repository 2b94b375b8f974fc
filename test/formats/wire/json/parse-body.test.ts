/**
 * Goal: a body is accepted exactly if it is strict JSON within the limits, and the error names the path.
 * Method: one example per rule, then seeded fuzzing compared with `JSON.parse`.
 */
import t from 'tap'
import type { Test } from 'tap'
import { isObject, type JsonObject } from '../../../../src/base/json.js'
import { GatewayError } from '../../../../src/errors.js'
import { parseObject, parseReply } from '../../../../src/formats/wire/json/parse-body.js'
import type { ParseOptions } from '../../../../src/formats/wire/json/parse-body.js'

function refusal(body: string | Buffer, caps?: ParseOptions): { message: string; param?: string } {
  try {
    parseObject(Buffer.from(body), caps)
  } catch (error) {
    if (error instanceof GatewayError && error.kind === 'malformed_request') return error.wire
    throw error
  }
  return { message: 'accepted' }
}

function refuses(
  t: Test,
  body: string | Buffer,
  { message, param }: { message: RegExp; param?: string | undefined },
): void {
  const wire = refusal(body)
  const shown = body.toString().slice(0, 60)
  t.match(wire.message, message, shown)
  t.equal(wire.param, param, `${shown}: param`)
}

void t.test('members have the byte offsets of their keys and values', (t) => {
  const text = ' { "é" : "ü" ,"b":[1, {"b":2}],"c":{} , "d":-1.5e3\n,"e\\u0066":true}\r\n\t '
  const bytes = Buffer.from(text)
  const { value, members } = parseObject(bytes)
  t.same(value, JSON.parse(text))
  t.same(
    members.map((member) => [
      member.key,
      bytes.toString('utf8', member.memberStart, member.valueStart),
      bytes.toString('utf8', member.valueStart, member.valueEnd),
    ]),
    [
      ['é', '"é" : ', '"ü"'],
      ['b', '"b":', '[1, {"b":2}]'],
      ['c', '"c":', '{}'],
      ['d', '"d":', '-1.5e3'],
      ['ef', '"e\\u0066":', 'true'],
    ],
  )
  t.same(parseObject(Buffer.from('{}')).members, [])
  t.end()
})

void t.test('the root must be one object', (t) => {
  refuses(t, '', { message: /empty/ })
  refuses(t, ' \n ', { message: /empty/ })
  for (const body of ['[]', '"a"', '1', 'null', 'true', '[{}]', 'undefined', '{}'.slice(1)]) {
    refuses(t, body, { message: /must be a JSON object/ })
  }
  for (const body of ['{} {}', '{}x', '{}}', '{},', '{"a":1}\u0000']) {
    refuses(t, body, { message: /continues after/ })
  }
  t.end()
})

void t.test('a syntax error is named by its path', (t) => {
  refuses(t, '{"messages":[{"role":"user"},{"content":}]}', {
    message: /a value in messages\[1\]\.content/,
    param: 'messages[1].content',
  })
  refuses(t, '{"a":{"b":[1 2]}}', {
    message: /comma or a closing bracket after a\.b\[0\], at byte 13/,
    param: 'a.b[0]',
  })
  refuses(t, '{"a":1 "b":2}', { message: /comma or a closing brace/, param: 'a' })
  refuses(t, '{"a" 1}', { message: /a colon/, param: 'a' })
  refuses(t, '{a:1}', { message: /a key in double quotes, at byte 1/ })
  refuses(t, "{'a':1}", { message: /a key in double quotes/ })
  refuses(t, '{"a":1,}', { message: /a key in double quotes/, param: 'a' })
  refuses(t, '{"a":[1,]}', { message: /a value/, param: 'a[1]' })
  refuses(t, '{"a":"b}', { message: /the end of a string/, param: 'a' })
  refuses(t, '{"a":"b\\"}', { message: /the end of a string/, param: 'a' })
  refuses(t, '{"a":[', { message: /a value/, param: 'a[0]' })
  refuses(t, '{', { message: /a key/ })
  refuses(t, '{"a":nul}', { message: /a value/, param: 'a' })
  refuses(t, '{"a":NaN}', { message: /a value/, param: 'a' })
  refuses(t, '{"a":1/*x*/}', { message: /comma/, param: 'a' })
  refuses(t, '{"a b":{"c.d":x}}', { message: /a value/, param: '["a b"]["c.d"]' })
  t.end()
})

void t.test('an invalid string, number or literal is refused', (t) => {
  const bodies = ['"\\x"', '"\n"', '"\\u12"', '01', '1.', '.5', '-', '+1', '1e', '0x10', '--1', 'truee']
  for (const value of bodies) t.match(refusal(`{"a":${value}}`).message, /not valid JSON/, value)
  t.match(refusal('{"\\q":1}').message, /not valid JSON: one of its keys/)
  refuses(t, '{"a":["b","secret\n"]}', {
    message: /a\[1\] is a string with an unescaped control/,
    param: 'a[1]',
  })
  refuses(t, '{"é":{"b":"x\\u12"}}', { message: /wrong escape, at byte 11/, param: '["é"].b' })
  refuses(t, '{"a":{"n":01}}', { message: /a\.n is not a number as JSON/, param: 'a.n' })
  t.notMatch(refusal('{"a":"my secret\n"}').message, /secret/, 'the text is not quoted')
  t.end()
})

void t.test('bytes must be UTF-8 without a byte order mark', (t) => {
  refuses(t, Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from('{}')]), {
    message: /byte order mark/,
  })
  refuses(t, Buffer.from('{"a":"\u00e9"}', 'latin1'), { message: /not valid UTF-8/ })
  refuses(t, Buffer.from('7b2261223a22eda08022 7d'.replace(' ', ''), 'hex'), {
    message: /not valid UTF-8/,
  })
  refuses(t, Buffer.from('{"a":1}', 'utf16le'), { message: /key in double quotes/ })
  const odd = '{"a":"\\ud800 \\u0000 \u2028 🦊 \u0080","ü":1}'
  t.same(parseObject(Buffer.from(odd)).value, JSON.parse(odd))
  t.end()
})

void t.test('the depth limit is exact', (t) => {
  const nested = (depth: number): string => '{"a":'.repeat(depth - 1) + '{}' + '}'.repeat(depth - 1)
  t.equal(refusal(nested(64)).message, 'accepted')
  t.match(refusal(nested(65)).message, /^too_deep/)
  const array = (depth: number): string => `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`
  t.equal(refusal(array(63)).message, 'accepted')
  t.match(refusal(array(64)).message, /^too_deep: a\[0\]\[0\]/)
  t.match(refusal(array(1_000_000)).message, /^too_deep/)
  t.ok((refusal(nested(10_000)).param ?? '').length <= 201, 'the path is bounded')
  t.match(refusal('{"a":{"b":{}}}', { maxDepth: 2 }), { message: /too_deep: a\.b /, param: 'a.b' })
  t.end()
})

void t.test('the limit of structural tokens is exact', (t) => {
  // Two braces, one colon, two brackets and n − 1 commas.
  const numbers = (n: number): string => `{"a":[${Array(n).fill('1').join(',')}]}`
  t.equal(refusal(numbers(6), { maxTokens: 10 }).message, 'accepted')
  t.match(refusal(numbers(7), { maxTokens: 10 }).message, /^too_complex.*10 structural/)
  t.equal(refusal(numbers(199_996)).message, 'accepted')
  t.match(refusal(numbers(199_997)).message, /^too_complex/)
  t.equal(refusal('{"a":"{[,:]}"}', { maxTokens: 3 }).message, 'accepted', 'not those in strings')
  t.end()
})

void t.test('a duplicate key is refused at every depth', (t) => {
  refuses(t, '{"model":"a","model":"b"}', { message: /^model is given twice/, param: 'model' })
  refuses(t, '{"mod\\u0065l":"a","model":"b"}', { message: /twice/, param: 'model' })
  refuses(t, '{"\u00e9":1,"\\u00e9":2}', { message: /twice/, param: '["é"]' })
  refuses(t, '{"a":[{},{"b":{"c":1,"c":1}}]}', { message: /twice/, param: 'a[1].b.c' })
  refuses(t, '{"__proto__":1,"__proto__":2}', { message: /twice/, param: '__proto__' })
  const many = Array.from({ length: 20 }, (_, i) => `"k${i}":0`).join(',')
  for (const key of ['k0', 'k8', 'k19']) refuses(t, `{${many},"${key}":1}`, { message: /twice/, param: key })
  for (const body of [`{${many}}`, '{"a":{"a":1},"b":[{"a":1},{"a":1}]}', '{"A":1,"a":1}']) {
    t.equal(refusal(body).message, 'accepted', body)
  }
  t.equal(refusal('{"\\ud800":1,"\\ud801":2}').message, 'accepted', 'lone surrogates differ')
  t.end()
})

void t.test('numbers beyond the range of a double are refused', (t) => {
  refuses(t, '{"a":[1,1e400]}', { message: /^a\[1\] is a number too large/, param: 'a[1]' })
  refuses(t, '{"a":-1E309}', { message: /too large/, param: 'a' })
  refuses(t, `{"a":${'9'.repeat(400)}}`, { message: /too large/, param: 'a' })
  for (const number of ['1.7976931348623157e308', '1e-400', '-0', '9007199254740993', '9'.repeat(300)]) {
    t.equal(refusal(`{"a":${number}}`).message, 'accepted', number)
  }
  t.end()
})

void t.test('keys of Object.prototype are ordinary keys', (t) => {
  const { value, members } = parseObject(
    Buffer.from('{"__proto__":{"polluted":1},"constructor":2,"a":{"__proto__":3}}'),
  )
  t.same(Object.keys(value), ['__proto__', 'constructor', 'a'])
  t.same(
    members.map((member) => member.key),
    ['__proto__', 'constructor', 'a'],
  )
  t.equal(Object.getPrototypeOf(value), Object.prototype)
  t.notOk('polluted' in {}, 'the prototype is unchanged')
  t.end()
})

void t.test('hostile bodies take milliseconds', (t) => {
  const bodies: Record<string, string> = {
    'ten thousand levels': `{"a":${'['.repeat(10_000)}`,
    'half a million keys': `{${Array.from({ length: 500_000 }, (_, i) => `"k${i}":1`).join(',')}}`,
    'a string of backslashes': `{"a":"${'\\'.repeat(1_000_000)}`,
    'a million quotes': `{"a":"${'\\"'.repeat(1_000_000)}`,
  }
  for (const [name, body] of Object.entries(bodies)) {
    const bytes = Buffer.from(body)
    const start = process.cpuUsage()
    t.not(refusal(bytes).message, 'accepted', name)
    const { user, system } = process.cpuUsage(start)
    // 100 times the time on an idle core, and 1/100 of that of a quadratic scan.
    t.ok(user + system < 1_500_000, `${name}: ${(user + system) / 1000} ms`)
  }
  t.end()
})

void t.test('an upstream reply must be an object', (t) => {
  t.same(parseReply('{"a":1,"a":2}'), { a: 2 })
  for (const text of ['', '[]', 'null', '1', '{', '<html>', '"x"']) t.equal(parseReply(text), null, text)
  t.end()
})

function objectIn(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : null
  } catch {
    return null
  }
}

void t.test('seeded bodies are accepted exactly if JSON.parse accepts them', (t) => {
  let state = 20_260_101
  const random = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return Math.floor((state / 0x80000000) * below)
  }
  const pick = (from: readonly string[]): string => from[random(from.length)] ?? ''
  const space = (): string => pick(['', '', '', ' ', '\n', '\r\n', '\t '])
  const value = (depth: number): string => {
    const kind = random(depth > 4 ? 3 : 5)
    if (kind === 0) return pick(['1', '-0', '2.5e-3', '123456789012345678', 'true', 'false', 'null'])
    if (kind < 3) return JSON.stringify(pick(['', 'a"b', '\\', 'ü🦊', '\u0001', '{[', ']},:', '\\"']))
    const parts = Array.from({ length: random(4) }, (_, i) => {
      const key = kind === 3 ? '' : `${space()}${JSON.stringify(`${pick(['k', 'ü', '"'])}${i}`)}${space()}:`
      return `${key}${space()}${value(depth + 1)}${space()}`
    })
    return kind === 3 ? `[${parts.join(',')}]` : `{${parts.join(',')}}`
  }
  let valid = 0
  let differing = 0
  for (let i = 0; i < 20_000; i += 1) {
    const seed = `${space()}{"a":${value(0)},"b":${value(1)}}${space()}`
    const at = random(seed.length)
    const mutated = pick(['', '"', '\\', '{', '}', '[', ']', ',', ':', '1', ' ', 'e', '-', 'n'])
    // A split surrogate pair becomes the replacement characters of its bytes.
    const text = Buffer.from(
      i % 2 === 0 ? seed : seed.slice(0, at) + mutated + seed.slice(at + random(2)),
    ).toString()
    const expected = objectIn(text)
    const wire = refusal(text)
    // The scanner alone refuses duplicates and huge numbers, which a mutation can make.
    if (/given twice|too large/.test(wire.message)) continue
    const isSame =
      expected === null
        ? wire.message !== 'accepted'
        : wire.message === 'accepted' &&
          JSON.stringify(parseObject(Buffer.from(text)).value) === JSON.stringify(expected)
    if (expected !== null) valid += 1
    if (!isSame && differing++ < 3) t.fail(`${text} → ${wire.message}`)
  }
  t.equal(differing, 0)
  t.ok(valid > 10_000 && valid < 19_900, `${valid} were valid`)
  t.end()
})
