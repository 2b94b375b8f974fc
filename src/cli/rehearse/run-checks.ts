/** Runs the checks of a rehearsal in sequence, below the cost ceiling, and reports progress. */
import { GatewayError } from '../../errors.js'
import { CeilingReached, type CostCeiling } from './cost-ceiling.js'
import type { Check } from './checks.js'
import type { Format, FormatName } from './client-format.js'
import type { RehearsalGateway } from './rehearsal-gateway.js'
import { Mismatch, RehearsalClient, Untranslatable } from './rehearsal-client.js'

/** The outcome of one check in one format; names are those of the command's JSON. */
export interface CheckResult {
  readonly format: FormatName
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

/** The checks to run, and their surroundings. */
export interface Plan {
  readonly gateway: RehearsalGateway
  readonly formats: readonly Format[]
  readonly checks: readonly Check[]
  readonly ceiling: CostCeiling
  readonly timeoutMs: number
  readonly facts: RehearsalClient['facts']
  /** Called before each check without a result, and after it with the result. */
  readonly progress: (format: FormatName, check: string, result: CheckResult | null) => void
}

const NANO = 1e9

/** Runs all checks in all formats; after the ceiling is reached sends no further request. */
export async function rehearse(plan: Plan): Promise<CheckResult[]> {
  const results: CheckResult[] = []
  let isStopped = false
  for (const format of plan.formats) {
    for (const check of plan.checks) {
      if (!isStopped) plan.progress(format.name, check.name, null)
      const result: CheckResult = isStopped
        ? notRun(format, check)
        : await runCheck(check, format, plan)
      isStopped ||= result.result === 'not run'
      plan.progress(format.name, check.name, result)
      results.push(result)
    }
  }
  return results
}

async function runCheck(check: Check, format: Format, plan: Plan): Promise<CheckResult> {
  const { gateway, ceiling, facts, timeoutMs } = plan
  const client = new RehearsalClient({ gateway, format, ceiling, facts, timeoutMs })
  const beganMs = performance.now()
  const outcome = await outcomeOf(check, client)
  const lost = [...client.lost]
  const isLossy = outcome.result === 'pass' && lost.length > 0
  return {
    format: format.name,
    check: check.name,
    result: isLossy ? 'loss' : outcome.result,
    detail: isLossy ? `not carried: ${lost.join(', ')}` : outcome.detail,
    lost,
    duration_ms: Math.round(performance.now() - beganMs),
    cost_usd: client.nanoUsd / NANO,
  }
}

async function outcomeOf(
  check: Check,
  client: RehearsalClient,
): Promise<Pick<CheckResult, 'result' | 'detail'>> {
  try {
    return await check.run(client)
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

function notRun(format: Format, check: Check): CheckResult {
  return {
    format: format.name,
    check: check.name,
    result: 'not run',
    detail: new CeilingReached().message,
    lost: [],
    duration_ms: 0,
    cost_usd: 0,
  }
}
