/**
 * Builds a trial generation beside the current one, so that a configuration that cannot be built is refused
 * before any worker uses it. Sends nothing.
 */
import { validateHeaderName, validateHeaderValue } from 'node:http'
import type { Snapshot, UpstreamConfig } from '../../config/config.js'
import { egressOf } from '../../dialects/index.js'
import type { Metrics } from '../../observe/metrics/metrics.js'
import { hideSecrets } from '../../secrets/redact-secrets.js'
import { Generation } from './generation.js'
import { ownHeaders } from './upstream-headers.js'

/** The reason why the generation cannot be built, or null. Closes all resources of the trial. */
export async function generationProblem(
  snapshot: Snapshot,
  metrics: Metrics,
  current: Generation,
): Promise<string | null> {
  let trial: Generation | null = null
  try {
    trial = new Generation(snapshot, metrics, current)
    trial.stopProbes()
    Object.values(snapshot.config.upstreams).forEach(checkHeaders)
    return null
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return hideSecrets(`the generation cannot be built: ${why}`)
  } finally {
    await trial?.supersede(current)
  }
}

function checkHeaders(config: UpstreamConfig): void {
  const { name, dialect, apiKeys } = config
  const egress = egressOf(dialect === 'openai' ? 'openai-chat' : dialect)
  if (egress === null) throw new Error(`upstream "${name}" has no dialect "${dialect}"`)
  for (const key of apiKeys.length === 0 ? [null] : apiKeys) {
    for (const [header, value] of Object.entries(ownHeaders(config, egress, key))) {
      validateHeaderName(header)
      validateHeaderValue(header, value)
    }
  }
}
