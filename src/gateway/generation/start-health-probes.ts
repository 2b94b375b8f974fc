/** Starts the active health checks of a generation: one for each configured upstream with `probe`. */
import { isConfigured, type Config } from '../../config/config.js'
import { egressOf } from '../../dialects/index.js'
import { requestPathAt } from '../../upstreams/request-path.js'
import type { Upstream, Upstreams } from '../../upstreams/upstreams.js'
import { HealthProbe } from '../attempts/health/health-probe.js'
import type { UpstreamStates } from '../attempts/health/upstream-state.js'
import { ownHeaders } from './upstream-headers.js'

/** Starts the probes; the caller must stop each. Upstreams without `probe` or without a key have none. */
export function startHealthProbes(
  { upstreams }: Pick<Config, 'upstreams'>,
  opened: Upstreams,
  states: UpstreamStates,
): HealthProbe[] {
  return Object.keys(upstreams).flatMap((name) => {
    const upstream = opened.get(name)
    const probe = upstream === undefined ? null : startProbe(upstream, states)
    return probe === null ? [] : [probe]
  })
}

function startProbe(
  { config, pool, address }: Upstream,
  states: UpstreamStates,
): HealthProbe | null {
  const { probe } = config
  if (probe === null || !isConfigured(config)) return null
  const egress = egressOf(config.dialect === 'openai' ? 'openai-chat' : config.dialect)
  if (egress === null) return null
  const { breaker, credentials } = states.of(config.name)
  const path = requestPathAt({ ...address, path: null }, { path: probe.path, model: '' })
  const headers = (): string[] => {
    const { key } = credentials.next(new Set(), null) ?? { key: null }
    const own = Object.entries(ownHeaders(config, egress, key))
    return ['accept', 'application/json', ...own.flat()]
  }
  return new HealthProbe({ probe, pool, path, headers, breaker })
}
