/**
 * The upstreams that a route may use for a model, with weights, retries, hedging, breakers and the features
 * that translation cannot carry. For `sluice explain`; sends no request.
 */
import { candidatesOf, modelAt, type ModelRoute, type RouteShadow } from '../routing/router.js'
import { ANY_TOOL } from '../../formats/chat/hosted-tools.js'
import { factsFor } from '../../config/catalogue.js'
import {
  isConfigured,
  type Catalogue,
  type ProbeConfig,
  type AbortConfig,
  type HedgeConfig,
  type RetryConfig,
} from '../../config/config.js'
import { whenText } from '../routing/match-route-conditions.js'
import type { GuardrailConfig } from '../../config/schema/guardrails-schema.js'
import { dialectsByRequest, type DialectsByRequest } from '../upstreams/choose-openai-endpoint.js'
import { notCarried } from './not-carried.js'

/** One upstream that may serve the model. */
interface CandidateExplanation {
  readonly upstream: string
  /** The model that is requested from it. */
  readonly model: string
  readonly fallback: boolean
  /** Null for a fallback. */
  readonly weight: number | null
  /** Share of the requests in percent; null for a fallback. */
  readonly percent: number | null
  /** When it is taken out of use; null if never. */
  readonly abort: Readonly<Record<'error_rate' | 'min_requests' | 'window_seconds', number>> | null
  readonly wire_format: DialectsByRequest
  readonly configured: boolean
  /** Number of its API keys. */
  readonly api_keys: number
  readonly breaker: Readonly<Record<string, number>>
  readonly probe: { readonly path: string; readonly interval_ms: number } | null
  /** Tools of the provider for keys without a list of their own; null: the default. */
  readonly allow_tools: readonly string[] | null
  /** Keys of the body that its quirks drop. */
  readonly quirks_drop: readonly string[]
  /** Features of chat requests that translation drops and reports. */
  readonly loses: readonly string[]
  /** Features that it refuses with 400. */
  readonly refuses: readonly string[]
}

/** How a route handles its requests. */
export interface RouteExplanation {
  /** The conditions of the route as text; null without any. */
  readonly when: string | null
  readonly sticky: string
  readonly balance: string
  readonly retry: Readonly<Record<string, number | boolean>>
  /** Null without hedging. */
  readonly hedge: { readonly after_ms: number; readonly extra_spend: number } | null
  /** The target of copies of some requests; null without a shadow. */
  readonly shadow: ShadowExplanation | null
  /** In file order: the targets, then the fallback. */
  readonly candidates: readonly CandidateExplanation[]
}

/** A guardrail of the route, or one that applies to the key. */
export interface GuardrailExplanation {
  readonly name: string
  readonly on: readonly string[]
  /** Of guard servers and plugins: `block` if their verdict decides, else `report`. */
  readonly action: string
}

/** `pii (request and response, mask), …` */
export function guardrailsText(guardrails: readonly GuardrailExplanation[]): string {
  return guardrails.map(({ name, on, action }) => `${name} (${on.join(' and ')}, ${action})`).join(', ')
}

/** The guardrails of a request for a key with these labels. */
export function guardrailsFor(
  names: readonly string[],
  guardrails: readonly GuardrailConfig[],
  labels: Readonly<Record<string, string>>,
): GuardrailExplanation[] {
  const named = names.flatMap((name) => guardrails.filter((each) => each.name === name))
  const applied = guardrails.filter((each) => !named.includes(each) && appliesTo(each, labels))
  return [...named, ...applied].map(({ name, on, action }) => ({ name, on, action }))
}

function appliesTo({ applyTo }: GuardrailConfig, labels: Readonly<Record<string, string>>): boolean {
  if (applyTo === null || 'accounts' in applyTo) return false
  if ('all' in applyTo) return true
  return Object.entries(applyTo.labels).every(([name, value]) => labels[name] === value)
}

/** The target of copies, and their share. */
interface ShadowExplanation {
  readonly upstream: string
  /** The model that is requested from it. */
  readonly model: string
  readonly percent: number
  readonly usd_per_day: number
  readonly concurrent: number
  readonly configured: boolean
}

/** Explains a route for a model id that it matches. */
export function explainRoute(route: ModelRoute, model: string, catalogue: Catalogue): RouteExplanation {
  const { shadow } = route
  const { when, sticky, balance, retry, hedge } = route.config
  return {
    when: when === null ? null : whenText(when),
    sticky,
    balance,
    retry: retryShown(retry),
    hedge: hedgeShown(hedge),
    shadow: shadow === null ? null : shadowShown(shadow, model),
    candidates: candidatesOf(route, model).map((candidate) => explainCandidate(candidate, catalogue)),
  }
}

function explainCandidate(
  { target, model, share }: ReturnType<typeof candidatesOf>[number],
  catalogue: Catalogue,
): CandidateExplanation {
  const { upstream, weight, isFallback, abort } = target
  const { breaker, probe, apiKeys, quirks } = upstream
  const facts = factsFor(catalogue, model)
  const wire_format = dialectsByRequest(upstream, facts)
  return {
    upstream: upstream.name,
    model,
    fallback: isFallback,
    weight: isFallback ? null : weight,
    percent: share === null ? null : Math.round(1_000 * share) / 10,
    abort: abort === null ? null : abortShown(abort),
    wire_format,
    configured: isConfigured(upstream),
    api_keys: apiKeys.length,
    breaker: {
      failures: breaker.failures,
      error_rate: breaker.errorRate,
      min_requests: breaker.minRequests,
      window_seconds: breaker.windowMs / 1_000,
      open_seconds: breaker.openMs / 1_000,
    },
    probe: probeShown(probe),
    allow_tools: upstream.allowTools,
    quirks_drop: quirks.drop,
    ...notCarried(wire_format.plain, { facts, upstream }),
  }
}

function abortShown({ errorRate, minRequests, windowMs }: AbortConfig) {
  return { error_rate: errorRate, min_requests: minRequests, window_seconds: windowMs / 1_000 }
}

function shadowShown({ target, config }: RouteShadow, model: string): ShadowExplanation {
  const { percent, nanoUsdPerDay, concurrent } = config
  return {
    upstream: target.upstream.name,
    model: modelAt(target, model),
    percent,
    usd_per_day: nanoUsdPerDay / 1e9,
    concurrent,
    configured: isConfigured(target.upstream),
  }
}

function retryShown({ attempts, budget, maxWaitMs, nonIdempotent }: RetryConfig) {
  return { attempts, budget, max_wait_ms: maxWaitMs, non_idempotent: nonIdempotent }
}

function hedgeShown(hedge: HedgeConfig | null): RouteExplanation['hedge'] {
  return hedge === null ? null : { after_ms: hedge.afterMs, extra_spend: hedge.extraSpend }
}

function probeShown(probe: ProbeConfig | null): CandidateExplanation['probe'] {
  return probe === null ? null : { path: probe.path, interval_ms: probe.intervalMs }
}

/** The same as rows of text: a title, which may be empty, and a value. */
export function routeRows(route: RouteExplanation): [title: string, text: string][] {
  const rows: [string, string][] = []
  if (route.when !== null) rows.push(['when', route.when])
  route.candidates.forEach((candidate, at) => {
    rows.push([at === 0 ? 'candidates' : '', candidateText(candidate)])
    for (const text of detailsOf(candidate)) rows.push(['', `  ${text}`])
  })
  if (route.candidates.length > 1) rows.push(['choice', choiceText(route)])
  rows.push(['retry', retryText(route)])
  rows.push(['hedge', hedgeText(route)])
  rows.push(['shadow', shadowText(route)])
  return rows
}

function candidateText(candidate: CandidateExplanation): string {
  const { upstream, model, percent, configured } = candidate
  const share = percent === null ? 'fallback' : `${percent} % of the requests`
  return `${upstream}, model ${model}: ${share}${configured ? '' : ', skipped while it has no key'}`
}

function detailsOf({
  abort,
  wire_format,
  api_keys,
  breaker,
  probe,
  allow_tools: tools,
  quirks_drop,
  loses,
  refuses,
}: CandidateExplanation): string[] {
  const { failures, error_rate, min_requests, window_seconds, open_seconds } = breaker
  const rate = `${(error_rate ?? 0) * 100} % of at least ${min_requests} attempts in ${window_seconds} s`
  return [
    ...(abort === null ? [] : [abortText(abort)]),
    `dialect ${wire_format.plain}${wire_format.with_tools === wire_format.plain ? '' : `, with tools ${wire_format.with_tools}`}`,
    `breaker opens after ${failures} failures in a row or ${rate}, tests after ${open_seconds} s`,
    ...(probe === null ? [] : [`probe GET ${probe.path} every ${probe.interval_ms} ms`]),
    ...(tools === null ? [] : [toolsText(tools)]),
    ...(api_keys > 1 ? [`${api_keys} API keys in rotation; a refused key cools down`] : []),
    ...(quirks_drop.length === 0 ? [] : [`quirks drop ${quirks_drop.join('; ')}`]),
    ...(loses.length === 0 ? [] : [`loses ${loses.join('; ')}`]),
    ...(refuses.length === 0 ? [] : [`refuses ${refuses.join('; ')}`]),
  ]
}

/** Without a list, keys with a budget or a list of models may use none that cost extra, other keys all. */
function toolsText(tools: readonly string[]): string {
  if (tools.length === 0) return 'allow_tools: no tool of the provider'
  return tools.includes(ANY_TOOL) ? 'allow_tools: all' : `allow_tools: ${tools.join(', ')}`
}

function abortText(abort: NonNullable<CandidateExplanation['abort']>): string {
  const { error_rate: rate, min_requests: requests, window_seconds: seconds } = abort
  return `aborted (weight 0) when ${rate * 100} % of at least ${requests} requests in ${seconds} s failed`
}

function choiceText({ sticky, balance, candidates }: RouteExplanation): string {
  if (candidates.filter(({ percent }) => percent !== null).length === 1)
    return 'the one target, its fallbacks if it fails'
  if (sticky === 'conversation') return 'the same for all turns of a conversation, by weight'
  if (sticky === 'key') return 'the same for all requests of an API key, by weight'
  return balance === 'weighted'
    ? 'at random for each request, by weight'
    : 'the faster of two that are drawn by weight'
}

function retryText({ retry }: RouteExplanation): string {
  const { attempts, budget, max_wait_ms: maxWaitMs, non_idempotent: nonIdempotent } = retry
  const repeated =
    nonIdempotent === true
      ? 'requests that may have been executed are sent to the next target'
      : 'requests that may have been executed are not repeated without an idempotency-key'
  if (attempts === 1) return `none on the same target; ${repeated}`
  const share = `${Number(budget) * 100} % of the requests`
  return `up to ${attempts} attempts on a target, for at most ${share}, with waits of at most ${maxWaitMs} ms; ${repeated}`
}

function hedgeText({ hedge }: RouteExplanation): string {
  if (hedge === null) return 'none'
  return `a second request to another target (or the same if there is none) after ${hedge.after_ms} ms without content, for at most ${hedge.extra_spend * 100} % extra spend`
}

function shadowText({ shadow }: RouteExplanation): string {
  if (shadow === null) return 'none'
  const { upstream, model, percent, usd_per_day: usd, concurrent, configured } = shadow
  const limits = `at most $${usd} a day and ${concurrent} at a time`
  return `${upstream}, model ${model}: a copy of ${percent} % of the requests, ${limits}${configured ? '' : ', skipped while it has no key'}`
}
