/**
 * Removes keys and account ids from texts of upstreams before clients or logs get them, and bounds their
 * length.
 */
import { hideSecretParts } from '../secrets/redact-secrets.js'

/** Maximum length of a forwarded message, in UTF-16 units. */
export const MAX_MESSAGE_CHARS = 2048

/** Length that is searched, which bounds the work for a large message. */
const MAX_SEARCHED_CHARS = MAX_MESSAGE_CHARS * 2

const SECRETS = [
  /\b(?:Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{4,}/gi,
  /\b(?:g?sk|rk|pk|xai|sess)[-_][A-Za-z0-9*._-]{4,}/g,
  /\bAIza[A-Za-z0-9_-]{10,}/g,
  /\bya29\.[A-Za-z0-9._-]{10,}/g,
  /\b(?:org|proj|wrkspc|workspace)[-_][A-Za-z0-9]{6,}/g,
  /(?<=[?&]key=)[^&\s"']+/g,
  // Google's newer keys, and projects by name or number.
  /\bAQ\.[A-Za-z0-9_-]{20,}/g,
  /(?<=\bprojects\/)[A-Za-z0-9_-]+/g,
  /(?<=\bproject(?:_number|_id)?[:= ]{1,8})\d{5,}/gi,
  // Organisations and workspaces by UUID.
  /(?<=\b(?:organi[sz]ation|org|workspace)(?:[ _]id)?[:= ("']{1,4})[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi,
  // Internal addresses, and the operator's own resource names at Azure.
  /\bhttps?:\/\/(?:\[[0-9a-f:.]+\]|\d{1,3}(?:\.\d{1,3}){3}|[a-z0-9-]+|[a-z0-9.-]+\.(?:internal|local|localdomain|lan|corp|intra|svc|arpa))(?::\d+)?(?![a-z0-9.-])[^\s"'<>)]*/gi,
  /\b(?:10|127|192\.168|169\.254|172\.(?:1[6-9]|2\d|3[01]))(?:\.\d{1,3}){2,3}(?::\d+)?\b/g,
  /\b[a-z0-9-]{1,64}(?=\.(?:openai|cognitiveservices|services\.ai)\.azure\.com\b)/gi,
]

/**
 * `text` without configured secrets and without strings that look like keys, tokens, or ids of organisations
 * and projects, in at most `SCRUBBED_MAX` units; a shortened text ends in `…`. Never throws.
 */
export function redactUpstreamText(text: string): string {
  let clean = hideSecretParts(text.slice(0, MAX_SEARCHED_CHARS))
  for (const secret of SECRETS) clean = clean.replace(secret, '[redacted]')
  if (clean.length <= MAX_MESSAGE_CHARS && text.length <= MAX_SEARCHED_CHARS) return clean
  return clean.slice(0, MAX_MESSAGE_CHARS - 1).replace(/[\uD800-\uDBFF]$/, '') + '…'
}
