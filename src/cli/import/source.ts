/** Reads a foreign configuration with the lines of its values, and the files that it includes. */
import { readFileSync, statSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import type { ConfigProblem, Path } from '../../config/config-problem.js'
import { parseYaml, type RepeatedKey, type YamlFile } from '../../config/yaml.js'
import { isObject, type JsonObject, type JsonValue } from '../../base/json.js'
import { codeWithAdvice } from '../../base/file-access.js'
import type { ValuePlace } from './report.js'

/** A file that cannot be read; the message is a whole line. */
export class InvalidSource extends Error {}

/** The configuration with what it includes. */
export interface ImportSource {
  readonly value: JsonObject
  readonly locate: (path: Path) => ValuePlace
  /** Keys that do not count, since their map has them again. */
  readonly repeated: readonly (RepeatedKey & { readonly file?: string })[]
}

const MAX_FILE_BYTES = 16 * 1024 * 1024
const MAX_FILES = 100

/** Throws `InvalidSource`. */
export function readSource(file: string): ImportSource {
  const { value, yaml } = parsed(file)
  return { value, locate: (path) => ({ line: lineOf(yaml, path) }), repeated: yaml.repeated }
}

/**
 * The same with the files of its list `include`: their lists are appended, other values replace those of the
 * configuration. Throws `InvalidSource`.
 */
export function readWithIncludes(file: string): ImportSource {
  const main = parsed(file)
  const value: JsonObject = { ...main.value }
  const origins: Origin[] = []
  const repeated: ImportSource['repeated'][number][] = [...main.yaml.repeated]
  const names = Array.isArray(main.value['include']) ? main.value['include'] : []
  for (const [at, name] of names.slice(0, MAX_FILES).entries()) {
    if (typeof name !== 'string' || name === '') {
      throw new InvalidSource(`${file}:${lineOf(main.yaml, ['include', at])}:1: must be the path of a file`)
    }
    const included = parsed(isAbsolute(name) ? name : join(dirname(file), name))
    repeated.push(...included.yaml.repeated.map((each) => ({ ...each, file: name })))
    for (const [key, each] of Object.entries(included.value)) {
      const own = value[key]
      const isAppended = Array.isArray(own) && Array.isArray(each)
      const from = isAppended ? own.length : null
      value[key] = isAppended ? [...own, ...each] : (each ?? null)
      origins.push({ key, from, file: name, yaml: included.yaml })
    }
  }
  return { value, locate: (path) => placeOf(path, main.yaml, origins), repeated }
}

/** What an included file adds: a key, or the entries of a list from an index on. */
interface Origin {
  readonly key: string
  readonly from: number | null
  readonly file: string
  readonly yaml: YamlFile
}

function placeOf([key, index, ...rest]: Path, main: YamlFile, origins: readonly Origin[]): ValuePlace {
  const whole = [...(key === undefined ? [] : [key]), ...(index === undefined ? [] : [index]), ...rest]
  const origin = origins.findLast((each) => {
    if (each.key !== key) return false
    return each.from === null || (typeof index === 'number' && index >= each.from)
  })
  if (origin === undefined) return { line: lineOf(main, whole) }
  const { from, file, yaml } = origin
  const own = from !== null && typeof index === 'number' ? [origin.key, index - from, ...rest] : whole
  return { line: lineOf(yaml, own), file }
}

function lineOf(yaml: YamlFile, path: Path): number {
  return yaml.locate({ path, atKey: true, message: '' }).line
}

function parsed(file: string): { readonly value: JsonObject; readonly yaml: YamlFile } {
  let text: string
  try {
    if (statSync(file).size > MAX_FILE_BYTES) throw new InvalidSource(`${file}:1:1: is larger than 16 MiB`)
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if (error instanceof InvalidSource) throw error
    throw new InvalidSource(`${file}:1:1: cannot be read (${codeWithAdvice(error)})`)
  }
  const yaml = parseYaml(file, text, { keepsLast: true })
  const [problem] = yaml.errors
  if (problem !== undefined) throw new InvalidSource(problemLine(problem))
  if (!isObject(yaml.value)) throw new InvalidSource(`${file}:1:1: must be a map`)
  const value = withMerges(yaml.value, 0)
  return { value: isObject(value) ? value : {}, yaml }
}

const MAX_DEPTH = 64

/** The value with the members of its merge keys (`<<: *usual`), which LiteLLM's parser of YAML 1.1 reads. */
function withMerges(value: JsonValue | undefined, depth: number): JsonValue {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return value ?? null
  if (Array.isArray(value)) return value.map((each) => withMerges(each, depth + 1))
  const merged: JsonObject = {}
  const { '<<': merge } = value
  for (const each of Array.isArray(merge) ? [...merge].reverse() : [merge]) {
    const usual = withMerges(each, depth + 1)
    if (isObject(usual)) Object.assign(merged, usual)
  }
  for (const [key, each] of Object.entries(value)) {
    if (key !== '<<' || !isMap(merge)) merged[key] = withMerges(each, depth + 1)
  }
  return merged
}

function isMap(value: JsonValue | undefined): boolean {
  return typeof value === 'object' && value !== null
}

function problemLine({ file, line, column, message }: ConfigProblem): string {
  return `${file}:${line}:${column}: ${message}`
}
