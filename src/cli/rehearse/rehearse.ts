/** `sluice rehearse`: a conformance run against a live upstream, for each client format. */
import {
  guardrailsFor,
  guardrailsText,
  type GuardrailExplanation,
} from '../../gateway/explain/explain-route.js'
import { PLAIN_REQUEST } from '../../gateway/routing/match-route-conditions.js'
import { createRouter } from '../../gateway/routing/router.js'
import { factsFor } from '../../config/catalogue.js'
import { isConfigured, type Config, type UpstreamConfig } from '../../config/config.js'
import { loadConfig } from '../../config/load-config.js'
import { GatewayError } from '../../errors.js'
import { Prices } from '../../ledger/find-price.js'
import { hideSecrets } from '../../hide-secrets.js'
import { problemLines } from '../problem-lines.js'
import { configOption, declare, UsageError } from '../command.js'
import { table } from '../print-table-or-json.js'
import { CHECKS, type CheckOutcome } from './checks.js'
import { Format, FORMATS, type FormatName } from './client-format.js'
import { CostCeiling, CeilingReached, Mismatch, RehearsalClient, Untranslatable } from './rehearsal-client.js'
import { OperationClient } from './operation-client.js'
import { operationChecks, REHEARSED_OPERATIONS, type RehearsedOperation } from './operation-checks.js'
import { openRehearsalGateway, type RehearsalOptions } from './rehearsal-gateway.js'

/** The outcome of one check in one format; names are those of the command's JSON. */
interface CheckResult {
  /** The client format; with `--operation` its name. */
  readonly format: string
  readonly check: string
  /** `skipped`: the format or the model lacks the feature. `not run`: the cost ceiling was reached. */
  readonly result: 'pass' | 'loss' | 'fail' | 'skipped' | 'not run'
  /** The reason; empty for a pass. */
  readonly detail: string
  /** Fields that could not be translated. */
  readonly lost: readonly string[]
  readonly duration_ms: number
  readonly cost_usd: number
}

/** One check in one format. */
interface Step extends Pick<CheckResult, 'format' | 'check'> {
  /** What its requests lost and cost. */
  readonly client: Pick<RehearsalClient, 'lost' | 'nanoUsd'>
  run(): Promise<CheckOutcome>
}

/** Called before each check without a result, and after it with the result. */
type Progress = (step: Pick<CheckResult, 'format' | 'check'>, result: CheckResult | null) => void

const NANO = 1e9

/** Runs all steps; after the ceiling is reached sends no further request. */
async function rehearse(steps: readonly Step[], progress: Progress): Promise<CheckResult[]> {
  const results: CheckResult[] = []
  let isStopped = false
  for (const step of steps) {
    if (!isStopped) progress(step, null)
    const result: CheckResult = isStopped ? notRun(step) : await runStep(step)
    isStopped ||= result.result === 'not run'
    progress(step, result)
    results.push(result)
  }
  return results
}

async function runStep(step: Step): Promise<CheckResult> {
  const { format, check, client } = step
  const beganMs = performance.now()
  const outcome = await outcomeOf(step)
  const lost = [...client.lost]
  const isLossy = outcome.result === 'pass' && lost.length > 0
  return {
    format,
    check,
    result: isLossy ? 'loss' : outcome.result,
    detail: isLossy ? `not carried: ${lost.join(', ')}` : outcome.detail,
    lost,
    duration_ms: Math.round(performance.now() - beganMs),
    cost_usd: client.nanoUsd / NANO,
  }
}

async function outcomeOf(step: Step): Promise<Pick<CheckResult, 'result' | 'detail'>> {
  try {
    return await step.run()
  } catch (error) {
    if (error instanceof CeilingReached) return { result: 'not run', detail: error.message }
    if (error instanceof Untranslatable) return { result: 'loss', detail: error.message }
    if (error instanceof Mismatch) return { result: 'fail', detail: error.message }
    if (error instanceof GatewayError && error.kind === 'untranslatable') {
      return { result: 'skipped', detail: 'the client format lacks this feature' }
    }
    const message = error instanceof Error ? error.message : String(error)
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : ''
    return { result: 'fail', detail: cause === '' ? message : `${message}: ${cause}` }
  }
}

function notRun({ format, check }: Step): CheckResult {
  return {
    format,
    check,
    result: 'not run',
    detail: new CeilingReached().message,
    lost: [],
    duration_ms: 0,
    cost_usd: 0,
  }
}

/** `sluice rehearse`. */
export function command() {
  return declare({
    name: 'rehearse',
    summary: 'run the conformance checks against a live upstream',
    description: `
Sends real requests to an upstream of the configuration, through a separate gateway in this process, and
checks the replies: ${CHECKS.map(({ name }) => name).join(', ')}.
Each check runs for each client format: ${FORMATS.join(', ')}. A running gateway, its store and
its ledger are not changed.

With --operation it runs the checks of another endpoint instead: ${REHEARSED_OPERATIONS.slice(0, 4).join(', ')},
${REHEARSED_OPERATIONS.slice(4).join(', ')}. A batch is made, read and cancelled.

pass: it works. loss: it works, but fields were lost in translation, or the gateway refused the request as
untranslatable. fail: the reply is wrong. skipped: the format or the model lacks the feature.`,
    exitStatus: '0 no check failed, 1 a check failed or the cost ceiling stopped the run, 2 wrong usage.',
    example: 'sluice rehearse --config config/gateway.yaml --upstream anthropic --model claude-haiku-4-5',
  })
    .requiredOption('--upstream <NAME>', 'the upstream, by its name in the configuration')
    .requiredOption('--model <ID>', 'the model to request from it')
    .option('--operation <NAME>', 'an endpoint beside chat (default: chat)', operationOf)
    .option('--format <LIST>', 'client formats, separated by commas (default: all)', (text) =>
      listOf('--format', text, FORMATS),
    )
    .option('--check <LIST>', 'checks, separated by commas (default: all)')
    .option(
      '--max-cost-usd <USD>',
      'maximum cost of the run: a request that might exceed it is not sent. A model without a price counts with limiting.assumed_price',
      amount('--max-cost-usd', 10_000),
      0.5,
    )
    .option('--timeout-ms <MS>', 'maximum time for one reply', amount('--timeout-ms', 3_600_000), 60_000)
    .addOption(configOption())
    .option('--json', 'print one JSON object: { ok, upstream, model, results, cost_usd, max_cost_usd }')
    .action(async (options) => {
      const { model, json, operation = null } = options
      if (operation !== null && options.format !== undefined) {
        throw new UsageError('--format is for chat, not for --operation')
      }
      const checks = checksOf(options.check, operation)
      const loaded = loadConfig(options.config, process.env)
      if (!loaded.ok) {
        console.log(json ? JSON.stringify({ errors: loaded.errors }) : problemLines(loaded.errors))
        process.exitCode = 1
        return
      }
      const upstream = upstreamOf(options.upstream, loaded.config)
      const { config, catalogue } = loaded
      const report = await rehearsal(
        { config, catalogue, upstream, model },
        {
          operation,
          formats: options.format ?? FORMATS,
          checks,
          maxUsd: options.maxCostUsd,
          timeoutMs: options.timeoutMs,
        },
      )
      console.log(json ? JSON.stringify(report) : reportText(report))
      process.exitCode = report.ok ? 0 : 1
    })
}

function listOf<T extends string>(option: string, text: string, known: readonly T[]): readonly T[] {
  return text.split(',').map((word) => {
    const found = known.find((name) => name === word.trim())
    if (found === undefined) {
      const names = known.join(', ')
      throw new UsageError(`${option} must be names separated by commas, not "${word}": ${names}`)
    }
    return found
  })
}

function operationOf(text: string): RehearsedOperation {
  const [name] = listOf('--operation', text, REHEARSED_OPERATIONS)
  if (name === undefined || text.includes(',')) throw new UsageError('--operation must be one name')
  return name
}

/** The names of the checks to run, in the order of the table. */
function checksOf(text: string | undefined, operation: RehearsedOperation | null): readonly string[] {
  const all = (operation === null ? CHECKS : operationChecks(operation)).map(({ name }) => name)
  if (text === undefined) return all
  const names = listOf('--check', text, all)
  return all.filter((name) => names.includes(name))
}

/** Reads the number of an option. The reader throws `UsageError` for 0, less, or more than `max`. */
export function amount(option: string, max: number): (text: string) => number {
  return (text) => {
    const number = Number(text)
    if (text !== '' && number > 0 && number <= max) return number
    throw new UsageError(`${option} must be a number above 0 and up to ${max}, not "${text}"`)
  }
}

/** The upstream of that name. Throws an error for the user if it does not exist or has no key. */
export function upstreamOf(name: string, { upstreams }: Config): UpstreamConfig {
  const upstream = upstreams[name]
  if (upstream === undefined) {
    throw new Error(`no upstream "${name}" in the file: use one of ${Object.keys(upstreams).join(', ')}`)
  }
  if (isConfigured(upstream)) return upstream
  throw new Error(`the upstream "${name}" has no key: set ${upstream.apiKeySource ?? 'api_key'}`)
}

/** The JSON output of the command. */
interface Report {
  readonly ok: boolean
  readonly upstream: string
  readonly model: string
  readonly results: readonly CheckResult[]
  readonly cost_usd: number
  readonly max_cost_usd: number
  /** Whether the cost is calculated with `limiting.assumed_price`, because the model has no price. */
  readonly assumed_price: boolean
  /** The guardrails of the model's route, which the rehearsal leaves out. */
  readonly guardrails: readonly GuardrailExplanation[]
}

interface Options {
  /** Null: chat. */
  readonly operation: RehearsedOperation | null
  readonly formats: readonly FormatName[]
  /** Their names. */
  readonly checks: readonly string[]
  readonly maxUsd: number
  readonly timeoutMs: number
}

async function rehearsal(
  rehearsed: RehearsalOptions,
  { operation, formats, checks, maxUsd, timeoutMs }: Options,
): Promise<Report> {
  const { config, catalogue, upstream, model } = rehearsed
  const facts = { ...factsFor(catalogue, model), id: model }
  const prices = new Prices(catalogue.models, [upstream], Date.now())
  const price = prices.find(upstream.name, model, null)
  const ceiling = new CostCeiling(maxUsd, { price, facts, limiting: config.limiting })
  const gateway = await openRehearsalGateway(operation === null ? rehearsed : { ...rehearsed, maxUsd })
  const chatSteps = (): Step[] =>
    formats.flatMap((name) => {
      const format = new Format(name, facts)
      const own = CHECKS.filter((check) => checks.includes(check.name))
      return own.map((check) => {
        const client = new RehearsalClient({ gateway, format, ceiling, facts, timeoutMs })
        return { format: name, check: check.name, client, run: () => check.run(client) }
      })
    })
  const operationSteps = (of: RehearsedOperation): (Step & { readonly client: OperationClient })[] =>
    operationChecks(of)
      .filter((check) => checks.includes(check.name))
      .map((check) => {
        const client = new OperationClient({ gateway, model, timeoutMs })
        return { format: of, check: check.name, client, run: () => check.run(client) }
      })
  try {
    const own = operation === null ? null : operationSteps(operation)
    const results = await rehearse(own ?? chatSteps(), progress)
    const isPriced = own?.every(({ client }) => client.isPriced) ?? ceiling.isPriced
    return {
      ok: results.every(({ result }) => result !== 'fail' && result !== 'not run'),
      upstream: upstream.name,
      model,
      results: results.map((each) => ({ ...each, detail: hideSecrets(each.detail) })),
      cost_usd: own?.reduce((sum, { client }) => sum + client.usd, 0) ?? ceiling.spentUsd,
      max_cost_usd: maxUsd,
      assumed_price: !isPriced,
      guardrails: guardrailsFor(
        createRouter(config).find(model, PLAIN_REQUEST)?.config.guardrails ?? [],
        config.guardrails,
        {},
      ),
    }
  } finally {
    await gateway.close()
  }
}

/** Prints one line on standard error after each check. */
function progress(
  { format, check }: Pick<CheckResult, 'format' | 'check'>,
  result: CheckResult | null,
): void {
  if (result === null || result.result === 'not run') return
  const { result: word, duration_ms: tookMs, detail } = result
  const why = detail === '' ? '' : `: ${hideSecrets(detail)}`
  console.error(`${format} ${check}: ${word} in ${tookMs} ms${why}`)
}

function reportText({ upstream, model, results, ...report }: Report): string {
  const formats = [...new Set(results.map(({ format }) => format))]
  const checks = [...new Set(results.map(({ check }) => check))]
  const rows = checks.map((check) => [
    check,
    ...formats.map((format) => {
      return results.find((each) => each.format === format && each.check === check)?.result ?? ''
    }),
  ])
  const notes = results.filter(({ result, detail }) => result !== 'not run' && detail !== '')
  const count = (word: CheckResult['result']): number =>
    results.filter(({ result }) => result === word).length
  const isStopped = count('not run') > 0
  const assumed = report.assumed_price ? ', at limiting.assumed_price: the model has no price' : ''
  return [
    `${upstream} ${model}`,
    '',
    table([['check', ...formats], ...rows]),
    ...(notes.length === 0 ? [] : ['']),
    ...notes.map(({ format, check, result, detail }) => `${format} ${check}: ${result}: ${detail}`),
    '',
    `${count('pass')} passed, ${count('loss')} with losses, ${count('fail')} failed, ${count('skipped')} skipped`,
    `Cost ${report.cost_usd.toFixed(6)} USD of at most ${report.max_cost_usd} USD${assumed}`,
    ...(report.guardrails.length === 0
      ? []
      : [`Without the guardrails of the route: ${guardrailsText(report.guardrails)}`]),
    ...(isStopped
      ? [`Stopped by the cost ceiling with ${count('not run')} checks left: raise --max-cost-usd`]
      : []),
  ].join('\n')
}
