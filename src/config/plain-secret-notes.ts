/**
 * Finds secrets in plain text and variables without braces in a configuration file, for the notes of `sluice
 * check`. The text must be valid. Notes contain paths and no values.
 */
import { pathText, type Path } from './problem.js'
import { isSecretSetting, passwordsIn, SCHEME } from './secret-settings.js'
import { parseYaml, type YamlFile } from './yaml.js'

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

/** One line for each finding, in file order. */
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
