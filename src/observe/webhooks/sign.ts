/**
 * Signatures of webhooks after the Standard Webhooks specification 1.0.0: HMAC-SHA256 over id, time and body. Pure.
 */
import { createHmac } from 'node:crypto'

const PREFIX = 'whsec_'
/** Bytes of a key, by the specification. */
const KEY_BYTES = { least: 24, most: 64 }
/** Characters of a secret that is used as it is. */
const TEXT_CHARS = { least: 16, most: 512 }

/** Why a secret cannot sign, as the rest of a sentence; null if it can. */
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

/** The key of a secret: what `whsec_` precedes in base64, else the bytes of the text. */
export function keyOf(secret: string): Buffer {
  return secret.startsWith(PREFIX)
    ? Buffer.from(secret.slice(PREFIX.length), 'base64')
    : Buffer.from(secret, 'utf8')
}

/** What is signed of a webhook. */
export interface Signed {
  readonly id: string
  /** When it is sent, in seconds since 1970. */
  readonly atSeconds: number
  readonly body: string
}

/** The headers that identify and sign one webhook. */
export function signatureHeaders(
  key: Buffer,
  { id, atSeconds, body }: Signed,
): Record<string, string> {
  const signature = createHmac('sha256', key).update(`${id}.${atSeconds}.${body}`).digest('base64')
  return {
    'webhook-id': id,
    'webhook-timestamp': String(atSeconds),
    'webhook-signature': `v1,${signature}`,
  }
}
