/**
 * Encrypts and authenticates texts in the store (AES-256-GCM) and derives their names (HMAC-SHA-256):
 * reasoning state, stored responses, cached replies and recordings. Without the secret, a text cannot be
 * attributed, read, changed or moved to another name.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'

/** The first byte of a sealed text. */
const VERSION = 1
const CIPHER = 'aes-256-gcm'
const IV_BYTES = 12
const TAG_BYTES = 16
const HEAD_BYTES = 1 + IV_BYTES + TAG_BYTES
const KEY_BYTES = 32
/** What is opened in given memory is decrypted in chunks of this size. */
const SLICE_BYTES = 65_536

/** Two keys derived from one secret. All processes with the same secret can open each other's texts. */
export class Seal {
  private readonly nameKey: Buffer
  private readonly textKey: Buffer

  constructor(secret: string) {
    this.nameKey = derived(secret, 'sluice escrow names')
    this.textKey = derived(secret, 'sluice escrow texts')
  }

  /** The name for some parts, from which they cannot be derived. */
  name(parts: readonly string[]): string {
    return createHmac('sha256', this.nameKey).update(JSON.stringify(parts)).digest('base64url')
  }

  /** Encrypts the text, or the bytes. It can be opened only with the same name. */
  seal(name: string, text: string | Buffer): Buffer {
    const iv = randomBytes(IV_BYTES)
    const cipher = createCipheriv(CIPHER, this.textKey, iv).setAAD(Buffer.from(name))
    const bytes = typeof text === 'string' ? Buffer.from(text) : text
    const body = cipher.update(bytes)
    // GCM has no padding: the end has no bytes.
    cipher.final()
    return Buffer.concat([Buffer.of(VERSION), iv, cipher.getAuthTag(), body])
  }

  /**
   * Decrypts a text; null if it was sealed with another name or secret, was changed, or is not a sealed text.
   */
  open(name: string, sealed: Uint8Array): string | null {
    return this.openBytes(name, sealed)?.toString('utf8') ?? null
  }

  /** The same for bytes, which are written to the begin of `into` if it is given. */
  openBytes(name: string, sealed: Uint8Array, into?: Buffer): Buffer | null {
    const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength)
    if (bytes.length < HEAD_BYTES || bytes[0] !== VERSION) return null
    const iv = bytes.subarray(1, 1 + IV_BYTES)
    const tag = bytes.subarray(1 + IV_BYTES, HEAD_BYTES)
    try {
      const decipher = createDecipheriv(CIPHER, this.textKey, iv, { authTagLength: TAG_BYTES })
      decipher.setAAD(Buffer.from(name)).setAuthTag(tag)
      const body = bytes.subarray(HEAD_BYTES)
      if (into === undefined) {
        const text = decipher.update(body)
        decipher.final()
        return text
      }
      for (let at = 0; at < body.length; at += SLICE_BYTES) {
        decipher.update(body.subarray(at, at + SLICE_BYTES)).copy(into, at)
      }
      decipher.final()
      return into.subarray(0, body.length)
    } catch {
      return null
    }
  }
}

/** A random secret, for gateways without a configured one. */
export function newSealSecret(): string {
  return randomBytes(KEY_BYTES).toString('base64url')
}

function derived(secret: string, use: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', use, KEY_BYTES))
}
