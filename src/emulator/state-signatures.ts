/**
 * Signatures of opaque state, which the emulated providers verify when clients send it back. They are
 * checksums without a key: they detect lost or mixed-up state, not forgery.
 */
import { hashOf, opaqueOf } from './seeded-random.js'
import type { RandomSource } from './seeded-random.js'

const SALT = 0x51ce
const CHECK_BYTES = 4

/**
 * Base64 of `bytes` pseudo-random bytes followed by one checksum for each text that the state is bound to.
 */
export function signState(bound: readonly string[], random: RandomSource, bytes: number): string {
  const key = opaqueOf(random, bytes)
  const checks = bound.map((text) => {
    const check = Buffer.alloc(CHECK_BYTES)
    check.writeUInt32BE(hashOf(`${key} ${text}`, SALT))
    return check
  })
  return Buffer.concat([Buffer.from(key, 'base64'), ...checks]).toString('base64')
}

/**
 * For each text, whether the state is bound to it. Accepts both alphabets of base64, since clients rewrite
 * one as the other.
 */
export function verifyState(bound: readonly string[], signature: string): boolean[] {
  const bytes = Buffer.from(signature, 'base64')
  const at = bytes.length - bound.length * CHECK_BYTES
  if (at <= 0) {
    return bound.map(() => false)
  }
  const key = bytes.subarray(0, at).toString('base64')
  return bound.map((text, index) => {
    return bytes.readUInt32BE(at + index * CHECK_BYTES) === hashOf(`${key} ${text}`, SALT)
  })
}
