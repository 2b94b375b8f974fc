/**
 * Native access: the endpoints of an upstream that clients may call untranslated. Part of
 * `config-file-schema.ts` and `resolve-upstream.ts`.
 */
import { z } from 'zod'
import type { NativeConfig, NativeRule, NativeSharing } from '../config.js'
import type { Path, ReportFinding } from '../problem.js'

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const SEGMENT = /^(?:\*|[A-Za-z0-9._~!$&'()+,;=:@-]{1,256})$/
const MAX_SEGMENTS = 32

/** `upstreams.NAME.native:` */
export const nativeSchema = z
  .array(z.string().min(1).max(2_048))
  .max(256)
  .default([])
  .describe(
    'Endpoints of the upstream that clients may call untranslated below `/native/NAME/`, each a method and a path: `[ "POST /v1/files", "GET /v1/files/*" ]`. `*` matches one or more segments. The path is the provider\'s own, with its version. A `GET` also admits a WebSocket. Empty: none.',
  )

/** `upstreams.NAME.native_usd_per_request:` */
export const nativePriceSchema = z
  .number()
  .min(0)
  .max(1_000_000)
  .optional()
  .describe(
    'US dollars that a native request costs, in budgets and in the ledger, once the upstream has accepted it. Without it the cost is unknown, and a request under a budget is refused (403) unless `limiting.unknown_price` is `allow`.',
  )

/** `upstreams.NAME.native_sharing:` */
export const nativeSharingSchema = z
  .enum(['account', 'shared'])
  .default('account')
  .describe(
    'Who may use objects at the upstream, such as files, batches, caches, containers and stored prompts. `account`: only the account whose key created them through this gateway; lists show no others, and other ids are answered 404. `shared`: every key, as the upstream allows.',
  )

/** The values of these keys in the file's spelling. */
export interface NativeValues {
  readonly native: readonly string[]
  readonly native_usd_per_request?: number | undefined
  readonly native_sharing: NativeSharing
}

/** Reports invalid and duplicate entries. */
export function checkNative({ native }: NativeValues, path: Path, report: ReportFinding): void {
  native.forEach((entry, index) => {
    const problem = problemOf(entry)
    if (problem !== null) report([...path, 'native', index], problem)
    else if (native.indexOf(entry) < index) report([...path, 'native', index], 'is a duplicate')
  })
}

function problemOf(entry: string): string | null {
  const [method = '', path = '', ...rest] = entry.split(' ')
  if (path === '' || rest.length > 0) {
    return 'must be METHOD /PATH, as in GET /v1/files/*'
  }
  if (!METHODS.includes(method)) return `must start with one of ${METHODS.join(', ')}`
  if (!path.startsWith('/')) return 'must have a path that starts with /'
  if (/[?#]/.test(path)) return 'must have a path without a query or a fragment'
  const segments = path.slice(1).split('/')
  if (segments.length > MAX_SEGMENTS) return `must have at most ${MAX_SEGMENTS} segments`
  if (segments.some((segment) => segment === '.' || segment === '..')) {
    return 'must have a path without . and .. segments'
  }
  if (segments.every((segment) => SEGMENT.test(segment))) return null
  return 'must have a path of plain segments without percent escapes; * must be a whole segment'
}

/** Only for values without findings of `checkNative`. */
export function nativeOf(values: NativeValues): NativeConfig {
  const { native, native_usd_per_request: usd, native_sharing: sharing } = values
  return {
    rules: native.map(ruleOf),
    nanoUsdPerRequest: usd === undefined ? null : Math.round(usd * 1e9),
    sharing,
  }
}

function ruleOf(entry: string): NativeRule {
  const [method = '', path = ''] = entry.split(' ')
  return { method, segments: path.slice(1).split('/') }
}
