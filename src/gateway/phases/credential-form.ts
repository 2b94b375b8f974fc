/**
 * Describes what is wrong with the form of a request's credential, for the message of a 401. It names the
 * place and the form, and never a part of the value. Runs only after the credential was refused.
 */
import { mayBeImported } from '../../accounts/key-secret.js'
import { isCompactToken } from '../../accounts/workload-identity/read-token.js'
import { headerOf, type HttpRequest } from '../../http/message.js'

/** A place of a request that has a credential. */
interface CredentialPlace {
  /** As the client's developer writes it: a header, or `?key=`. */
  readonly name: string
  readonly value: string
}

/** Credentials that are accepted beside keys of this gateway. */
interface AcceptedForms {
  /** Tokens of workloads. */
  readonly takesTokens: boolean
  /** Keys of other gateways. */
  readonly takesImported: boolean
  /** A key as `?key=`, on the paths of Google. */
  readonly takesQueryKey: boolean
}

const SEND = 'Send the key as "Authorization: Bearer <key>", "x-api-key: <key>" or "x-goog-api-key: <key>".'

/** Headers of other products that clients send a key in. */
const OTHER_HEADERS = [
  'api-key',
  'apikey',
  'x-apikey',
  'x-api-token',
  'x-auth-token',
  'x-access-token',
  'x-auth-key',
  'x-goog-user-project',
  'openai-api-key',
  'x-openai-api-key',
  'anthropic-api-key',
  'x-litellm-api-key',
  'x-portkey-api-key',
  'helicone-auth',
  'ocp-apim-subscription-key',
  'proxy-authorization',
] as const
const OTHER_PARAMETERS = ['key', 'api_key', 'api-key', 'apikey', 'access_token', 'token'] as const

/** Schemes that a message may name; any other word may be a part of a key. */
const SCHEMES = [
  'Basic',
  'Digest',
  'Negotiate',
  'NTLM',
  'Token',
  'Key',
  'ApiKey',
  'Api-Key',
  'AWS4-HMAC-SHA256',
]

/** Prefixes of the keys of providers; a longer one comes before a shorter one. */
const PROVIDERS: readonly (readonly [prefix: string, provider: string])[] = [
  ['sk-ant-', 'Anthropic'],
  ['sk-or-', 'OpenRouter'],
  ['sk-proj-', 'OpenAI'],
  ['sk-svcacct-', 'OpenAI'],
  ['sk-', 'OpenAI, DeepSeek or another provider'],
  ['AIza', 'Google'],
  ['AQ.', 'Google'],
  ['ya29.', 'Google'],
  ['gsk_', 'Groq'],
  ['xai-', 'xAI'],
  ['hf_', 'Hugging Face'],
  ['pplx-', 'Perplexity'],
  ['nvapi-', 'NVIDIA'],
  ['csk-', 'Cerebras'],
  ['fw_', 'Fireworks'],
  ['tgp_', 'Together'],
  ['r8_', 'Replicate'],
  ['AKIA', 'AWS'],
  ['ASIA', 'AWS'],
  ['ABSK', 'Amazon Bedrock'],
]

/** A variable of a shell, a template or a language that has no value. */
const UNSET =
  /^(?:\$\{.*\}|\$\w+|\{\{.*\}\}|\{\w+\}|%\w+%|<.*>|undefined|null|none|nil|your[_-]?api[_-]?key)$/i

/**
 * What is wrong with the form of the credential, and what to send instead; null for a key of the right form.
 * `places`: the values that were read, the one that counts first.
 */
export function credentialFault(
  req: HttpRequest,
  places: readonly CredentialPlace[],
  accepted: AcceptedForms,
): string | null {
  const [place] = places
  const authorization = headerOf(req, 'authorization')
  const fault =
    place !== undefined
      ? faultOf(place, accepted)
      : authorization === undefined || authorization === ''
        ? missing(req, accepted)
        : faultOfScheme(authorization, accepted)
  return fault === null ? null : `${fault} ${SEND}`
}

/** A request whose known headers have no credential. */
function missing(req: HttpRequest, { takesQueryKey }: AcceptedForms): string {
  const header = OTHER_HEADERS.find((name) => headerOf(req, name) !== undefined)
  if (header !== undefined) return `The request has no API key: the header ${header} is not read.`
  const { url = '' } = req
  const query = new URLSearchParams(url.includes('?') ? url.slice(url.indexOf('?') + 1) : '')
  const parameter = OTHER_PARAMETERS.find((name) => query.has(name))
  if (parameter === undefined) return 'The request has no API key.'
  if (parameter !== 'key') return `The request has no API key: ${parameter} in the query is not read.`
  if (takesQueryKey) return 'The request has no API key: key in the query is empty.'
  return 'The request has no API key: key in the query is read on the paths of Google only.'
}

/** An `Authorization` header without a key after the scheme Bearer. */
function faultOfScheme(value: string, accepted: AcceptedForms): string {
  const word = (/^\s*(\S+)/.exec(value)?.[1] ?? '').toLowerCase()
  if (word === 'bearer') return 'The header Authorization has the scheme "Bearer" without a key.'
  const scheme = SCHEMES.find((each) => each.toLowerCase() === word)
  if (scheme !== undefined) return `The header Authorization has the scheme ${scheme}, which is not accepted.`
  if (/\s/.test(value.trim())) return 'The header Authorization has another scheme than Bearer.'
  const fault = faultOf({ name: 'The header Authorization', value: value.trim() }, accepted)
  return fault ?? 'The header Authorization has no scheme: write "Bearer" and a space before the key.'
}

/** Null for a text that may be a key of the gateway. */
function faultOf(
  { name, value }: CredentialPlace,
  { takesTokens, takesImported }: AcceptedForms,
): string | null {
  const bare = value.trim().replace(/^["'`]|["'`]$/g, '')
  if (/^bearer\s/i.test(bare)) return `${name} has the word "Bearer" in the key.`
  if (UNSET.test(bare)) return `${name} has a placeholder instead of a key: a variable is not set.`
  // A key of another gateway may look like one of a provider.
  if (takesImported && value === bare && mayBeImported(value)) return null
  const provider = PROVIDERS.find(([prefix]) => bare.startsWith(prefix))
  if (provider !== undefined) {
    const [prefix, owner] = provider
    return `${name} has a key of a provider (${prefix}… of ${owner}), not one of this gateway.`
  }
  if (bare.startsWith('sat_')) return `${name} has a token of the admin API, which is no API key.`
  if (bare.startsWith('slr_')) return `${name} has a refresh token, which only renews a sign-in.`
  if (bare.startsWith('slt_'))
    return `${name} has a token whose sign-in has ended, or that has expired: sign in again.`
  if (isCompactToken(bare)) {
    return takesTokens ? null : `${name} has a JSON Web Token, and this gateway accepts none.`
  }
  if (!bare.startsWith('sk_')) return `${name} has no key of this gateway: those begin with sk_.`
  return bare === value ? null : `${name} has white space or quotes around the key.`
}
