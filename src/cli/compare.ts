/** `sluice compare`: two upstreams side by side, from the ledger. */
import { usd } from '../ledger/export-columns.js'
import {
  ComparedUpstream,
  comparedNameOf,
  type ComparedFigures,
  type ComparedName,
} from '../ledger/compare-upstreams.js'
import { didYouMean } from '../config/config-problem.js'
import { configOption, declare, UsageError } from './command.js'
import { rangeOf, TIME_FORMS } from './time-range.js'
import { entriesOf } from './usage-summary.js'
import { withStore, type OpenStore, type StoreSession } from './with-store.js'
import { table } from './print-table-or-json.js'

/** `sluice compare`. */
export function command(open: OpenStore = withStore, now = Date.now) {
  return declare({
    name: 'compare',
    summary: 'compare errors, times, tokens and cost of two upstreams',
    description: `
Reads the ledger of the configured store, with or without a running gateway, and prints both upstreams side by
side. U1 and U2 are upstreams, or UPSTREAM/MODEL for one model. Copies of requests by \`shadow\` count as
requests of their upstream.

  requests          sent to the upstream at least once; of these, copies by \`shadow\`
  errors            requests whose last attempt there failed, as circuit breakers count failures
  rejected          requests that the provider refused as the client's mistake
  first token       time to the first content of replies without error, or to the end of a whole reply
  cost per request  the mean over requests of known price that used tokens`,
    example: 'sluice compare anthropic candidate --since 1h --config config/gateway.yaml',
  })
    .argument('<U1>')
    .argument('<U2>')
    .option('--since <TIME>', TIME_FORMS, '1h')
    .option('--until <TIME>', 'the end, in the same forms (default: now)')
    .option('--model <MODEL>', 'only requests for this model')
    .addOption(configOption())
    .option('--json', 'print one JSON object')
    .action(async (one, other, options) => {
      if (one === other) {
        throw new UsageError(`'sluice compare' needs two different upstreams, not "${one}" twice`)
      }
      const sides = [comparedNameOf(one), comparedNameOf(other)]
      process.exitCode = await open(options.config, (session) => {
        return compare(session, { sides, ...options }, now())
      })
    })
}

interface Comparison {
  readonly sides: readonly ComparedName[]
  readonly since: string
  readonly until?: string | undefined
  readonly model?: string | undefined
  readonly json?: true | undefined
}

async function compare(
  session: StoreSession,
  { sides, since, until, model, json }: Comparison,
  nowMs: number,
): Promise<number> {
  const range = rangeOf({ since, until }, since, nowMs)
  const { fromMs } = range
  const untilMs = range.untilMs ?? nowMs
  const filter = model === undefined ? {} : { modelAsked: model }
  const compared = sides.map((name) => new ComparedUpstream(name, Math.random))
  for await (const rows of entriesOf(session, { filter, fromMs, untilMs })) {
    for (const row of rows) for (const side of compared) side.add(row)
  }
  const figures = compared.map((side) => ({ name: side.name, figures: side.figures() }))
  const { terminal } = session
  for (const { name, figures: found } of figures) {
    if (found.requests > 0) continue
    const isConfigured = session.upstreams.includes(name.upstream)
    const why = isConfigured
      ? ''
      : `: the configuration has no upstream "${name.upstream}"${didYouMean(name.upstream, session.upstreams)}`
    terminal.err(`sluice: no ledger entry of ${textOf(name)} since ${since}${why}`)
  }
  const span = { since: new Date(fromMs).toISOString(), until: new Date(untilMs).toISOString() }
  const shown = figures.map(({ name, figures: found }) => ({ ...name, ...shownOf(found) }))
  if (json) terminal.out(JSON.stringify({ ...span, model: model ?? null, sides: shown }, undefined, 2))
  else terminal.out(tableOf(figures))
  return 0
}

type Compared = readonly { readonly name: ComparedName; readonly figures: ComparedFigures }[]

function shownOf(side: ComparedFigures) {
  return {
    requests: side.requests,
    shadow_requests: side.shadowRequests,
    errors: side.errors,
    error_rate: side.errorRate,
    rejected: side.rejected,
    first_token_p50_ms: side.firstContentP50Ms,
    first_token_p95_ms: side.firstContentP95Ms,
    input_tokens: side.inputTokens,
    output_tokens: side.outputTokens,
    cost_usd: usd(side.costNanoUsd),
    cost_per_request_usd: usd(side.costPerRequestNanoUsd),
    unpriced: side.unpriced,
    estimated: side.estimated,
    assumed: side.assumed,
  }
}

const ROWS: readonly (readonly [title: string, text: (side: ComparedFigures) => string])[] = [
  ['requests', ({ requests }) => String(requests)],
  ['of these shadow', ({ shadowRequests }) => String(shadowRequests)],
  ['errors', ({ errors }) => String(errors)],
  ['error rate', ({ errorRate }) => (errorRate === null ? '-' : `${percent(errorRate)} %`)],
  ['rejected', ({ rejected }) => String(rejected)],
  ['first token p50', ({ firstContentP50Ms }) => msText(firstContentP50Ms)],
  ['first token p95', ({ firstContentP95Ms }) => msText(firstContentP95Ms)],
  ['input tokens', ({ inputTokens }) => String(inputTokens)],
  ['output tokens', ({ outputTokens }) => String(outputTokens)],
  ['cost', ({ costNanoUsd }) => usdText(costNanoUsd)],
  ['cost per request', ({ costPerRequestNanoUsd }) => usdText(costPerRequestNanoUsd)],
  ['unpriced', ({ unpriced }) => String(unpriced)],
  ['estimated', ({ estimated }) => String(estimated)],
  ['assumed', ({ assumed }) => String(assumed)],
]

function tableOf(compared: Compared): string {
  const head = ['', ...compared.map(({ name }) => textOf(name))]
  const rows = ROWS.map(([title, text]) => [title, ...compared.map((each) => text(each.figures))])
  return table([head, ...rows])
}

function textOf({ upstream, model }: ComparedName): string {
  return model === null ? upstream : `${upstream}/${model}`
}

function percent(share: number): string {
  return String(Math.round(share * 10_000) / 100)
}

function msText(ms: number | null): string {
  return ms === null ? '-' : `${Math.round(ms)} ms`
}

function usdText(nanoUsd: number | null): string {
  return nanoUsd === null ? '-' : `$${(nanoUsd / 1e9).toFixed(6)}`
}
