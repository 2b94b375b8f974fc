/**
 * Takes credentials out of an upstream's words before a client or a log sees them.
 * Knows only what keys look like, not whose they are.
 */

/** Google, OpenAI and Anthropic keys, OAuth tokens, bearer headers, keys in URLs. */
const SECRETS = [
  /AIza[0-9A-Za-z_-]{10,}/g,
  /\bAQ\.[0-9A-Za-z_-]{20,}/g,
  /\bya29\.[0-9A-Za-z._-]{10,}/g,
  /\bsk[-_][0-9A-Za-z_-]{8,}/g,
  /\bBearer\s+[^\s"',;]+/gi,
  /([?&](?:key|api_key|access_token)=)[^&\s"']+/gi,
]

/** The text with everything that looks like a credential replaced by `[redacted]`. */
export function scrub(text: string): string {
  let clean = text
  for (const secret of SECRETS) {
    clean = clean.replace(secret, (_match, prefix: unknown) => {
      return typeof prefix === 'string' ? `${prefix}[redacted]` : '[redacted]'
    })
  }
  return clean
}
