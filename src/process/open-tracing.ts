/**
 * Opens the export of traces if the configuration or the environment names a receiver; otherwise loads
 * nothing.
 */
import type { TelemetryConfig } from '../config/config.js'
import { packageVersion } from '../config/package-file.js'
import type { Tracing } from '../gateway/report/request-spans.js'
import type { Logger } from '../observe/log.js'
import type { Metrics } from '../observe/metrics/metrics.js'

/** The variables that name a receiver. */
const ENDPOINTS = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT']
/** Minimum time between log lines about a failing receiver. */
const LOG_EVERY_MS = 60_000

/** Null if no traces are exported. */
export async function openTracing(
  { otlp }: TelemetryConfig,
  log: Pick<Logger, 'warn'>,
  metrics: Pick<Metrics, 'traceSpans'>,
): Promise<Tracing | null> {
  if (!isEnabled(otlp, process.env)) return null
  warnProtocol(process.env, log)
  const [{ openTraceExport }, { Traces }] = await Promise.all([
    import('../observe/export-spans.js'),
    import('../gateway/report/request-spans.js'),
  ])
  let loggedMs = Number.NEGATIVE_INFINITY
  const opened = await openTraceExport({
    otlp,
    version: packageVersion(),
    onSpans: (result, count) => metrics.traceSpans(result, count),
    onFailure: (reason) => {
      const nowMs = performance.now()
      if (nowMs - loggedMs < LOG_EVERY_MS) return
      loggedMs = nowMs
      log.warn('traces are not exported: the receiver refuses them', { reason })
    },
  })
  return new Traces(opened.tracer, () => opened.close())
}

/** OTEL_SDK_DISABLED and OTEL_TRACES_EXPORTER=none turn traces off even if a receiver is named. */
function isEnabled(otlp: string | null, env: NodeJS.ProcessEnv): boolean {
  if (env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true') return false
  if (env['OTEL_TRACES_EXPORTER'] === 'none') return false
  return otlp !== null || ENDPOINTS.some((name) => (env[name] ?? '') !== '')
}

function warnProtocol(env: NodeJS.ProcessEnv, log: Pick<Logger, 'warn'>): void {
  const protocol = env['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'] ?? env['OTEL_EXPORTER_OTLP_PROTOCOL']
  if (protocol === undefined || protocol === 'http/protobuf' || protocol === 'http/json') return
  const variable = 'OTEL_EXPORTER_OTLP_PROTOCOL'
  log.warn('traces are exported as http/protobuf: the protocol that is set is not supported', {
    variable,
  })
}
