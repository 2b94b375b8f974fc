/**
 * Exports spans with the OpenTelemetry SDK as OTLP over HTTP. It is imported only if traces are exported. The
 * standard OTEL_ variables set resource, sampler, headers, timeouts and queue.
 */
import type { Tracer } from '@opentelemetry/api'
import { ExportResultCode, getNumberFromEnv, type ExportResult } from '@opentelemetry/core'
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources'
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base'

export type SpanResult = 'exported' | 'failed' | 'dropped'

/** The receiver of spans, and callbacks for results. */
export interface TraceExportOptions {
  /** Base URL of the receiver; null: from the environment. */
  readonly otlp: string | null
  /** The gateway's version. */
  readonly version: string
  readonly onSpans: (result: SpanResult, count: number) => void
  /** The receiver rejected spans; `reason` is a status or an error code. */
  readonly onFailure: (reason: string) => void
}

/** A running export. */
export interface TraceExport {
  readonly tracer: Tracer
  /** Sends the queued spans; resolves within 3 seconds. */
  close(): Promise<void>
}

/** Maximum number of queued and unacknowledged spans; the SDK's own default. */
const MAX_QUEUE = 2048
const CLOSE_MS = 3_000
const SAMPLED = 1

/** Starts the export. It connects when the first spans are sent. */
export async function openTraceExport(options: TraceExportOptions): Promise<TraceExport> {
  const queue = new SpanQueue(await newExporter(options.otlp), options)
  const own = resourceFromAttributes({
    'service.name': 'sluice',
    'service.version': options.version,
    'process.pid': process.pid,
  })
  const resource = defaultResource()
    .merge(own)
    .merge(detectResources({ detectors: [envDetector] }))
  const provider = new BasicTracerProvider({ resource, spanProcessors: [queue] })
  return {
    tracer: provider.getTracer('sluice', options.version),
    async close() {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, CLOSE_MS)))
      // Spans that cannot be sent now are counted by the queue.
      const closed = provider.shutdown().catch(() => undefined)
      await Promise.race([closed, late])
      clearTimeout(timer)
    },
  }
}

/** The protocol of the environment: JSON, or protobuf by default. */
async function newExporter(otlp: string | null): Promise<SpanExporter> {
  const { env } = process
  const asked = env['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'] ?? env['OTEL_EXPORTER_OTLP_PROTOCOL']
  const config = otlp === null ? {} : { url: `${otlp.replace(/\/$/, '')}/v1/traces` }
  if (asked === 'http/json') {
    const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-http')
    return new OTLPTraceExporter(config)
  }
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-proto')
  return new OTLPTraceExporter(config)
}

/** A bounded queue in front of the SDK's batches, which drop spans without counting them. */
class SpanQueue implements SpanProcessor, SpanExporter {
  private readonly exporter: SpanExporter
  private readonly options: TraceExportOptions
  private readonly batches: BatchSpanProcessor
  private readonly most = getNumberFromEnv('OTEL_BSP_MAX_QUEUE_SIZE') ?? MAX_QUEUE
  private waiting = 0

  constructor(exporter: SpanExporter, options: TraceExportOptions) {
    this.exporter = exporter
    this.options = options
    this.batches = new BatchSpanProcessor(this)
  }

  onStart(): void {
    // Spans are queued when they end.
  }

  onEnd(span: ReadableSpan): void {
    if ((span.spanContext().traceFlags & SAMPLED) === 0) return
    if (this.waiting >= this.most) {
      this.options.onSpans('dropped', 1)
      return
    }
    this.waiting += 1
    this.batches.onEnd(span)
  }

  forceFlush(): Promise<void> {
    return this.batches.forceFlush()
  }

  /** Called by the provider to flush, and by the batches after they have flushed. */
  private isClosing = false

  shutdown(): Promise<void> {
    if (this.isClosing) return this.exporter.shutdown()
    this.isClosing = true
    return this.batches.shutdown()
  }

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.exporter.export(spans, (result) => {
      this.waiting -= spans.length
      const isSuccess = result.code === ExportResultCode.SUCCESS
      this.options.onSpans(isSuccess ? 'exported' : 'failed', spans.length)
      if (!isSuccess) this.options.onFailure(reasonOf(result.error))
      done(result)
    })
  }
}

/** A code, since a message may contain the receiver's reply. */
function reasonOf(error: Error | undefined): string {
  const code: unknown = error !== undefined && 'code' in error ? error.code : undefined
  if (typeof code === 'number') return `status ${code}`
  return typeof code === 'string' ? code : (error?.name ?? 'unknown')
}
