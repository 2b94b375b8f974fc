/** Builds the gateway's own reply headers: the upstream, lost fields and timing. */
import { MODEL_NAME } from '../../formats/chat/model-facts.js'
import type { StartedReply } from '../attempts/attempt.js'
import { attemptList } from '../attempts/attempt-result.js'
import type { CacheUse } from '../../policy/cache-rules.js'
import type { Exchange } from '../client-exchange.js'

/**
 * Name, value, … for a reply that has begun. Times in `server-timing` are in ms; `upstream` is the time until
 * the first byte.
 */
export function replyHeaders(x: Exchange, kind: StartedReply['kind']): string[] {
  const { authenticated, received: call, routed, admitted, candidate, attempts, replyResult } = x
  const { cached, guard } = x
  const auth = decimal(authenticated?.tookMs ?? 0)
  const chosen = decimal(routed?.tookMs ?? 0)
  const limit = decimal(admitted?.tookMs ?? 0)
  const { connectMs, firstByteMs } = x.waits
  const upstream = decimal((connectMs ?? 0) + (firstByteMs ?? 0))
  const judged = guard === null ? '' : ` guard;dur=${decimal(guard.requestMs)},`
  const timing = `auth;dur=${auth}, route;dur=${chosen}, limit;dur=${limit},${judged} upstream;dur=${upstream}`
  const headers = ['x-request-id', x.id, 'server-timing', timing]
  const idHeader = call?.clientCodec.envelope.idHeader ?? null
  if (idHeader !== null) headers.push(idHeader, x.id)
  if (cached !== null) headers.push(...cacheHeaders(cached))
  const emulated = cached?.result === 'hit' ? cached.emulated : (candidate?.target.emulated ?? null)
  if (emulated !== null) headers.push('x-sluice-emulated', emulated)
  if (cached?.result === 'hit') {
    headers.push('x-sluice-generation', String(x.generation.snapshot.generation))
  } else if (candidate !== null) {
    headers.push(...candidate.target.replyHeaders)
    if (MODEL_NAME.test(candidate.model)) headers.push('x-sluice-model', candidate.model)
  }
  if (attempts !== null && attempts.list.length > 1) {
    headers.push('x-sluice-attempts', attemptList(attempts, 'ok'))
  }
  const inRequest = attempts?.losses ?? []
  // The fields that a stream will lose are not known yet.
  const inReply = kind === 'whole' ? (replyResult?.lost ?? []) : []
  if (inRequest.length + inReply.length > 0) {
    headers.push('x-sluice-lost', [...inRequest, ...inReply].join(', '))
  }
  pushGuardrails(headers, x)
  if (admitted !== null) headers.push(...admitted.rateHeaders)
  return headers
}

/** What guardrails have done so far. */
function pushGuardrails(headers: string[], { guard }: Exchange): void {
  if (guard !== null && guard.list.length > 0) {
    headers.push('x-sluice-guardrails', guard.list.join(', '))
  }
}

/** Name, value, … for an error, besides those that depend on the error itself. */
export function errorHeaders(x: Exchange): string[] {
  const { candidate, admitted, attempts, error, cached } = x
  const headers = ['x-request-id', x.id]
  headers.push('x-sluice-generation', String(x.generation.snapshot.generation))
  if (cached !== null) headers.push(...cacheHeaders({ result: cached.result, ageSeconds: null }))
  if (candidate !== null) headers.push('x-sluice-upstream', candidate.target.upstream.config.name)
  if (admitted !== null) headers.push(...admitted.rateHeaders)
  if (attempts !== null && attempts.list.length > 1 && error !== null) {
    headers.push('x-sluice-attempts', attemptList(attempts, error.kind))
  }
  pushGuardrails(headers, x)
  const lost = attempts?.losses ?? []
  if (lost.length > 0) headers.push('x-sluice-lost', lost.join(', '))
  return headers
}

/** What the cache did. */
function cacheHeaders({ result, ageSeconds }: Pick<CacheUse, 'result' | 'ageSeconds'>): string[] {
  const headers = ['x-sluice-cache', result]
  if (ageSeconds !== null) headers.push('age', String(ageSeconds))
  return headers
}

const THOUSANDTHS: readonly string[] = Array.from({ length: 1000 }, (_, n) =>
  n === 0 ? '' : `.${String(n).padStart(3, '0')}`.replace(/0{1,3}$/, ''),
)
/** Above this value, the product with 1000 below would not be exact. */
const MAX_EXACT = 1e9

/**
 * The number for JSON and HTTP headers, with at most three decimals: `0.042`, `17`; `null` for NaN and
 * infinity. Faster than V8's conversion of a double, which takes 0.5 µs; each request has eight of them.
 */
export function decimal(value: number): string {
  if (Number.isInteger(value)) return String(value)
  if (!(value >= 0 && value < MAX_EXACT)) {
    return Number.isFinite(value) ? String(Math.round(value * 1000) / 1000) : 'null'
  }
  const thousandths = Math.round(value * 1000)
  const whole = Math.floor(thousandths / 1000)
  return String(whole) + (THOUSANDTHS[thousandths - whole * 1000] ?? '')
}
