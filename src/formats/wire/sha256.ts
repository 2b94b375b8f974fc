/**
 * SHA-256 (FIPS 180-4) for stable short names in codecs, which may not import node:crypto. Not for secrets,
 * because it is not constant in time.
 */

const ROOTS = roots()

/** The hash of the text's UTF-8 bytes, as 64 hexadecimal digits. */
export function sha256Hex(text: string): string {
  const words = padded(Buffer.from(text, 'utf8'))
  const state = new Uint32Array(ROOTS.initial)
  const schedule = new Uint32Array(64)
  for (let at = 0; at < words.length; at += 16) {
    schedule.set(words.subarray(at, at + 16))
    extend(schedule)
    compress(state, schedule)
  }
  return Array.from(state, (word) => word.toString(16).padStart(8, '0')).join('')
}

/** Constants of the standard: fractional bits of square and cube roots of the first primes. */
function roots(): { initial: Uint32Array; round: Uint32Array } {
  const initial = new Uint32Array(8)
  const round = new Uint32Array(64)
  let found = 0
  for (let n = 2; found < 64; n++) {
    if (!isPrime(n)) continue
    if (found < 8) initial[found] = fraction(Math.sqrt(n))
    round[found] = fraction(Math.cbrt(n))
    found += 1
  }
  return { initial, round }
}

function isPrime(n: number): boolean {
  for (let divisor = 2; divisor * divisor <= n; divisor++) if (n % divisor === 0) return false
  return true
}

function fraction(root: number): number {
  return Math.floor((root - Math.floor(root)) * 2 ** 32)
}

function padded(bytes: Buffer): Uint32Array {
  const blocks = Math.ceil((bytes.length + 9) / 64)
  const block = Buffer.alloc(blocks * 64)
  bytes.copy(block)
  block[bytes.length] = 0x80
  block.writeUInt32BE(Math.floor((bytes.length * 8) / 2 ** 32), block.length - 8)
  block.writeUInt32BE((bytes.length * 8) >>> 0, block.length - 4)
  const words = new Uint32Array(blocks * 16)
  for (let i = 0; i < words.length; i++) words[i] = block.readUInt32BE(i * 4)
  return words
}

function turn(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by))
}

function extend(w: Uint32Array): void {
  for (let i = 16; i < 64; i++) {
    const near = w[i - 2] ?? 0
    const far = w[i - 15] ?? 0
    const s0 = turn(far, 7) ^ turn(far, 18) ^ (far >>> 3)
    const s1 = turn(near, 17) ^ turn(near, 19) ^ (near >>> 10)
    w[i] = (w[i - 16] ?? 0) + s0 + (w[i - 7] ?? 0) + s1
  }
}

function compress(state: Uint32Array, w: Uint32Array): void {
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state
  for (let i = 0; i < 64; i++) {
    const s1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + (ROOTS.round[i] ?? 0) + (w[i] ?? 0)) | 0
    const s0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
    h = g
    g = f
    f = e
    e = (d + t1) | 0
    d = c
    c = b
    b = a
    a = (t1 + t2) | 0
  }
  const mixed = [a, b, c, d, e, f, g, h]
  for (let i = 0; i < 8; i++) state[i] = (state[i] ?? 0) + (mixed[i] ?? 0)
}
