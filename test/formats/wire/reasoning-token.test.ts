/**
 * Goal: a token restores exactly the state that it was made of, and none after any change.
 * Method: every content; every character changed or cut; forged headers and contents.
 */
import { crc32 } from 'node:zlib'
import t from 'tap'
import { NestedJson } from '../../../src/formats/wire/json/nested-json.js'
import {
  isReasoningToken,
  readReasoningToken,
  writeReasoningToken,
} from '../../../src/formats/wire/reasoning-token.js'

type State = Parameters<typeof writeReasoningToken>[0]

const TEXTS = ['', 'x', 'rs_1:c2VhbGVk+/=', 'with\n"lines"\n', 'é\u{1F600}', 'a'.repeat(10_000)]
const STATE: State = {
  origin: 'gemini',
  thoughts: [{ signature: 'c2lnbmF0dXJl' }],
  of: { call: 'call_1' },
}

function read(token: string): ReturnType<typeof readReasoningToken> {
  return readReasoningToken(token, new NestedJson())
}

function bytesOf(token: string): Buffer {
  return Buffer.from(token, 'base64')
}

/** A token with a correct header for any body. */
function forged(body: string, version = '1'): string {
  const checksum = crc32(body).toString(16).padStart(8, '0')
  return Buffer.from(`sluice:${version}:${checksum}\n${body}`).toString('base64')
}

void t.test('a token restores its state', (t) => {
  const thoughts = TEXTS.flatMap((text) => [
    { text },
    { signature: text },
    { redacted: text },
    { text, signature: text, redacted: text },
    {},
  ])
  for (const origin of ['openai-chat', 'openai-responses', 'anthropic', 'gemini']) {
    for (const of of [undefined, 'text', { call: 'call_"é"\n' }] as const) {
      for (const own of [[], thoughts, ...thoughts.map((thought) => [thought])]) {
        const state = { origin, of, thoughts: own }
        const token = writeReasoningToken(state)
        t.ok(isReasoningToken(token))
        t.strictSame(read(token), state)
      }
    }
  }
  const surrogate = { origin: 'anthropic', of: undefined, thoughts: [{ text: '\ud83d' }] }
  t.strictSame(read(writeReasoningToken(surrogate)), surrogate, 'half of a pair in a text')
  t.end()
})

void t.test('a token is standard base64 without padding', (t) => {
  for (let length = 0; length < 6; length += 1) {
    const token = writeReasoningToken({ origin: 'a', thoughts: [{ text: 'é'.repeat(length) }] })
    t.match(token, /^(?:[A-Za-z0-9+/]{4})+$/)
    t.equal(bytesOf(token).toString('base64'), token)
  }
  t.end()
})

void t.test('a token is at most a third longer than a large state', (t) => {
  const signature = `rs_1:${'aZ09+/-_'.repeat(12_800)}`
  const token = writeReasoningToken({ origin: 'openai-responses', thoughts: [{ signature }] })
  t.ok(token.length < (signature.length * 4) / 3 + 200, `${token.length}`)
  t.end()
})

void t.test('the alphabet for addresses and line breaks do not change a token', (t) => {
  const state = { origin: 'gemini', of: undefined, thoughts: [{ signature: '???>>>~~~' }] }
  const token = writeReasoningToken(state)
  t.match(token, /[+/]/)
  const other = bytesOf(token).toString('base64url')
  t.ok(isReasoningToken(other))
  t.strictSame(read(other), state)
  t.strictSame(read(token.replace(/.{40}/g, '$&\n')), state)
  t.end()
})

void t.test('a changed or truncated token restores nothing', (t) => {
  const token = writeReasoningToken(STATE)
  for (let at = 0; at < token.length; at += 1) {
    for (const other of token[at] === 'A' ? ['B', '=', ''] : ['A', '=', '']) {
      const changed = token.slice(0, at) + other + token.slice(at + 1)
      t.equal(read(changed), null, `${JSON.stringify(other)} at ${at}`)
      t.equal(isReasoningToken(changed), at >= 'c2x1aWNl'.length)
    }
    t.equal(read(token.slice(0, at)), null, `cut at ${at}`)
    t.equal(read(`${token.slice(0, at)}AAAA${token.slice(at)}`), null, `longer at ${at}`)
  }
  t.end()
})

void t.test('a token of another version is recognised and restores nothing', (t) => {
  const body = bytesOf(writeReasoningToken(STATE)).subarray('sluice:1:01234567\n'.length).toString()
  t.not(read(forged(body)), null)
  for (const version of ['0', '2', 'v1', '10', '']) {
    const token = forged(body, version)
    t.ok(isReasoningToken(token), version)
    t.equal(read(token), null, version)
  }
  // The forms of the first builds.
  for (const token of ['sluice1.r.0badcafe.state', 'sluice.1.eyJvIjoiZ2VtaW5pIn0']) {
    t.ok(isReasoningToken(token), token)
    t.equal(read(token), null, token)
  }
  t.end()
})

void t.test('forged contents restore no more than the token has', (t) => {
  const thoughts = (lengths: unknown[]): string => {
    const own = lengths.map((signature) => ({ signature }))
    return `${JSON.stringify({ origin: 'gemini', thoughts: own })}\nabcdef`
  }
  t.match(read(forged(thoughts([4, 9]))), {
    thoughts: [{ signature: 'abcd' }, { signature: 'ef' }],
  })
  for (const length of [-3, 1.5, '3', null, 1e99]) {
    t.strictSame(read(forged(thoughts([length, 3])))?.thoughts, [{}, { signature: 'abc' }])
  }
  t.match(read(forged('{"origin":"gemini","thoughts":3}')), null, 'no line')
  t.strictSame(read(forged('{"origin":"gemini","thoughts":[7]}\n'))?.thoughts, [])
  for (const body of ['', '\n', '{}\n', '[]\n', 'x\n', '{"origin":1}\n', '['.repeat(90_000)]) {
    t.equal(read(forged(body)), null)
  }
  t.equal(read(forged(thoughts(Array.from({ length: 100_000 }, () => 0)))), null, 'too many')
  t.end()
})

void t.test("providers' states are no tokens", (t) => {
  for (const state of ['EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk', 'gAAAAABo', 'sluice', ''])
    t.notOk(isReasoningToken(state))
  t.end()
})
