/**
 * Signs webhooks as specified by Standard Webhooks 1.0.0: HMAC-SHA256 over id, time and body. Pure.
 */
import { createHmac } from 'node:crypto'

const PREFIX = 'whsec_'
/** Length of a decoded key, from the specification. */
const KEY_BYTES = { least: 24, most: 64 }
/** Length of a secret without the prefix `whsec_`. */
const TEXT_CHARS = { least: 16, most: 512 }

/** The problem of an invalid secret, as the rest of a sentence; null if it is valid. */
export function secretProblem(secret: string): string | null {
  if (!secret.startsWith(PREFIX)) {
    return secret.length >= TEXT_CHARS.least && secret.length <= TEXT_CHARS.most
      ? null
      : `must have ${TEXT_CHARS.least} to ${TEXT_CHARS.most} characters, or be whsec_ and 24 to 64 bytes in base64`
  }
  const text = secret.slice(PREFIX.length)
  const { length } = keyOf(secret)
  const isBase64 = /^[A-Za-z0-9+/]+={0,2}$/.test(text)
  return isBase64 && length >= KEY_BYTES.least && length <= KEY_BYTES.most
    ? null
    : `must have ${KEY_BYTES.least} to ${KEY_BYTES.most} bytes in base64 after whsec_`
}

/** The key of a secret: base64 after `whsec_`, otherwise the bytes of the text. */
export function keyOf(secret: string): Buffer {
  return secret.startsWith(PREFIX)
    ? Buffer.from(secret.slice(PREFIX.length), 'base64')
    : Buffer.from(secret, 'utf8')
}

/** The signed parts of a webhook. */
interface Signed {
  readonly id: string
  /** Time of sending, seconds since 1970. */
  readonly atSeconds: number
  readonly body: string
}

/** The headers that identify and sign one webhook. */
export function signatureHeaders(key: Buffer, { id, atSeconds, body }: Signed): Record<string, string> {
  const signature = createHmac('sha256', key).update(`${id}.${atSeconds}.${body}`).digest('base64')
  return {
    'webhook-id': id,
    'webhook-timestamp': String(atSeconds),
    'webhook-signature': `v1,${signature}`,
  }
}
