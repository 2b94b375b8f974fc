/**
 * Makes an upstream's own words fit to show: no keys, no account ids, a bounded length.
 * Knows no dialect; it works on any text, so it also takes what only looks like a secret.
 */

/** The most of an upstream's message that is passed on, in UTF-16 units (2 KB of ASCII). */
export const SCRUBBED_MAX = 2048

/** Only this much is searched, so that a huge message costs no more than a long one. */
const SEARCHED_MAX = SCRUBBED_MAX * 2

const SECRETS = [
  /\b(?:Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{4,}/gi,
  /\b(?:g?sk|rk|pk|xai|sess)[-_][A-Za-z0-9*._-]{4,}/g,
  /\bAIza[A-Za-z0-9_-]{10,}/g,
  /\bya29\.[A-Za-z0-9._-]{10,}/g,
  /\b(?:org|proj|wrkspc|workspace)[-_][A-Za-z0-9]{6,}/g,
  /(?<=[?&]key=)[^&\s"']+/g,
]

/**
 * `text` without what looks like a key, a token, or an organisation or project id, and at most
 * `SCRUBBED_MAX` units long; a cut ends in `…`. Never throws.
 */
export function scrub(text: string): string {
  let clean = text.slice(0, SEARCHED_MAX)
  for (const secret of SECRETS) clean = clean.replace(secret, '[redacted]')
  if (clean.length <= SCRUBBED_MAX && text.length <= SEARCHED_MAX) return clean
  return clean.slice(0, SCRUBBED_MAX - 1).replace(/[\uD800-\uDBFF]$/, '') + '…'
}
