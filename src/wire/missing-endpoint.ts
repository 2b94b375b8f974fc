/**
 * Distinguishes a 404 for a missing endpoint (a wrong `base_url`) from a 404 for an unknown model. Providers
 * name the model in the error; servers and proxies without the endpoint do not.
 *
 * Sources: recorded 404s of OpenAI, Azure, Anthropic and Gemini; wrong URLs: OpenAI "Invalid URL (POST /…)",
 * Groq "Unknown request URL: POST /…", Kong "no Route matched with those values", FastAPI {"detail":"Not
 * Found"}, llama.cpp "File Not Found", Azure "Resource not found", LM Studio "Unexpected endpoint or method",
 * Go "404 page not found".
 */
import type { WireError } from '../errors.js'

const WRONG_URL =
  /^(?:invalid url|unknown request url|unexpected endpoint|no route matched|cannot post |the requested (?:url|resource|route|path|endpoint)\b|method not (?:found|allowed))/i
const NOTHING_FOUND =
  /^(?:\d{3} )?(?:[a-z]+ )?not found\b.?(?: please check the configuration\.?)?$/i

/**
 * Whether the reply means that the endpoint does not exist. `text` is the message of the error in the
 * provider's form, empty if the body has none.
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
export const MISSING_ENDPOINT: Readonly<WireError> = {
  kind: 'upstream_misconfigured',
  message:
    'The upstream answered 404 for the endpoint, not for the model: its "base_url", "path" or "dialect" in the configuration of the gateway is wrong.',
  upstreamCode: '404',
}
