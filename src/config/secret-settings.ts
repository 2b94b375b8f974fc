/**
 * Decides which values of a configuration are secrets, by the names of settings and the form of values, so
 * that a new setting does not have to be listed here.
 */
import type { Config } from './config.js'
import type { Path } from './problem.js'

/** Settings whose value is a secret. */
const SECRET_NAME = /(?:api_?keys?|escrow\.key|token|secret|password|passphrase)$/i
/** Maps whose values are all treated as secrets. */
const SECRET_MAP = /\.(?:headers|query)$/
/** Headers whose values are not secrets. */
const PLAIN_HEADERS: ReadonlySet<string> = new Set([
  'accept',
  'anthropic-beta',
  'anthropic-version',
  'content-type',
  'http-referer',
  'openai-beta',
  'referer',
  'user-agent',
  'x-title',
])
/** What precedes the secret in a header. */
export const SCHEME = /^(bearer|basic)\s+/i

/** All secrets of the configuration: keys, values of headers and queries, passwords in URLs. */
export function secretsOf(config: Config): string[] {
  const found = new Set(secretsIn(config, '', false))
  found.delete('')
  return [...found]
}

/** Whether the value at this path is a secret by its name. */
export function isSecretSetting(path: Path): boolean {
  const names = path.filter((step) => typeof step === 'string')
  const isInMap = SECRET_MAP.test(`.${names.slice(0, -1).join('.')}`)
  if (isInMap) return !PLAIN_HEADERS.has(names.at(-1)?.toLowerCase() ?? '')
  return SECRET_NAME.test(names.join('.'))
}

function secretsIn(value: unknown, path: string, isSecret: boolean): string[] {
  if (typeof value === 'string') {
    return [...(isSecret ? secretsInSetting(value) : []), ...passwordsIn(value)]
  }
  if (typeof value !== 'object' || value === null) return []
  const isMap = SECRET_MAP.test(path)
  return Object.entries(value).flatMap(([name, inner]) => {
    const at = `${path}.${name}`
    const isHere = isMap ? !PLAIN_HEADERS.has(name.toLowerCase()) : SECRET_NAME.test(at)
    return secretsIn(inner, at, Array.isArray(value) ? isSecret : isHere)
  })
}

/** The value without its scheme, and the password of `Basic` credentials. */
function secretsInSetting(value: string): string[] {
  const scheme = SCHEME.exec(value)
  const bare = scheme === null ? value : value.slice(scheme[0].length)
  if (scheme?.[1]?.toLowerCase() !== 'basic') return [bare]
  const pair = Buffer.from(bare, 'base64').toString('utf8')
  return [bare, pair.slice(pair.indexOf(':') + 1)]
}

/** Passwords in a URL, as written and decoded: between its user and its last `@`, and in its options. */
export function passwordsIn(address: string): string[] {
  const scheme = address.indexOf('://')
  if (scheme === -1) return []
  const rest = address.slice(scheme + 3)
  const at = rest.lastIndexOf('@')
  const colon = rest.indexOf(':')
  const written = [...rest.matchAll(/[?&][a-z_]*password=([^&]*)/g)].map(([, one = '']) => one)
  if (at > colon && colon !== -1) written.push(rest.slice(colon + 1, at))
  return written.flatMap((one) => [one, decoded(one)])
}

function decoded(password: string): string {
  try {
    return decodeURIComponent(password)
  } catch {
    // Not percent-encoded: the password is used unchanged.
    return password
  }
}
