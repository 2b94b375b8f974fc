/**
 * Replaces `${NAME}` and `${file:PATH}` in the values of a parsed file. Placeholders are replaced in parsed
 * values and not in the text, so that a secret cannot change the structure. Only `upstreams.*.api_key` and
 * entries of `api_keys` may be empty.
 */
import type { Finding, Path } from './config-problem.js'

/** The variables and files that placeholders refer to. */
export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The text of a file; a relative path starts at the configuration's folder. Null if it is not readable. */
  readFile(path: string): string | null
  /** Why `readFile` returned null, as the rest of a sentence: `does not exist`. */
  whyUnreadable(path: string): string
  /**
   * Whether a placeholder (`NAME` or `file:PATH`) may be replaced at this path; one that may not
   * becomes the text `placeholder`. Absent: all may.
   */
  readonly mayFill?: (path: Path, placeholder: string) => boolean
}

/** The sources of each upstream's keys, by the upstream's name, in file order. */
export type KeySources = ReadonlyMap<string, readonly KeySource[]>

/** The variable or file (`file:PATH`) of one key, and whether it has a value. */
interface KeySource {
  readonly source: string
  readonly isSet: boolean
}

/** The values of a file without placeholders. */
interface Filled {
  readonly value: unknown
  readonly findings: readonly Finding[]
  readonly keySources: KeySources
  /** Paths, as JSON, of the values that came from a placeholder. */
  readonly filledPaths: ReadonlySet<string>
}

/** Maximum values of one file; aliases multiply them. */
const MAX_VALUES = 1_000_000
/** Maximum nesting; the schema needs eight levels, and an anchor may contain itself. */
const MAX_DEPTH = 64

const PLACEHOLDER = /\$(\$\{)|\$\{([^}]*)\}?/g
/** The text in place of a placeholder that may not be replaced by its value. */
const STAND_IN = 'placeholder'

/** The placeholders (`NAME`, `file:PATH`) in the texts of a value. */
export function placeholdersIn(value: unknown): Set<string> {
  const found = new Set<string>()
  const visit = (inner: unknown, depth: number): void => {
    if (typeof inner === 'string') {
      for (const [, , name] of inner.matchAll(PLACEHOLDER)) if (name !== undefined) found.add(name)
    } else if (typeof inner === 'object' && inner !== null && depth < MAX_DEPTH) {
      for (const each of Object.values(inner)) visit(each, depth + 1)
    }
  }
  visit(value, 0)
  return found
}

/**
 * Replaces every placeholder in every text value; `$${` is an escaped `${`. Claims of tokens under `identity`
 * are kept.
 */
export function fillPlaceholders(value: unknown, around: Surroundings): Filled {
  const filling = new Filling(around)
  const filled = filling.walk(value, [])
  return {
    value: filled,
    findings: filling.findings,
    keySources: filling.keySources,
    filledPaths: filling.filledPaths,
  }
}

class Filling {
  readonly findings: Finding[] = []
  readonly keySources = new Map<string, KeySource[]>()
  readonly filledPaths = new Set<string>()
  private readonly around: Surroundings
  private seen = 0

  constructor(around: Surroundings) {
    this.around = around
  }

  walk(value: unknown, path: Path): unknown {
    this.seen += 1
    if (this.seen === MAX_VALUES) {
      this.findings.push({ path: [], message: `contains more than ${MAX_VALUES} values` })
    }
    if (this.seen >= MAX_VALUES) return null
    if (path.length > MAX_DEPTH) {
      this.fault(path.slice(0, 1), `is nested more than ${MAX_DEPTH} levels deep`)
      return null
    }
    if (typeof value === 'string') return this.text(value, path)
    if (Array.isArray(value)) {
      const items = value.map((item, index) => this.walk(item, [...path, index]))
      return isKeyList(path) ? items.filter((item) => item !== undefined) : items
    }
    if (typeof value !== 'object' || value === null) return value
    const result: Record<string, unknown> = {}
    for (const [key, item] of Object.entries(value)) {
      const at = [...path, key]
      if (key === '__proto__') {
        this.findings.push({ path: at, atKey: true, message: 'must have another name' })
        continue
      }
      const filled = this.walk(item, at)
      if (filled !== undefined) result[key] = filled
    }
    return result
  }

  /** The text without placeholders; `undefined` for an upstream's key whose variable is not set. */
  private text(value: string, path: Path): string | undefined {
    if (!value.includes('${')) return value
    if (path[0] === 'upstreams' && path[2] === 'quirks') {
      this.findings.push({
        path,
        message: 'must not contain a placeholder: placeholders are not replaced under quirks',
      })
      return value
    }
    if (path[0] !== 'identity') this.filledPaths.add(JSON.stringify(path))
    const key = isKey(path)
    const unset: string[] = []
    const isIdentity = path[0] === 'identity'
    const filled = value.replace(PLACEHOLDER, (whole, escaped?: string, inner?: string) => {
      if (isIdentity && (escaped !== undefined || inner?.startsWith('claims.') === true)) {
        return whole
      }
      if (escaped !== undefined) return '${'
      const name = inner ?? ''
      if (!whole.endsWith('}')) return this.fault(path, 'contains ${ without a closing brace')
      const isFile = /^file:./.test(name)
      if (!isFile && !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
        return this.fault(path, 'contains an invalid placeholder: use ${NAME} or ${file:PATH}')
      }
      if (this.around.mayFill?.(path, name) === false) {
        if (key) this.addKeySource(path, { source: name, isSet: true })
        return STAND_IN
      }
      if (isFile) return this.fromFile(name.slice('file:'.length), path)
      const found = this.around.env[name]?.trim() ?? ''
      if (key) this.addKeySource(path, { source: name, isSet: found !== '' })
      if (found !== '') return found
      unset.push(name)
      return ''
    })
    if (unset.length === 0) return filled
    if (key) return undefined
    const isOne = unset.length === 1
    const variables = `the environment variable${isOne ? '' : 's'} ${unset.join(', ')}`
    this.fault(path, `${variables} ${isOne ? 'is' : 'are'} not set or empty`)
    return filled
  }

  private fromFile(file: string, path: Path): string {
    if (isKey(path)) this.addKeySource(path, { source: `file:${file}`, isSet: true })
    const text = this.around.readFile(file)
    if (text === null) {
      return this.fault(path, `the file "${file}" ${this.around.whyUnreadable(file)}`)
    }
    if (text.trim() === '') return this.fault(path, `the file "${file}" is empty`)
    return text.trim()
  }

  private addKeySource(path: Path, source: KeySource): void {
    const upstream = String(path[1])
    const known = this.keySources.get(upstream)
    if (known === undefined) this.keySources.set(upstream, [source])
    else known.push(source)
  }

  private fault(path: Path, message: string): string {
    this.findings.push({ path, message })
    return ''
  }
}

function isKey(path: Path): boolean {
  if (path[0] !== 'upstreams') return false
  return path.length === 3 ? path[2] === 'api_key' : path.length === 4 && isKeyList(path.slice(0, 3))
}

function isKeyList(path: Path): boolean {
  return path.length === 3 && path[0] === 'upstreams' && path[2] === 'api_keys'
}
