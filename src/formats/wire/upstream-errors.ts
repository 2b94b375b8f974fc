/**
 * What the formats share about errors of upstreams: the text that may be shown, a missing endpoint, and
 * replies that end too early or are malformed.
 */
import type { WireError } from '../../errors.js'
import { hideSecretParts } from '../../hide-secrets.js'
import { strayWords } from './error-text.js'

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

const WRONG_URL =
  /^(?:invalid url|unknown request url|unexpected endpoint|no route matched|cannot post |the requested (?:url|resource|route|path|endpoint)\b|method not (?:found|allowed))/i
const NOTHING_FOUND = /^(?:\d{3} )?(?:[a-z]+ )?not found\b.?(?: please check the configuration\.?)?$/i

/**
 * Whether the reply means that the endpoint does not exist. `text` is the message of the error in the
 * provider's form, empty if the body has none.
 *
 * Distinguishes a 404 for a missing endpoint (a wrong `base_url`) from a 404 for an unknown model. Providers
 * name the model in the error; servers and proxies without the endpoint do not.
 *
 * Sources: recorded 404s of OpenAI, Azure, Anthropic and Gemini; wrong URLs: OpenAI "Invalid URL (POST /…)",
 * Groq "Unknown request URL: POST /…", Kong "no Route matched with those values", FastAPI {"detail":"Not
 * Found"}, llama.cpp "File Not Found", Azure "Resource not found", LM Studio "Unexpected endpoint or method",
 * Go "404 page not found".
 */
export function isMissingEndpoint(status: number, text: string): boolean {
  if (status !== 404) return false
  const words = text.trim().slice(0, 256)
  if (WRONG_URL.test(words)) return true
  return words === '' || (NOTHING_FOUND.test(words) && !namesModel(words))
}

/** Whether the message is about a model. */
function namesModel(text: string): boolean {
  return /\b(?:models?|deployments?)\b/i.test(text)
}

/** The error of such a reply. The provider's message contains internal paths and is not forwarded. */
const MISSING_ENDPOINT: Readonly<WireError> = {
  kind: 'upstream_misconfigured',
  message:
    'The upstream answered 404 for the endpoint, not for the model: its "base_url", "path" or "dialect" in the configuration of the gateway is wrong.',
  upstreamCode: '404',
}

/** The same with the words of the provider, which the log may contain. */
export function missingEndpoint(words: string): WireError {
  return words === ''
    ? { ...MISSING_ENDPOINT }
    : { ...MISSING_ENDPOINT, upstreamMessage: redactUpstreamText(words) }
}

/** A frame or reply that does not follow its format. Copy it before you change it. */
export const MALFORMED_REPLY: Readonly<WireError> = {
  kind: 'upstream_malformed',
  message: "The upstream's reply is not valid in its format.",
}

/** The error of a frame that is no JSON object of its format, with the words in it. */
export function strayFrame(data: string): WireError {
  return strayReply(MALFORMED_REPLY, data)
}

/** A reply that ended without its format's end. Copy it before you change it. */
export const TRUNCATED_REPLY: Readonly<WireError> = {
  kind: 'upstream_truncated',
  message: "The upstream's reply ended before it was complete.",
}

/** The error of a body with status 200 that is no reply: `fault`, a sentence, and the words in the body. */
export function strayReply(fault: Readonly<WireError>, body: string): WireError {
  const words = redactUpstreamText(strayWords(body))
  if (words === '') return { ...fault }
  return { ...fault, message: `${fault.message.slice(0, -1)}: ${words}`, upstreamMessage: words }
}
