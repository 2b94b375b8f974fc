/**
 * Normalises the paths of native requests, matches them against the rules of an upstream, and joins them to
 * its base URL. Pure.
 */
import type { NativeRule, UpstreamConfig } from '../../config/config.js'
import { keptQuery } from '../upstreams/upstream-address.js'

const PREFIX = '/native/'
/** A version of an API, as in `/v1` and `/v1beta`. */
const VERSION = /^v\d[a-z0-9]*$/
/**
 * Unsafe text in a decoded segment: another level of escapes, a slash, or a segment that some servers read as
 * a parent folder.
 */
const UNSAFE = /%(?:2e|2f|5c|25)|[/\\]|^\.{1,2}(?:;|$)/i

/** A native request's upstream, and the provider's path in normalised segments. */
interface NativePath {
  readonly upstream: string
  /** Decoded. */
  readonly segments: readonly string[]
}

/** Whether the path is below `/native/`. */
export function isNativePath(path: string): boolean {
  return path.startsWith(PREFIX)
}

/**
 * Splits and decodes a path. Null if it has no upstream, an empty segment, or an escape that a server could
 * read as another path. Only a model of an upstream on Bedrock may have encoded slashes, as an ARN does.
 */
export function nativePathOf(
  path: string,
  isOnBedrock: (upstream: string) => boolean = () => false,
): NativePath | null {
  if (!isNativePath(path)) return null
  const [upstream = '', ...rest] = path.slice(PREFIX.length).split('/')
  const segments: string[] = []
  for (const raw of rest) {
    const segment = decoded(raw)
    if (segment === null || segment === '' || hasControl(segment)) return null
    const isModel = segments.length === 1 && segments[0] === 'model' && isOnBedrock(upstream)
    const parts = isModel ? segment.split('/') : [segment]
    if (parts.some((part) => part === '' || UNSAFE.test(part))) return null
    segments.push(segment)
  }
  return segments.length === 0 ? null : { upstream, segments }
}

function decoded(raw: string): string | null {
  try {
    return raw.includes('%') ? decodeURIComponent(raw) : raw
  } catch {
    return null
  }
}

function hasControl(text: string): boolean {
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (code < 32 || code === 127) return true
  }
  return false
}

/** Whether a rule allows the method and path. */
export function isAllowed(
  rules: readonly NativeRule[],
  method: string,
  segments: readonly string[],
): boolean {
  return rules.some((rule) => rule.method === method && matches(rule.segments, segments))
}

/**
 * `*` matches one or more segments. Backtracks only to the last star, so the time is at most proportional to
 * the product of both lengths.
 */
function matches(pattern: readonly string[], segments: readonly string[]): boolean {
  let [index, patternIndex, starIndex, segmentAfterStar] = [0, 0, -1, 0]
  while (index < segments.length) {
    if (pattern[patternIndex] === '*') {
      starIndex = patternIndex
      segmentAfterStar = index + 1
      index = segmentAfterStar
      patternIndex += 1
    } else if (pattern[patternIndex] === segments[index] && patternIndex < pattern.length) {
      index += 1
      patternIndex += 1
    } else if (starIndex !== -1) {
      segmentAfterStar += 1
      index = segmentAfterStar
      patternIndex = starIndex + 1
    } else {
      return false
    }
  }
  return patternIndex === pattern.length
}

/** The settings that a URL depends on. */
type NativeAddress = Pick<UpstreamConfig, 'baseUrl' | 'query'> & {
  readonly preset?: UpstreamConfig['preset']
  readonly platform?: Pick<NonNullable<UpstreamConfig['platform']>, 'name' | 'root'> | null
}

/**
 * The URL of the request. A version at the end of `base_url` is replaced by one at the beginning of the path.
 * The client's query is kept without credentials; the upstream's own query replaces parameters of the same
 * name.
 */
export function nativeUrl(
  { baseUrl, query, platform, preset }: NativeAddress,
  segments: readonly string[],
  clientQuery: string,
): URL {
  // The provider's path on a platform has the platform's own path.
  const url = new URL(platform?.root ?? baseUrl)
  const base = url.pathname.split('/').filter((segment) => segment !== '')
  // Google's paths for the bytes of files have the version second.
  const [first = '', second = ''] = segments
  const version = first === 'upload' || first === 'download' ? second : first
  if (VERSION.test(base.at(-1) ?? '') && VERSION.test(version)) base.pop()
  const path = [...base, ...segments.map(encoded)]
  url.pathname = `/${path.join('/')}`
  // Azure's API without versions refuses the parameter.
  const isAzure = platform?.name === 'azure' || preset === 'azure'
  const isUnversioned = isAzure && VERSION.test(path[path.indexOf('openai') + 1] ?? '')
  const added = Object.entries(query).filter(([name]) => !isUnversioned || name !== 'api-version')
  const own = added.map(([name, value]) => new URLSearchParams([[name, value]]))
  url.search = [keptQuery(clientQuery, Object.fromEntries(added)), ...own.map(String)]
    .filter(Boolean)
    .join('&')
  return url
}

/** Keeps `:` and `@` unescaped, which occur in paths of providers. */
function encoded(segment: string): string {
  return encodeURIComponent(segment).replaceAll('%3A', ':').replaceAll('%40', '@')
}
