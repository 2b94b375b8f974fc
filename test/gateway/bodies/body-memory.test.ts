/**
 * Goal: the memory of bodies is counted by process and account, and all of it is freed.
 * Method: the budget alone; `process/gateway/memory.test.ts` tests it in a running gateway.
 */
import { isAscii } from 'node:buffer'
import t from 'tap'
import { BodyMemory } from '../../../src/gateway/body-memory.js'
import { GatewayError } from '../../../src/errors.js'
import { isObject, type JsonObject } from '../../../src/base/json.js'
import { LongText, putLongText } from '../../../src/formats/chat/long-text.js'

/** The kind and `retryAfterSeconds` of the error that the step throws; null if it throws none. */
function refusal(step: () => void): readonly [string, number | undefined] | null {
  try {
    step()
    return null
  } catch (error) {
    if (error instanceof GatewayError) return [error.kind, error.wire.retryAfterSeconds]
    throw error
  }
}

void t.test('the process, an account and a body each have a limit', (t) => {
  const budget = new BodyMemory(1_000)
  const [one, two, other] = [budget.open('a'), budget.open('a'), budget.open('b')]
  t.equal(
    refusal(() => one.take(300)),
    null,
  )
  t.same(
    refusal(() => two.take(201)),
    ['rate_limited', 1],
    'more than half for one account',
  )
  t.equal(
    refusal(() => two.take(200)),
    null,
  )
  t.equal(
    refusal(() => other.take(450)),
    null,
  )
  const third = budget.open('c')
  t.same(
    refusal(() => third.take(51)),
    ['overloaded', 1],
  )
  t.same(
    refusal(() => third.takeReply(501)),
    ['overloaded', 1],
    'a reply is never too large by itself',
  )
  t.same(
    refusal(() => third.take(501)),
    ['body_too_large', undefined],
    'a retry cannot succeed',
  )
  t.equal(budget.heldBytes, 950, 'refused amounts are not reserved')
  for (const holding of [one, two, other, third, one]) holding.end()
  one.take(100)
  t.same([budget.heldBytes, budget.size], [0, 0], 'nothing is held after the end')
  t.end()
})

void t.test('bytes that are given back early are free for others, and are not freed twice', (t) => {
  const budget = new BodyMemory(1_000)
  const [one, two] = [budget.open('a'), budget.open('b')]
  one.take(400)
  one.free(300)
  two.take(500)
  t.equal(budget.heldBytes, 600)
  one.free(1_000)
  one.end()
  t.equal(budget.heldBytes, 500, 'only its own bytes')
  t.end()
})

void t.test('the memory of a body includes its text, its copies and its structure', (t) => {
  const chargeOf = (text: string): readonly [number, number] => {
    const budget = new BodyMemory(1e9)
    const holding = budget.open('a')
    const body: unknown = JSON.parse(text)
    if (!isObject(body)) throw new Error('no object')
    const bytes = Buffer.from(text)
    holding.beginParsing(bytes.length, isAscii(bytes))
    const whileParsed = budget.heldBytes
    holding.endParsing(body)
    return [whileParsed, budget.heldBytes]
  }
  const ascii = JSON.stringify({ a: 'x'.repeat(1_000_000) })
  const wide = JSON.stringify({ a: `${'x'.repeat(1_000_000)}語` })
  const dense = `{"a":[${'[],'.repeat(100_000)}[]]}`
  const near = (bytes: number, factor: number): boolean => Math.abs(bytes / 1_000_000 - factor) < 0.01
  const [asciiParsed, asciiHeld] = chargeOf(ascii)
  t.ok(near(asciiParsed, 3) && near(asciiHeld, 2), `${asciiParsed}, ${asciiHeld}`)
  const [wideParsed, wideHeld] = chargeOf(wide)
  t.ok(near(wideParsed, 7) && near(wideHeld, 4), `${wideParsed}, ${wideHeld}`)
  const [, denseHeld] = chargeOf(dense)
  t.ok(denseHeld > 100_000 * 100, `${denseHeld} for 300 KB of brackets`)
  t.end()
})

void t.test('a long text is counted without decoding', (t) => {
  let decoded = 0
  const long = new LongText(100_000, () => {
    decoded += 1
    return 'x'.repeat(100_000)
  })
  const message: JsonObject = { role: 'user' }
  putLongText(message, 'content', long)
  const budget = new BodyMemory(1e9)
  const charged = (body: JsonObject): number => {
    const holding = budget.open('a')
    holding.endParsing(body)
    const bytes = budget.heldBytes
    holding.end()
    return bytes
  }
  const short = charged({ messages: [{ role: 'user', content: 'x' }] })
  t.equal(charged({ messages: [message] }), short, 'as much as a short one')
  t.equal(decoded, 0)
  t.equal(message['content'], 'x'.repeat(100_000), 'and it can be read')
  t.equal(decoded, 1)
  t.end()
})

void t.test('optional work gets a share, and only while half of the budget is free', (t) => {
  const budget = new BodyMemory(1_000)
  const has = (bytes: number): boolean => budget.hasSpareRoom('shadow', bytes, 0.1)
  t.ok(has(100))
  t.notOk(has(101), 'more than its share')
  const own = budget.open('shadow')
  own.take(60)
  t.equal(own.heldBytes, 60)
  t.ok(has(40))
  t.notOk(has(41), 'more than its share, including the bytes in use')
  const client = budget.open('client')
  client.take(401)
  t.notOk(has(40), 'all together would use more than half')
  client.end()
  own.end()
  t.ok(has(100))
  t.equal(budget.heldBytes, 0)
  t.end()
})
