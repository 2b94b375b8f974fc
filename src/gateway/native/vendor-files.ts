/**
 * Files of Anthropic's and Google's clients, at the vendors' own paths: they pass to an upstream of the
 * vendor like native requests, whose accounts own what they made.
 */
import { GatewayError } from '../../errors.js'
import type { DialectName } from '../../formats/dialect.js'
import type { Exchange } from '../client-exchange.js'
import type { NativePlace } from './admit-native.js'
import { nativePathOf } from './native-path.js'

/** The vendors, and what their files are called. */
const VENDORS = {
  anthropic: { title: 'Anthropic', setting: 'files.upstream_anthropic' },
  gemini: { title: 'Google', setting: 'files.upstream_gemini' },
} as const

/** Whether files of clients of the format are at an upstream. */
export function isAtUpstream(dialect: DialectName): dialect is keyof typeof VENDORS {
  return dialect === 'anthropic' || dialect === 'gemini'
}

/**
 * The upstream of a request at a vendor's own path of files. Throws `untranslatable` if there is none, and
 * `unknown_endpoint` for a path that a server could read as another one.
 */
export function filesPlace(x: Exchange, dialect: keyof typeof VENDORS): NativePlace {
  const { files } = x.generation.snapshot.config
  const { title, setting } = VENDORS[dialect]
  const name = files?.upstreams[dialect] ?? null
  if (files === null || name === null) {
    const missing = files === null ? 'files.to' : setting
    const message = `This gateway has no place for files of ${title}'s clients: set ${missing} in its configuration.`
    throw new GatewayError('untranslatable', message)
  }
  const path = nativePathOf(`/native/${name}${vendorPathOf(x.path)}`)
  const target = x.generation.nativeTarget(name)
  if (path === null || target === null) {
    throw new GatewayError('unknown_endpoint', 'The path of a file must not have escapes or empty parts.')
  }
  const { segments } = path
  // The version and the collection have their names; what follows is an id.
  const rules = [{ method: x.req.method ?? '', segments: [...segments.slice(0, 2), '*'] }]
  return { target, segments, rules, maxBytes: files.maxBytes, isOfClients: true }
}

/** The path at the vendor of a path of `server.bare_paths`, and of any other. */
function vendorPathOf(path: string): string {
  const below = path.startsWith('/anthropic/') ? path.slice('/anthropic'.length) : path
  return below.startsWith('/files') ? `/v1${below}` : below
}
