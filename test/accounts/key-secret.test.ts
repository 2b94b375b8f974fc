/**
 * Goal: secrets have the documented form and are uniformly random, and the checksum detects typing errors.
 * Method: properties of many secrets, a scripted source of bytes, and one independently calculated value.
 */
import { createHash } from 'node:crypto'
import t from 'tap'
import { digestOf, hasValidForm, newSecret, randomBase62, shownParts } from '../../src/accounts/key-secret.js'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

void t.test('a secret is sk_ and 44 base62 characters with a checksum of six', (t) => {
  const seen = new Set<string>()
  for (let index = 0; index < 2_000; index += 1) {
    const secret = newSecret()
    t.match(secret, /^sk_[0-9A-Za-z]{44}$/)
    if (!hasValidForm(secret)) t.fail('a new secret must have a valid form')
    seen.add(secret)
  }
  t.equal(seen.size, 2_000, 'no two are alike')
  t.end()
})

void t.test('every change of one character is detected', (t) => {
  let missed = 0
  let tried = 0
  for (let round = 0; round < 8; round += 1) {
    const secret = newSecret()
    for (let index = 0; index < secret.length; index += 1) {
      for (const other of BASE62 + '_- \n\0é') {
        if (other === secret[index]) continue
        tried += 1
        if (hasValidForm(secret.slice(0, index) + other + secret.slice(index + 1))) missed += 1
      }
    }
  }
  t.equal(missed, 0, `${tried} changes`)
  t.end()
})

void t.test('swapped characters and malformed secrets are refused', (t) => {
  const secret = newSecret()
  for (let index = 3; index < secret.length - 1; index += 1) {
    const [a = '', b = ''] = secret.slice(index, index + 2)
    if (a === b) continue
    const swapped = secret.slice(0, index) + b + a + secret.slice(index + 2)
    t.notOk(hasValidForm(swapped), `characters ${index} and ${index + 1} swapped`)
  }
  const odd = ['', 'sk_', secret.slice(1), secret.slice(0, -1), `${secret}0`, ` ${secret}`]
  odd.push(`${secret}\n`, secret.toUpperCase(), secret.replace('_', '-'), 'k'.repeat(8_192))
  odd.push("sk_' OR 1=1 --", '*3\r\n$3\r\nSET', '{hash}tag}', 'sk_\0', 'sk_*', 'sk_' + 'é'.repeat(44))
  for (const text of odd) t.notOk(hasValidForm(text), JSON.stringify(text.slice(0, 20)))
  t.end()
})

void t.test('the checksum is CRC-32 in base62', (t) => {
  t.equal(crc32Bitwise('123456789'), 0xcbf43926, 'the check value of the algorithm')
  for (let index = 0; index < 100; index += 1) {
    const secret = newSecret()
    let value = 0
    for (const digit of secret.slice(-6)) value = value * 62 + BASE62.indexOf(digit)
    t.equal(value, crc32Bitwise(secret.slice(0, -6)))
  }
  t.end()
})

void t.test('bytes that would favour some characters are discarded', (t) => {
  const bytes = [255, 248, 0, 61, 62, 247, 254, 1]
  let requestedBytes = 0
  const text = randomBase62(5, (count) => {
    requestedBytes += 1
    t.ok(count >= 1)
    return Uint8Array.from(bytes)
  })
  t.equal(text, '0z0z1', '248 and more are skipped, 247 is not')
  t.equal(requestedBytes, 1)
  t.equal(
    randomBase62(7, () => Uint8Array.from(bytes)),
    '0z0z10z',
    'more bytes where too few',
  )

  const counts = new Map<string, number>()
  for (const character of randomBase62(62_000)) {
    counts.set(character, (counts.get(character) ?? 0) + 1)
  }
  t.equal(counts.size, 62)
  // 1,000 expected per character, standard deviation 31: a deviation of 186 occurs once in 10^8 runs.
  for (const [character, count] of counts) t.ok(Math.abs(count - 1_000) < 190, character)
  t.end()
})

void t.test('the digest is SHA-256 of the secret, and the displayed parts are short', (t) => {
  const secret = newSecret()
  t.equal(digestOf(secret), createHash('sha256').update(secret).digest('hex'))
  t.same(shownParts('sk_abcdefghijklmnop'), { prefix: 'sk_abcde', lastFour: 'mnop' })
  t.end()
})

/** CRC-32 by its definition: the reflected IEEE polynomial, bit by bit. */
function crc32Bitwise(text: string): number {
  let crc = 0xffffffff
  for (const byte of Buffer.from(text)) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  }
  return (crc ^ 0xffffffff) >>> 0
}
