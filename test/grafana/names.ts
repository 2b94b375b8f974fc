/** The existing metrics, labels and label values, and the names in an expression. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { ERRORS } from '../../src/errors.js'
import { ROW_KINDS } from '../../src/ledger/ledger-writer.js'
import { DEFINITIONS, type MetricDefinition } from '../../src/observe/metrics/metric-definitions.js'
import { Metrics } from '../../src/observe/metrics/metrics.js'

/** Every metric, lines of histograms and Node's own included, with its labels. */
export async function knownMetrics(): Promise<Map<string, Set<string>>> {
  const known = new Map<string, Set<string>>([['up', new Set()]])
  const all: MetricDefinition[] = Object.values(DEFINITIONS)
  for (const { name, labels, type } of all) {
    const suffixes = type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']
    for (const suffix of suffixes) {
      known.set(name + suffix, new Set(suffix === '_bucket' ? [...labels, 'le'] : labels))
    }
  }
  for (const line of (await pageAfterCollection()).split('\n')) {
    const found = /^([a-z]\w*)(?:\{(.*)\})? /.exec(line)
    if (found === null) continue
    const labels = known.get(found[1] ?? '') ?? new Set()
    for (const [, label] of (found[2] ?? '').matchAll(/(\w+)="/g)) labels.add(label ?? '')
    known.set(found[1] ?? '', labels)
  }
  return known
}

/** Node reports a garbage collection with a delay. */
async function pageAfterCollection(): Promise<string> {
  setFlagsFromString('--expose-gc')
  const metrics = new Metrics()
  const giveUpAt = Date.now() + 60_000
  for (;;) {
    runInNewContext('gc()')
    const text = await metrics.text()
    if (text.includes('nodejs_gc_duration_seconds_sum')) return text
    if (Date.now() > giveUpAt) throw new Error('no garbage collection was reported')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const KINDS = new Set(['ok', 'cancelled', ...Object.keys(ERRORS)])

/** The values of labels that come from closed sets. */
export const VALUES: Readonly<Partial<Record<string, ReadonlySet<string>>>> = {
  kind: KINDS,
  outcome: KINDS,
  end: new Set([
    'complete',
    'truncated',
    'malformed',
    'upstream_timeout',
    'upstream_error',
    'client_gone',
    'client_stalled',
    'key_ended',
    'draining',
    'gateway_error',
  ]),
  cause: new Set(['ok', 'client', 'limits', 'gateway', 'provider']),
  result: new Set(['ok', 'refused', 'failed', 'hit', 'miss', 'stored', 'bypass', 'shared']),
  cache: new Set(['hit', 'miss']),
  gen_ai_token_type: new Set(['input', 'output']),
  le: new Set(
    [DEFINITIONS.overhead, DEFINITIONS.timeToFirstToken].flatMap(({ buckets = [] }) =>
      buckets.map((bound) => String(bound)),
    ),
  ),
}

/** The values of `kind` of the ledger's metric. */
export const valuesOfRows: ReadonlySet<string> = new Set<string>(ROW_KINDS)

/** Words of PromQL that the expressions use. */
const WORDS = new Set(
  'sum max min topk rate increase min_over_time clamp_min histogram_quantile by and or unless on vector time label_replace label_join absent'.split(
    ' ',
  ),
)

/** The names in an expression: metrics, labels, and values that labels are compared with. */
export function namesIn(text: string) {
  const labels = new Set<string>()
  const values: { label: string; value: string }[] = []
  const grouped = new Set<string>()
  const joined = new Set<string>()
  const rest = text
    .replace(/\{([^}]*)\}/g, (_, matchers: string) => {
      for (const [, label = '', value = ''] of matchers.matchAll(/(\w+)\s*[!=]~?\s*"([^"]*)"/g)) {
        labels.add(label)
        if (value.startsWith('$')) continue
        for (const one of value.split('|')) values.push({ label, value: one })
      }
      return ''
    })
    .replace(/\bby \(([^)]*)\)/g, (_, list: string) => {
      for (const label of list.split(',')) grouped.add(label.trim())
      return ''
    })
    .replace(/, "(\w+)", "[^"]*"(?:, "\w+")+\)/g, (_, label: string) => {
      grouped.add(label)
      joined.add(label)
      return ')'
    })
    .replace(/\[[^\]]*\]/g, '')
    .replace(/"[^"]*"/g, '')
    .replace(/\b\d[\de.]*/g, '')
  const metrics = [...rest.matchAll(/[a-z_]\w*/g)].map(([name]) => name)
  return { metrics: metrics.filter((name) => !WORDS.has(name)), labels, values, grouped, joined }
}
