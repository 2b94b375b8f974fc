/**
 * Small builders for the PromQL of the boards: selectors with the boards' variables, rates, quantiles and
 * zeros. `test/grafana` evaluates every expression with a real Prometheus.
 */

/** Selects the series of one gateway. */
export const GATEWAY = 'instance=~"$instance"'
/** Series with a route and an upstream. */
export const REQUESTS = `${GATEWAY},route=~"$route",upstream=~"$upstream"`
/** Series with an upstream. */
export const UPSTREAM = `${GATEWAY},upstream=~"$upstream"`
/** Series with an upstream and a model, of the ledger. */
export const COST = `${UPSTREAM},model=~"$model"`
/** Series with OpenTelemetry's names for upstream and model. */
export const GEN_AI = `${GATEWAY},gen_ai_provider_name=~"$upstream",gen_ai_request_model=~"$model"`

/** Stream ends that the upstream caused, as a label matcher. */
export const BROKEN = 'end=~"truncated|malformed|upstream_timeout|upstream_error"'
/** Outcomes of requests that failed because of a provider or of the gateway, as a regular expression. */
const USERS_FAIL = [
  'bug',
  'store_unavailable',
  'store_unconfirmed',
  'archive_unavailable',
  'cannot_listen',
  'draining',
  'overloaded',
  'guardrail_unavailable',
  'upstream_unconfigured',
  'upstream_credential',
  'identity_unavailable',
  'upstream_denied',
  'upstream_misconfigured',
  'upstream_unreachable',
  'upstream_busy',
  'upstream_failed',
  'upstream_malformed',
  'upstream_truncated',
  'upstream_timeout',
].join('|')
/** Requests that failed so, as a label matcher. */
export const FAILED = `outcome=~"${USERS_FAIL}"`
/** Attempts that failed so, also for a wrong address or credential of the upstream, as a label matcher. */
export const FAILED_ATTEMPT = `kind=~"${USERS_FAIL}"`
/** Requests that count for availability: neither clients nor limits have caused their outcome. */
export const SERVED = `outcome=~"ok|${USERS_FAIL}"`

/** Per-second rate of a counter over the interval that suits the graph. */
export function rate(metric: string, selector: string): string {
  return `rate(${metric}{${selector}}[$__rate_interval])`
}

/** The increase of a counter over the interval that suits the graph. */
export function increase(metric: string, selector: string): string {
  return `increase(${metric}{${selector}}[$__rate_interval])`
}

/** The sum over everything, or by labels. */
export function sum(expression: string, ...by: string[]): string {
  return by.length === 0 ? `sum(${expression})` : `sum by (${by.join(', ')}) (${expression})`
}

/** The highest over everything, or by labels. */
export function max(expression: string, ...by: string[]): string {
  return by.length === 0 ? `max(${expression})` : `max by (${by.join(', ')}) (${expression})`
}

/** A quantile (0 to 1) of a histogram, by labels. */
export function quantile(q: number, histogram: string, selector: string, ...by: string[]): string {
  return `histogram_quantile(${q}, ${sum(rate(`${histogram}_bucket`, selector), 'le', ...by)})`
}

/** The mean of a histogram, by labels. */
export function mean(histogram: string, selector: string, ...by: string[]): string {
  return `${sum(rate(`${histogram}_sum`, selector), ...by)} / ${sum(rate(`${histogram}_count`, selector), ...by)}`
}

/** The same expression over the whole range of the board, for tables. */
export function inRange(expression: string): string {
  return expression.replaceAll('$__rate_interval', '$__range')
}

/** Seconds until a time; 0 once it has passed. */
export function timeLeft(timestamp: string): string {
  return `clamp_min(${timestamp} - time(), 0)`
}

/**
 * Zero if there is no series because nothing happened. Only for counts and rates: a latency without requests
 * is unknown, not zero.
 */
export function orZero(expression: string): string {
  return `${expression} or vector(0)`
}

/** Of an expression by labels: one series at zero, with these labels `none`, if there is no other. */
export function orNone(expression: string, ...labels: readonly string[]): string {
  const none = labels.reduce(
    (inner, label) => `label_replace(${inner}, "${label}", "none", "", "")`,
    'vector(0)',
  )
  return `${expression} or on() ${none}`
}

/** Gives the series a label that joins others, so that a legend is one text, also of a series at zero. */
export function joined(
  expression: string,
  { into, separator, of }: { into: string; separator: string; of: readonly string[] },
): string {
  const names = of.map((name) => `"${name}"`).join(', ')
  return `label_join(${expression}, "${into}", "${separator}", ${names})`
}
