/**
 * Goal: a body with too much text is refused while it arrives; a body that the full scan accepts is not.
 * Method: bodies around the limit in chunks of several sizes, compared with the scan of the whole body.
 */
import t from 'tap'
import { GatewayError } from '../../../../src/errors.js'
import { parseObject } from '../../../../src/formats/wire/json/parse-body.js'
import { TextLimit } from '../../../../src/formats/wire/json/text-limit.js'
import { dice } from '../../../helpers/seeded-random.js'

const MOST = 200_000

/** The number of bytes that arrived before the body was refused; null if it was accepted. */
function refusedAt(body: Buffer, chunkBytes: number): number | null {
  const text = new TextLimit(MOST)
  for (let at = 0; at < body.length; at += chunkBytes) {
    try {
      text.add(body.subarray(at, at + chunkBytes))
    } catch (error) {
      t.match(error, { kind: 'malformed_request', message: /^too_complex: .* 200000 bytes/ })
      return at + chunkBytes
    }
  }
  return null
}

function isAccepted(body: Buffer): boolean {
  try {
    parseObject(body, { maxTextBytes: MOST })
    return true
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return false
  }
}

void t.test('text above the limit is refused soon after the limit', (t) => {
  for (const unit of ['я', '漢', '😀', `${'a'.repeat(98)}я`]) {
    const content = unit.repeat(Math.ceil(1_000_000 / Buffer.byteLength(unit)))
    const body = Buffer.from(JSON.stringify({ content }))
    const at = refusedAt(body, 16_384) ?? Infinity
    t.ok(at > MOST && at < MOST + 40_000, `${unit.slice(-2)}: after ${at} bytes`)
  }
  t.end()
})

void t.test('inline data does not count as text', (t) => {
  const data = 'A'.repeat(900_000)
  const text = '漢'.repeat(60_000)
  for (const content of [
    [data, text],
    [text, data],
    [text.slice(0, 30_000), data, text.slice(0, 30_000)],
  ]) {
    const body = Buffer.from(JSON.stringify({ content }))
    for (const chunkBytes of [1_000, 16_384, 65_536, 400_000]) {
      t.equal(refusedAt(body, chunkBytes), null, `${chunkBytes} bytes at a time`)
    }
    t.ok(isAccepted(body))
  }
  t.end()
})

void t.test('a body that the full scan accepts is not refused early', (t) => {
  const random = dice(7)
  const below = (most: number): number => Math.floor(random() * most)
  for (let round = 0; round < 60; round += 1) {
    const content = Array.from({ length: 1 + below(6) }, () => {
      const unit = ['A', 'я', '漢', 'a b'][below(4)] ?? ''
      return unit.repeat(below(Math.ceil(120_000 / Buffer.byteLength(unit))))
    })
    const body = Buffer.from(JSON.stringify({ content }))
    const isRefused = refusedAt(body, 1 + below(100_000)) !== null
    t.notOk(isRefused && isAccepted(body), `round ${round}`)
  }
  t.end()
})
