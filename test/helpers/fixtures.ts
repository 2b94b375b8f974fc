/**
 * Recorded provider traffic for tests, in a folder beside the project. Without recordings every lookup is
 * empty and tests are skipped with a message.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { isObject, stringOf } from '../../src/base/json.js'
import type { JsonObject, JsonValue } from '../../src/base/json.js'

/** One recorded exchange. */
export interface Recording {
  /** The file's name without `.json`. */
  readonly name: string
  readonly provider: string
  /** `chat.completions`, `messages`, `generateContent`, … */
  readonly api: string
  readonly stream: boolean
  readonly model: string | undefined
  readonly url: string
  readonly request_headers: Readonly<Record<string, string>>
  readonly request_body: JsonValue
  readonly status: number
  readonly response_headers: Readonly<Record<string, string>>
  readonly response_body: string
  /** `raw`: the original bytes; `reserialized-json`: key order and spacing are lost. */
  readonly response_body_form: string
}

/** Filters recordings; a missing field accepts all. */
export interface RecordingFilter {
  readonly provider: string
  readonly api?: string
  readonly stream?: boolean
  readonly status?: number
  /** Only bodies with their original bytes. */
  readonly raw?: boolean
}

/** The folder of recordings, or null in a clone that has none. */
export function fixturesFolder(): string | null {
  return folderAt([process.env.SLUICE_FIXTURES, '../shared/fixtures', '../../shared/fixtures'])
}

/** The folder of cases from bug reports, or null in a clone that has none. */
export function casesFolder(): string | null {
  return folderAt([process.env.SLUICE_CASES, '../shared/cases', '../../shared/cases'])
}

function folderAt(places: readonly (string | undefined)[]): string | null {
  const folders = places.filter((place) => place !== undefined).map((place) => resolve(process.cwd(), place))
  return folders.find((folder) => existsSync(folder)) ?? null
}

const loaded = new Map<string, readonly Recording[]>()

/** The matching recordings, in the order of their names. */
export function fixtures(filter: RecordingFilter): Recording[] {
  const folder = fixturesFolder()
  if (folder === null) {
    return []
  }
  return load(join(folder, filter.provider)).filter(
    ({ api, stream, status, response_body_form }) =>
      (filter.api === undefined || filter.api === api) &&
      (filter.stream === undefined || filter.stream === stream) &&
      (filter.status === undefined || filter.status === status) &&
      (filter.raw !== true || response_body_form === 'raw'),
  )
}

/** Every recording under the folder, with its path relative to it, in order of name. */
export function* recordings(folder: string): Generator<{ name: string; recording: unknown }> {
  for (const provider of readdirSync(folder, { withFileTypes: true })) {
    if (!provider.isDirectory()) continue
    const files = readdirSync(join(folder, provider.name)).filter((file) => file.endsWith('.json'))
    for (const file of files.sort()) {
      const recording: unknown = JSON.parse(readFileSync(join(folder, provider.name, file), 'utf8'))
      yield { name: `${provider.name}/${file}`, recording }
    }
  }
}

/** For `t.test(name, skipWithoutFixtures(), …)`: the reason why a test is skipped. */
export function skipWithoutFixtures(): { skip?: string } {
  return fixturesFolder() === null
    ? { skip: 'no recorded traffic here; set SLUICE_FIXTURES to its folder' }
    : {}
}

function load(folder: string): readonly Recording[] {
  const known = loaded.get(folder)
  if (known !== undefined) {
    return known
  }
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.json')) : []
  const recordings = names.sort().map((name) => read(folder, name))
  loaded.set(folder, recordings)
  return recordings
}

function read(folder: string, name: string): Recording {
  const value: unknown = JSON.parse(readFileSync(join(folder, name), 'utf8'))
  if (!isObject(value) || typeof value.status !== 'number') {
    throw new Error(`${name} is not a recording`)
  }
  return {
    name: name.replace(/\.json$/, ''),
    provider: stringOf(value.provider) ?? '',
    api: stringOf(value.api) ?? '',
    stream: value.stream === true,
    model: stringOf(value.model),
    url: stringOf(value.url) ?? '',
    request_headers: strings(value.request_headers),
    request_body: value.request_body ?? null,
    status: value.status,
    response_headers: strings(value.response_headers),
    response_body: stringOf(value.response_body) ?? '',
    response_body_form: stringOf(value.response_body_form) ?? '',
  }
}

function strings(value: JsonValue | undefined): Record<string, string> {
  const object: JsonObject = isObject(value) ? value : {}
  return Object.fromEntries(
    Object.entries(object).map(([key, text]) => [key.toLowerCase(), stringOf(text) ?? '']),
  )
}

/** The name of a recording in a report. */
export function labelOf({ provider, name }: Recording): string {
  return `${provider}/${name}`
}
