/** What the parts of an import share, and how they read values of the foreign configuration. */
import type { Path } from '../../../config/config-problem.js'
import { isObject, type JsonObject, type JsonValue } from '../../../base/json.js'
import type { ImportReport } from '../report.js'
import { variableOf, type ImportedSecrets } from '../secrets.js'
import type { ImportedUpstreams } from './upstreams.js'

/** The state of one import. */
export interface ImportContext {
  readonly report: ImportReport
  readonly secrets: ImportedSecrets
  readonly upstreams: ImportedUpstreams
  /** The variables at the time of the import. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Members of every deployment that have none of their own. */
  readonly usual: UsualSettings
  readonly nowMs: number
  /** Further files beside the configuration, by name. */
  readonly files: Map<string, string>
}

/** Settings of the router that hold for deployments without their own. */
interface UsualSettings {
  readonly timeoutSeconds: number | null
  readonly streamTimeoutSeconds: number | null
  readonly litellmParams: JsonObject
  readonly credentials: ReadonlyMap<string, JsonObject>
  /** Keys of an upstream: breaker and probe. */
  readonly upstream: JsonObject
}

/** Whether a variable has a value now, in the environment or in the new `.env`. */
export function isSet({ env, secrets }: Pick<ImportContext, 'env' | 'secrets'>, name: string): boolean {
  return (secrets.get(name) ?? env[name] ?? '').trim() !== ''
}

/**
 * The text itself; of a reference to a variable the value now, and the name of the variable; null if it has
 * none.
 */
export function valueNow(
  { env, secrets }: Pick<ImportContext, 'env' | 'secrets'>,
  text: string,
): { readonly text: string | null; readonly variable: string | null } {
  const variable = variableOf(text)
  if (variable === null) return { text, variable }
  const value = (secrets.get(variable) ?? env[variable] ?? '').trim()
  return { text: value === '' ? null : value, variable }
}

/** The map at a key; an empty one if there is none. */
export function mapAt(value: JsonObject, key: string): JsonObject {
  const found = value[key]
  return isObject(found) ? found : {}
}

/** The text at a key; an empty one if there is none. */
export function textAt(value: JsonObject, key: string): string {
  const found = value[key]
  return typeof found === 'string' ? found : ''
}

/** The list at a key; an empty one if there is none. */
export function listAt(value: JsonObject, key: string): readonly JsonValue[] {
  const found = value[key]
  return Array.isArray(found) ? found : []
}

/** The texts of a list, or the text itself. */
export function textsIn(value: JsonValue | undefined): string[] {
  if (typeof value === 'string') return [value]
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []
}

/** A number, also as text, from 0 on; null for anything else. */
export function numberIn(value: JsonValue | undefined): number | null {
  // LiteLLM's reader of YAML 1.1 takes 100_000 as a number.
  const text = typeof value === 'string' ? value.trim().replace(/(\d)_(?=\d)/g, '$1') : ''
  const number = text === '' ? value : Number(text)
  return typeof number === 'number' && Number.isFinite(number) && number >= 0 ? number : null
}

/** Whether a value is true, also as text: `yes` and `on` are true in YAML 1.1, which LiteLLM reads. */
export function isTrue(value: JsonValue | undefined): boolean {
  return value === true || (typeof value === 'string' && /^(?:true|yes|on)$/i.test(value))
}

/** Ignores each of the keys that the map has. */
export function ignoreKeys(
  report: ImportReport,
  at: Path,
  map: JsonObject,
  keys: Readonly<Record<string, string | null>>,
): void {
  for (const [key, note] of Object.entries(keys)) {
    if (Object.hasOwn(map, key)) report.ignored([...at, key], note)
  }
}

/** Names what to use instead of each of the keys that the map has. */
export function refuseKeys(
  report: ImportReport,
  at: Path,
  map: JsonObject,
  keys: Readonly<Record<string, string>>,
): void {
  for (const [key, note] of Object.entries(keys)) {
    if (Object.hasOwn(map, key)) report.notCarried([...at, key], note)
  }
}
