/**
 * The report of an import: the outcome of every value of the foreign configuration. Each scalar, empty list
 * and empty map is named by exactly one item; a list or map with one outcome is one item.
 */
import { pathText, type Path } from '../../config/config-problem.js'
import { isObject } from '../../base/json.js'

/** The outcome of a value: the same meaning, another one, none here, or none at all. */
type Outcome = 'carried' | 'changed' | 'not_carried' | 'ignored'

/** A line of the report. It never has a value of the file, which may be a secret. */
export interface ReportItem {
  readonly line: number
  readonly path: string
  readonly outcome: Outcome
  /** The key of the new configuration; null if there is none. */
  readonly to: string | null
  readonly note: string | null
  /** The included file that has the line; absent for the configuration itself. */
  readonly file?: string
}

interface Claim {
  readonly path: Path
  readonly outcome: Outcome
  readonly to: string | null
  readonly note: string | null
}

/** The place of a value of the configuration. */
export interface ValuePlace {
  readonly line: number
  /** Set for an included file. */
  readonly file?: string
}

/** The configuration whose values are reported. */
interface ReportedSource {
  readonly locate: (path: Path) => ValuePlace
  /** Keys that do not count, since their map has them again. */
  readonly repeated: readonly { path: Path; line: number; again: number; file?: string }[]
}

/** Collects the outcomes of the values of one configuration. */
export class ImportReport {
  private readonly claims = new Map<string, Claim>()
  private readonly source: ReportedSource

  constructor(source: ReportedSource) {
    this.source = source
  }

  /** Names the outcome of a value and of all in it that has no claim of its own. The last claim counts. */
  claim(path: Path, outcome: Outcome, to: string | null = null, note: string | null = null): void {
    this.claims.set(keyOf(path), { path: [...path], outcome, to, note })
  }

  carried(path: Path, to: string, note: string | null = null): void {
    this.claim(path, 'carried', to, note)
  }

  changed(path: Path, to: string | null, note: string): void {
    this.claim(path, 'changed', to, note)
  }

  notCarried(path: Path, note: string): void {
    this.claim(path, 'not_carried', null, note)
  }

  ignored(path: Path, note: string | null = null): void {
    this.claim(path, 'ignored', null, note)
  }

  /** The claim of exactly this value, if there is one. */
  has(path: Path): boolean {
    return this.claims.has(keyOf(path))
  }

  /** Replaces the key that a value becomes, for all claims of values below a path. */
  rename(path: Path, named: (to: string) => string): void {
    for (const [key, claim] of this.claims) {
      if (claim.to === null || !path.every((step, at) => claim.path[at] === step)) continue
      this.claims.set(key, { ...claim, to: named(claim.to) })
    }
  }

  /** Drops the claims of a value and of all in it. */
  forgetBelow(path: Path): void {
    for (const [key, claim] of this.claims) {
      if (path.every((step, at) => claim.path[at] === step)) this.claims.delete(key)
    }
  }

  /** All items in the order of the lines. Values without a claim are not carried. */
  items(config: unknown): ReportItem[] {
    const leaves = leavesOf(config, [])
    const owned = new Map<Claim | null, Path[]>()
    const under = new Map<Claim, number>()
    for (const leaf of leaves) {
      const above = this.claimsAbove(leaf)
      for (const claim of above) under.set(claim, (under.get(claim) ?? 0) + 1)
      const owner = above.at(-1) ?? null
      const paths = owned.get(owner)
      if (paths === undefined) owned.set(owner, [leaf])
      else paths.push(leaf)
    }
    const items = [...owned].flatMap(([claim, paths]) => {
      if (claim === null) return paths.map((path) => this.item(path, UNKNOWN))
      const isWhole = under.get(claim) === paths.length
      return (isWhole ? [claim.path] : paths).map((path) => this.item(path, claim))
    })
    return [...items, ...this.repeatedItems()]
      .map((item, at) => ({ item, at }))
      .sort((a, b) => rank(a.item) - rank(b.item) || a.item.line - b.item.line || a.at - b.at)
      .map(({ item }) => item)
  }

  /** The values that do not count. Their paths are those of the values that do, so that the line is added. */
  private repeatedItems(): ReportItem[] {
    return this.source.repeated.map(({ path, line, again, file }) => ({
      ...{ line, path: `${pathText(path)} (line ${line})`, outcome: 'ignored', to: null },
      ...{ note: `the same key is in line ${again}, which counts`, ...(file === undefined ? {} : { file }) },
    }))
  }

  /** The claims of a value and of those that contain it, the outermost first. */
  private claimsAbove(leaf: Path): Claim[] {
    const found: Claim[] = []
    for (let length = 0; length <= leaf.length; length += 1) {
      const claim = this.claims.get(keyOf(leaf.slice(0, length)))
      if (claim !== undefined) found.push(claim)
    }
    return found
  }

  private item(path: Path, { outcome, to, note }: Omit<Claim, 'path'>): ReportItem {
    const { line, file } = this.source.locate(path)
    return { line, path: pathText(path), outcome, to, note, ...(file === undefined ? {} : { file }) }
  }
}

const UNKNOWN = {
  outcome: 'not_carried',
  to: null,
  note: 'unknown to the import: read its documentation, and set it by hand if there is an equivalent',
} as const

/** Included files follow the configuration. */
function rank({ file }: ReportItem): number {
  return file === undefined ? 0 : 1
}

function keyOf(path: Path): string {
  return JSON.stringify(path)
}

/** The paths of all scalars, empty lists and empty maps. */
export function leavesOf(value: unknown, path: Path): Path[] {
  if (Array.isArray(value) && value.length > 0) {
    return value.flatMap((each: unknown, at) => leavesOf(each, [...path, at]))
  }
  if (isObject(value) && Object.keys(value).length > 0) {
    return Object.entries(value).flatMap(([key, each]) => leavesOf(each, [...path, key]))
  }
  return [path]
}

/** The models of the import, as clients name them. */
export interface ImportedModel {
  readonly name: string
  readonly match: 'model' | 'prefix' | 'any'
  readonly status: 'ready' | 'no_key' | 'not_carried'
  readonly targets: readonly { upstream: string; model: string | null; weight: number }[]
  readonly fallback: readonly { upstream: string; model: string | null }[]
  readonly note: string | null
}

/** What an import prints with `--json`. */
export interface ImportSummary {
  readonly carried: number
  readonly changed: number
  readonly not_carried: number
  readonly items: readonly ReportItem[]
  readonly models: readonly ImportedModel[]
  readonly keys: { readonly read: number; readonly carried: number; readonly not_carried: number }
}

/** The items with their numbers. */
export function summaryOf(
  items: readonly ReportItem[],
  models: readonly ImportedModel[],
  keys: ImportSummary['keys'],
): ImportSummary {
  const count = (wanted: Outcome): number => items.filter(({ outcome }) => outcome === wanted).length
  const [carried = 0, changed = 0, missing = 0] = (['carried', 'changed', 'not_carried'] as const).map(count)
  return { carried, changed, not_carried: missing, items, models, keys }
}

const WORDS: Readonly<Record<Outcome, string>> = {
  carried: 'carried',
  changed: 'changed',
  not_carried: 'not carried',
  ignored: 'ignored',
}

/** `report.md`. */
export function reportText(source: string, summary: ImportSummary): string {
  const { items, models, keys, carried, changed, not_carried: missing } = summary
  const lines = [
    `# Import of ${cell(source)}`,
    '',
    `${carried} carried, ${changed} changed, ${missing} not carried. Keys: ${keys.read} read, ${keys.carried} carried, ${keys.not_carried} not carried.`,
    '',
    '## Models',
    '',
    '| name | match | status | targets | fallback | note |',
    '| --- | --- | --- | --- | --- | --- |',
    ...models.map(({ name, match, status, targets, fallback, note }) => {
      const shown = (each: { upstream: string; model: string | null }): string => {
        return each.model === null ? each.upstream : `${each.upstream}: ${each.model}`
      }
      return row([name, match, status, targets.map(shown).join(', '), fallback.map(shown).join(', '), note])
    }),
    '',
    '## Lines',
    '',
    '| line | path | outcome | becomes | note |',
    '| --- | --- | --- | --- | --- |',
    ...items.map(({ line, path, outcome, to, note, file }) => {
      return row([file === undefined ? String(line) : `${file}:${line}`, path, WORDS[outcome], to, note])
    }),
  ]
  return `${lines.join('\n')}\n`
}

function row(cells: readonly (string | null)[]): string {
  return `| ${cells.map((each) => cell(each ?? '')).join(' | ')} |`
}

function cell(text: string): string {
  return text.replace(/[\n\r]+/g, ' ').replaceAll('|', '\\|')
}
