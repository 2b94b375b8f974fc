/**
 * Problems of a configuration file: position, path, message, suggestion. A problem never contains a value of the
 * file, since any value may be a secret.
 */
import { z } from 'zod'
import { hideSecrets } from '../secrets/redact-secrets.js'
import { nearest, suggestionText } from './suggest-spelling.js'

/** More problems than a person reads at once. */
export const MAX_PROBLEMS = 100

/** The keys and indexes from the root of a file to a value. */
export type Path = readonly PropertyKey[]

/** Adds a finding; `suggestion` is the correct word for a misspelt one. */
export type ReportFinding = (path: Path, message: string, suggestion?: string | null) => void

/** One problem. `line` and `column` count from 1. */
export interface ConfigProblem {
  readonly file: string
  readonly line: number
  readonly column: number
  /** `routes[2].hedge`; empty for the file as a whole. */
  readonly path: string
  readonly message: string
  /** The probable spelling, or null. */
  readonly suggestion: string | null
}

/** A problem before its position in the text is known. */
export interface Finding {
  readonly path: Path
  /** Set if the key itself is wrong and not its value. */
  readonly atKey?: boolean
  readonly message: string
  readonly suggestion?: string | null
}

/** `file:line:column: path: message (did you mean …?)`, a form that editors can open. */
export function formatProblem(problem: ConfigProblem): string {
  const place = `${problem.file}:${problem.line}:${problem.column}`
  const path = problem.path === '' ? '' : `${problem.path}: `
  return `${place}: ${path}${problem.message}${suggestionText(problem.suggestion)}`
}

/** `['routes', 2, 'hedge']` → `routes[2].hedge`. */
export function pathText(path: Path): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else text += text === '' ? shownKey(String(step)) : `.${shownKey(String(step))}`
  }
  return text
}

/** Findings of a failed validation, with suggestions from the schema. `value` is the validated value. */
export function findingsOf(
  issues: readonly z.core.$ZodIssue[],
  schema: z.ZodType,
  value: unknown,
): Finding[] {
  const findings: Finding[] = []
  const taken = new Set<string>()
  for (const issue of issues.flatMap(withinUnion)) {
    if (issue.code === 'unrecognized_keys') {
      const known = keysAt(schema, issue.path)
      for (const key of issue.keys) {
        const suggestion = nearest(key, known)
        const message = unknownKeyText(key, suggestion === null ? known : [])
        findings.push({ path: [...issue.path, key], atKey: true, message, suggestion })
      }
      continue
    }
    const path = pathText(issue.path)
    if (taken.has(path)) continue
    taken.add(path)
    findings.push(findingOf(issue, value))
  }
  return findings
}

/** More keys are not listed in a message. */
const MAX_LISTED = 15

/** `known`: the keys to list. */
function unknownKeyText(key: string, known: readonly string[]): string {
  const text = `Unknown key "${shownKey(key)}"`
  return known.length === 0 || known.length > MAX_LISTED
    ? text
    : `${text}: use one of ${known.join(', ')}`
}

/** The errors inside a map if a map is one of several allowed forms; else the issue itself. */
function withinUnion(issue: z.core.$ZodIssue): readonly z.core.$ZodIssue[] {
  if (issue.code !== 'invalid_union') return [issue]
  const within = issue.errors.find((errors) =>
    errors.some(({ code, path }) => code === 'unrecognized_keys' || path.length > 0),
  )
  if (within === undefined) return [issue]
  return within.map((each) => ({ ...each, path: [...issue.path, ...each.path] }))
}

function findingOf(issue: z.core.$ZodIssue, value: unknown): Finding {
  const { path } = issue
  const at = valueAt(value, path)
  if (issue.code === 'invalid_key') {
    return { path, atKey: true, message: issue.issues[0]?.message ?? 'is not a valid name' }
  }
  if (at === undefined) return { path, message: 'is required' }
  if (at === null) return { path, message: 'has no value: set one or remove the key' }
  if (issue.code === 'invalid_value') {
    const options = issue.values.map(String)
    const message = `must be one of ${options.join(', ')}`
    return { path, message, suggestion: typeof at === 'string' ? nearest(at, options) : null }
  }
  return { path, message: durationText(path, at) ?? ruleText(issue) }
}

/** The number for `3s` in a setting in milliseconds or seconds; else null. */
function durationText(path: Path, value: unknown): string | null {
  const name = path.findLast((step) => typeof step === 'string')
  const unit = /_(ms|seconds)$/.exec(String(name))?.[1]
  const written =
    typeof value === 'string'
      ? /^(\d{1,9}(?:\.\d{1,3})?) ?(ms|s|m|min|h|d)$/i.exec(value.trim())
      : null
  if (unit === undefined || written === null) return null
  const [, amount = '', of = ''] = written
  const ms = Math.round(Number(amount) * (DURATION_MS[of.toLowerCase()] ?? 1))
  return unit === 'ms'
    ? `must be a number of milliseconds: ${ms}`
    : `must be a number of seconds: ${ms / 1_000}`
}

const DURATION_MS: Partial<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

function ruleText(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${TYPE_NAMES[issue.expected] ?? issue.expected}`
    case 'too_small':
      return `must be ${issue.inclusive === false ? 'above' : 'at least'} ${String(issue.minimum)}${UNITS[issue.origin] ?? ''}`
    case 'too_big':
      return `must be at most ${String(issue.maximum)}${UNITS[issue.origin] ?? ''}`
    default:
      return issue.message
  }
}

const TYPE_NAMES: Partial<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'a map (KEY: VALUE)',
  record: 'a map (NAME: VALUE)',
  array: 'a list',
}

const UNITS: Partial<Record<string, string>> = {
  string: ' characters long',
  array: ' entries long',
}

/** The keys of the schema at a path; none if it allows any. */
function keysAt(schema: z.ZodType, path: Path): string[] {
  let at: unknown = unwrapped(schema)
  for (const step of path) {
    if (at instanceof z.ZodObject)
      at = unwrapped((at.shape as Record<string, unknown>)[String(step)])
    else if (at instanceof z.ZodArray) at = unwrapped(at.element)
    else if (at instanceof z.ZodRecord) at = unwrapped(at.valueType)
    else return []
  }
  return at instanceof z.ZodObject ? Object.keys(at.shape) : []
}

function unwrapped(schema: unknown): unknown {
  let at = schema
  while (at instanceof z.ZodDefault || at instanceof z.ZodPrefault || at instanceof z.ZodOptional) {
    at = at.unwrap()
  }
  if (!(at instanceof z.ZodUnion)) return at
  return at.options.find((option) => option instanceof z.ZodObject) ?? at
}

/** The value at a path, or `undefined`. */
export function valueAt(value: unknown, path: Path): unknown {
  let at = value
  for (const step of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, step)) return undefined
    at = (at as Record<PropertyKey, unknown>)[step]
  }
  return at
}

/**
 * A key in printable form: words, and what YAML and placeholders contain (`<<`, `${NAME}`). Anything else may be a
 * misplaced secret.
 */
export function shownKey(key: string): string {
  const isPlain = /^[\p{L}\p{N} _.<${}-]{1,64}$/u.test(key) && hideSecrets(key) === key
  return isPlain ? key : '(unprintable)'
}
