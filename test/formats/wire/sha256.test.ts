/**
 * Goal: the pure implementation computes SHA-256.
 * Method: comparison with node:crypto for every padding length and some text.
 */
import { createHash } from 'node:crypto'
import t from 'tap'
import { sha256Hex } from '../../../src/formats/wire/sha256.js'

void t.test('digests equal those of node:crypto', (t) => {
  const texts = Array.from({ length: 200 }, (_, length) => 'a'.repeat(length))
  for (const text of [...texts, 'é🐈\ud800', 'x'.repeat(100_000)]) {
    const expected = createHash('sha256').update(Buffer.from(text, 'utf8')).digest('hex')
    if (sha256Hex(text) !== expected) t.fail(`length ${text.length}`)
  }
  t.equal(sha256Hex('abc').slice(0, 8), 'ba7816bf')
  t.end()
})
