/**
 * Decides which values of a configuration are secrets, by the names of settings and the form of values, so
 * that a new setting does not have to be listed here.
 */
import type { Config } from './config.js'
import { pathText, type Path } from './config-problem.js'
import { parseYaml, type YamlFile } from './yaml.js'

/** Settings whose value is a secret. */
const SECRET_NAME = /(?:api_?keys?|secret_?access_?key|escrow\.key|token|secret|password|passphrase)$/i
/** Maps whose values are all treated as secrets. */
const SECRET_MAP = /\.(?:headers|query)$/
/** Headers and parameters whose values are not secrets. */
const PLAIN_NAMES: ReadonlySet<string> = new Set([
  'accept',
  'anthropic-beta',
  'anthropic-version',
  'api-version',
  'content-type',
  'http-referer',
  'openai-beta',
  'referer',
  'user-agent',
  'x-title',
])
/** What precedes the secret in a header. */
const SCHEME = /^(bearer|basic)\s+/i

/** All secrets of the configuration: keys, values of headers and queries, passwords in URLs. */
export function secretsOf(config: Config): string[] {
  const found = new Set(secretsIn(config, '', false))
  found.delete('')
  return [...found]
}

/** Whether the value at this path is a secret by its name. */
function isSecretSetting(path: Path): boolean {
  const names = path.filter((step) => typeof step === 'string')
  const isInMap = SECRET_MAP.test(`.${names.slice(0, -1).join('.')}`)
  if (isInMap) return !PLAIN_NAMES.has(names.at(-1)?.toLowerCase() ?? '')
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
    const isHere = isMap ? !PLAIN_NAMES.has(name.toLowerCase()) : SECRET_NAME.test(at)
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

/**
 * Variables as a shell and other gateways write them, which the configuration does not replace:
 * `$OPENAI_API_KEY`.
 */
const BARE_VARIABLE = /^(?:bearer\s+)?(\$|env[:.]|os\.environ\/)([A-Za-z_][A-Za-z0-9_]*)$/i
/** Prefixes of the providers' keys. */
const KEY_PREFIX = /^(?:sk|pk|rk|gsk|xai|hf|r8|nvapi|AIza|ya29|AKIA|ghp)[-_.A-Za-z0-9]/
const LEAST_CHARS = 16
/** Placeholder values of local servers and examples. */
const STAND_IN =
  /your|example|placeholder|change-?me|dummy|not[-_]?(?:needed|used|required)|x{4}|\.{3}|[<>*]/i

/**
 * Finds secrets in plain text and variables without braces in a configuration file, for the notes of `sluice
 * check`: one line for each, in file order, with paths and no values. The text must be valid.
 */
export function plainSecretNotes(file: string, text: string): string[] {
  const yaml = parseYaml(file, text)
  const notes: string[] = []
  visit(yaml.value, [], (value, path) => {
    const note = noteOf(value, path)
    if (note !== null) notes.push(`${positionOf(yaml, path)}: ${note}`)
  })
  return notes
}

function noteOf(value: string, path: Path): string | null {
  const [, prefix = '', name = ''] = BARE_VARIABLE.exec(value) ?? []
  if (name !== '') {
    return `${prefix}${name} is not replaced: write \${${name}} for the variable's value`
  }
  if (value.includes('${')) return null
  const isPlainKey = isSecretSetting(path) && looksLikeKey(value.replace(SCHEME, ''))
  if (!isPlainKey && passwordsIn(value).length === 0) return null
  return 'contains a secret in plain text: use ${NAME} or ${file:PATH}'
}

function looksLikeKey(value: string): boolean {
  if (value.length < LEAST_CHARS || /\s/.test(value) || STAND_IN.test(value)) return false
  return KEY_PREFIX.test(value) || (/\d/.test(value) && /[A-Za-z]/.test(value))
}

function positionOf(yaml: YamlFile, path: Path): string {
  const { line } = yaml.locate({ path, message: '' })
  return `${pathText(path)} (line ${line})`
}

function visit(value: unknown, path: Path, found: (text: string, path: Path) => void): void {
  if (typeof value === 'string') found(value, path)
  if (typeof value !== 'object' || value === null) return
  const entries: [PropertyKey, unknown][] = Array.isArray(value)
    ? value.map((item, index) => [index, item])
    : Object.entries(value)
  // Parameters for the provider, which cannot contain placeholders.
  for (const [key, item] of entries) if (key !== 'quirks') visit(item, [...path, key], found)
}
