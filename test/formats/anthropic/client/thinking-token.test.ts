/** Goal: a token restores exactly the state that it was made of, and none after any change. */
import t from 'tap'
import {
  isThinkingToken,
  openThinking,
  sealThinking,
} from '../../../../src/formats/anthropic/client/thinking-token.js'

const STATES = ['', 'x', 'rs_1:c2VhbGVk+/=', 'with.dots.in.it', 'é\u{1F600}', 'a'.repeat(10_000)]

void t.test('a token restores its state', (t) => {
  for (const origin of ['openai-chat', 'openai-responses', 'gemini']) {
    for (const state of STATES) {
      const token = sealThinking(origin, state)
      t.ok(isThinkingToken(token))
      t.same(openThinking(token), { origin, state })
    }
  }
  t.end()
})

void t.test('a changed or truncated token restores nothing', (t) => {
  const token = sealThinking('gemini', 'c2lnbmF0dXJl')
  for (let at = 'sluice1.'.length; at < token.length; at += 1) {
    const other = token[at] === 'A' ? 'B' : 'A'
    t.equal(
      openThinking(token.slice(0, at) + other + token.slice(at + 1)),
      null,
      `changed at ${at}`,
    )
    t.equal(openThinking(token.slice(0, at)), null, `cut at ${at}`)
  }
  t.end()
})

void t.test("Anthropic's signature is not a token", (t) => {
  t.notOk(isThinkingToken('EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk'))
  t.notOk(isThinkingToken(''))
  t.end()
})
