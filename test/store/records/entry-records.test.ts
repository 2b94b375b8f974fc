/**
 * Goal: reading an entry returns what was written, and damage is an error that names the field.
 * Method: writes and reads extreme values of each field; then replaces each value of the text and truncates
 * it.
 */
import t from 'tap'
import { ERRORS } from '../../../src/errors.js'
import { readEntry, writeEntry } from '../../../src/store/records/entry-text.js'
import { aRow } from '../ledger/sample-entries.js'

void t.test('reading an entry returns what was written', (t) => {
  const rows = [
    aRow(),
    aRow({ usage: {}, hops: {}, losses: [], modelAsked: null, costNanoUsd: null }),
    aRow({ usage: { reasoning: 0 }, hops: { overhead: 0 }, losses: ['a', ''] }),
    aRow({ usage: { input: 2 ** 53 - 1 }, costNanoUsd: 0, durationMs: 0.125 }),
    aRow({ ingress: 'chat', errorMessage: 'n "o"', limit: 'a b', upstreamStatus: 429 }),
    aRow({ upstreamRequestId: 'r', attempted: 'a:ok', shadowOf: 's', labels: 'k=v' }),
    aRow({ clientRequestId: 'c', attemptMs: [0, 12.125], retryAfterSeconds: 30 }),
    aRow({ modelAsked: '\n\r\u2028"\\\0', finish: '' }),
    ...Object.keys(ERRORS).map((kind) => ({ ...aRow(), outcome: kind as keyof typeof ERRORS })),
  ]
  for (const row of rows) {
    const text = writeEntry(row)
    t.strictSame(readEntry(text), row)
    t.notMatch(text, '\n', 'the text is one line')
  }
  const former = JSON.stringify([1, ...(JSON.parse(writeEntry(aRow())) as unknown[]).slice(1, 23)])
  t.match(readEntry(former), { clientRequestId: null, upstreamStatus: null, attempts: 1 }, 'reads version 1')
  t.ok(writeEntry(aRow()).length < 395, 'the text is a third of JSON with names')
  const odd = readEntry(writeEntry(aRow({ durationMs: Number.NaN, atMs: Number.POSITIVE_INFINITY })))
  t.match(odd, { durationMs: 0, atMs: 0 }, 'a number that is not finite is read as 0')
  t.end()
})

void t.test('entries with different models and upstreams are read as written', (t) => {
  const row = aRow()
  const others = [
    row,
    { ...row, modelAnswered: 'another' },
    { ...row, modelAnswered: null },
    { ...row, model: 'another' },
    { ...row, upstream: 'another' },
    { ...row, upstream: null },
    { ...row, dialect: 'gemini' as const },
    { ...row, dialect: null },
    { ...row, modelAsked: 'x'.repeat(600) },
  ]
  for (const each of [...others, ...others.flatMap((one) => [one, one, row])]) {
    t.strictSame(readEntry(writeEntry(each)), each)
  }
  for (let n = 0; n < 1_100; n += 1) {
    const each = { ...row, modelAsked: `model-${n}` }
    t.strictSame(readEntry(writeEntry(each)), each)
  }
  t.end()
})

void t.test('an error names the damaged field and contains no value', (t) => {
  const row = aRow()
  const values = JSON.parse(writeEntry(row)) as unknown[]
  const secret = 'a-value-that-must-not-show'
  const flags = JSON.parse(writeEntry(aRow({ cacheHit: true, recorded: true }))) as unknown[]
  values.forEach((_, at) => {
    for (const wrong of [{ secret }, [[secret]], true]) {
      if (wrong === flags[at]) continue
      const text = JSON.stringify(values.with(at, wrong))
      const error = failureOf(() => readEntry(text))
      t.match(error, /field '\w+' is not/)
      t.notMatch(error, secret)
    }
  })
  const text = writeEntry(row)
  for (let length = 0; length < text.length; length += 1) {
    t.match(
      failureOf(() => readEntry(text.slice(0, length))),
      /not JSON/,
    )
  }
  for (const other of ['{}', 'null', '7', '"[1]"']) {
    t.match(
      failureOf(() => readEntry(other)),
      /not a JSON array/,
    )
  }
  t.match(
    failureOf(() => readEntry('[3]')),
    /'v' is not 2/,
  )
  t.match(
    failureOf(() => readEntry(JSON.stringify(values.with(14, 'gone')))),
    /'outcome'/,
  )
  t.match(
    failureOf(() => readEntry(JSON.stringify(values.with(10, 'klingon')))),
    /'dialect'/,
  )
  t.match(
    failureOf(() => readEntry(JSON.stringify(values.with(17, 'unknown')))),
    /'source'/,
  )
  t.end()
})

function failureOf(action: () => unknown): string {
  try {
    action()
  } catch (error) {
    return String(error)
  }
  return 'nothing failed'
}
