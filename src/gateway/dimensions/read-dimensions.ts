/** Reads the values of dimensions from a request. Pure. */
import type { IncomingHttpHeaders } from 'node:http'
import { isObject, type JsonObject } from '../../base/json.js'
import type { DimensionConfig, DimensionPlace } from '../../config/schema/dimensions-schema.js'
import { GatewayError } from '../../errors.js'

/** What a request has values in. */
interface DimensionSources {
  readonly headers: IncomingHttpHeaders
  /** Empty for requests whose body is not read. */
  readonly body: JsonObject
  /** Of the token of a workload; undefined without one. */
  readonly claims: JsonObject | undefined
  /** Whether a missing value of a required dimension is refused. */
  readonly refusesMissing: (dimension: DimensionConfig) => boolean
}

const MAX_LENGTH = 128
/** Control characters, line separators, and characters that reorder text. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Co}\p{Cn}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u

const ASCII = /^[\x20-\x7e]*$/

/** By name, those that are present. Throws `dimension_required` and `invalid_dimension`. */
export function readDimensions(
  dimensions: readonly DimensionConfig[],
  sources: DimensionSources,
): Readonly<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const dimension of dimensions) {
    const { name, places, required, from } = dimension
    const value = valueAt(name, places, sources)
    if (value !== null) found[name] = value
    else if (required && sources.refusesMissing(dimension)) {
      const message = `The request has no value of the dimension '${name}': send it as ${from.join(' or ')}.`
      throw new GatewayError('dimension_required', message, { param: from[0] ?? name })
    }
  }
  return found
}

function valueAt(name: string, places: readonly DimensionPlace[], sources: DimensionSources): string | null {
  for (const place of places) {
    const value = textAt(place, sources)
    if (value === null) continue
    if (
      value.length <= 4 * MAX_LENGTH &&
      Array.from(value).length <= MAX_LENGTH &&
      !UNPRINTABLE.test(value)
    ) {
      return value
    }
    const at = `${place.kind}:${place.path.join('.')}`
    const message = `The value of the dimension '${name}' in ${at} is not valid: send 1 to ${MAX_LENGTH} printable characters.`
    throw new GatewayError('invalid_dimension', message, { param: at })
  }
  return null
}

/**
 * The member at the path; undefined if there is none. Names of claims may have dots, such as those of
 * Kubernetes and the URLs that Auth0 demands: names that are not found are tried together.
 */
function memberAt(value: unknown, path: readonly string[]): unknown {
  if (path.length === 0) return value
  if (!isObject(value)) return undefined
  let name = ''
  for (const [at, part] of path.entries()) {
    name = at === 0 ? part : `${name}.${part}`
    if (!Object.hasOwn(value, name)) continue
    const found = memberAt(value[name], path.slice(at + 1))
    if (found !== undefined) return found
  }
  return undefined
}

/** A text or number; null for nothing, an empty text, and other values. */
function textAt({ kind, path }: DimensionPlace, { headers, body, claims }: DimensionSources): string | null {
  if (kind === 'header') {
    const value = headers[path[0] ?? '']
    const text = Array.isArray(value) ? value[0] : value
    if (text === undefined || text === '') return null
    // Node reads the bytes of a header as Latin-1.
    return ASCII.test(text) ? text : Buffer.from(text, 'latin1').toString('utf8')
  }
  const value = memberAt(kind === 'body' ? body : claims, path)
  if (typeof value === 'number' && Number.isFinite(value)) return String(value)
  return typeof value === 'string' && value !== '' ? value : null
}
