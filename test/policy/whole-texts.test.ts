/**
 * Goal: the CPU time of own rules is limited for a request or a whole reply, for every number of its parts;
 * time in which the process did not run does not count.
 */
import t from 'tap'
import { atOnce, type Steps } from '../../src/base/steps.js'
import { ruleSetOf } from '../../src/policy/rules/rule-set.js'
import { boundedSteps, verdictSteps } from '../../src/policy/whole-texts.js'

const NOTHING: Steps<undefined>[] = []
const NEVER = new AbortController().signal

/** Takes this much CPU time in one step. */
function* busy(ms: number): Steps<number> {
  const before = process.cpuUsage()
  for (let used = 0; used < ms * 1000;) {
    const { user, system } = process.cpuUsage(before)
    used = user + system
  }
  for (const step of NOTHING) yield* step
  return ms
}

void t.test('many short parts share the time of a whole reply', (t) => {
  const time = { leftMs: 50 }
  let parts = 0
  t.throws(() => {
    for (; parts < 100; parts += 1) atOnce(boundedSteps(busy(5), time, NEVER))
  }, /its rules took too long/)
  t.ok(parts >= 5 && parts <= 12, `${parts} parts`)
  t.throws(() => atOnce(boundedSteps(busy(0), time, NEVER)), /took too long/, 'and no other is judged')
  t.end()
})

void t.test('texts that masking would make many times as long are refused', (t) => {
  const rules = ruleSetOf('a-rule-with-a-long-name', ['zq'])
  const judge = (texts: readonly string[]) => {
    const parts = texts.map((text) => ({ text, isJson: false }))
    return atOnce(verdictSteps(rules, parts, { action: 'mask', limit: 8_192 }))
  }
  t.match(judge(['zq '.repeat(5_000)]), { kind: 'mask' }, 'a short one')
  t.match(judge([`${'words '.repeat(200_000)}${'zq '.repeat(5_000)}`]), { kind: 'mask' }, 'few matches')
  t.throws(() => judge(['zq '.repeat(200_000)]), /text is too large/, 'one text')
  t.throws(() => judge(Array.from({ length: 100_000 }, () => 'zq zq')), /text is too large/, 'many texts')
  t.end()
})

void t.test('a step that waits takes no time', (t) => {
  const time = { leftMs: 50 }
  const wait = new Int32Array(new SharedArrayBuffer(4))
  function* waiting(): Steps<string> {
    Atomics.wait(wait, 0, 0, 100)
    yield
    return 'judged'
  }
  t.equal(atOnce(boundedSteps(waiting(), time, NEVER)), 'judged')
  t.ok(time.leftMs > 25, `${time.leftMs} ms are left`)
  t.end()
})
