/** The series of requests to an upstream, resolved once per target of the configuration. */
import type { Usage } from '../../formats/chat/usage.js'
import { FOLDED_PAIRS, MAX_MODEL_PAIRS, MODEL_PAIRS } from './metric-definitions.js'
import { cached, type Families } from './metric-families.js'
import type { Distribution } from './histogram.js'
import type { ClientFormatLabel, Outcome, Side, StreamEnd } from './closed-labels.js'

/** The series of one (route, upstream). Resolve it once and keep it. */
export interface TargetSeries {
  /** Adds 1 when a request is sent to the upstream and -1 when it ends. */
  inflight(delta: 1 | -1): void
  /** One attempt by its outcome; `cancelled`: another attempt was faster. */
  attempt(kind: Outcome | 'cancelled'): void
  /** One client request of this format that ended with this status. */
  finished(status: number, outcome: Outcome, ingress?: ClientFormatLabel): void
  streamEnd(end: StreamEnd): void
  chunkGap(seconds: number): void
  backpressure(side: Side, seconds: number): void
  /** A request is sent again without the reasoning of earlier turns. */
  reasoningDropped(): void
  /** Records one reply. `model` must be an id of the catalogue or `other`. */
  served(model: string, reply: ServedReply): void
}

/** The durations and usage of a reply. */
interface ServedReply {
  /** From the arrival of the request to the last byte. */
  readonly seconds: number
  /** To the first content; null for a whole (not streamed) reply. */
  readonly ttftSeconds: number | null
  /** As the upstream reported it. */
  readonly usage: Usage
  /** The exported trace of the request. */
  readonly traceId?: string | null
}

interface ModelSeries {
  readonly duration: Distribution
  readonly firstToken: Distribution
  readonly perToken: Distribution
  readonly input: Distribution
  readonly output: Distribution
}

/** All targets of a process. */
export class TargetSeriesMap {
  private readonly families: Families
  private readonly targets = new Map<string, TargetSeries>()
  private readonly models = new Map<string, ModelSeries>()
  private readonly upstreams: () => number

  /** `upstreams`: the number of configured upstreams. */
  constructor(families: Families, upstreams: () => number) {
    this.families = families
    this.upstreams = upstreams
  }

  /** The series of one (route, upstream), made at its first use. */
  of(route: string, upstream: string): TargetSeries {
    const key = JSON.stringify([route, upstream])
    const existing = this.targets.get(key)
    if (existing !== undefined) return existing
    const made = this.makeTarget(route, upstream)
    this.targets.set(key, made)
    return made
  }

  private makeTarget(route: string, upstream: string): TargetSeries {
    const { inflight, attempts, requests, streamEnds, chunkGap, backpressure } = this.families
    const level = inflight.child(upstream)
    const slow = { client: backpressure.child('client') }
    const attempt = cached((kind) => attempts.child(upstream, kind))
    const models = cached((model) => this.model(upstream, model))
    // Made with the first stream: a histogram has twelve lines.
    let gap: Distribution | null = null
    const end = cached((name) => streamEnds.child(upstream, name))
    const hits = this.families.promptTokens.child(upstream, 'hit')
    const misses = this.families.promptTokens.child(upstream, 'miss')
    const ended = cached((ingress) => {
      return cached((status) => {
        return cached((outcome) => requests.child(ingress, route, upstream, status, outcome))
      })
    })
    return {
      inflight: (delta) => level.add(delta),
      attempt: (kind) => attempt(kind).add(),
      finished: (status, outcome, ingress = 'none') => ended(ingress)(String(status))(outcome).add(),
      streamEnd: (name) => end(name).add(),
      chunkGap: (seconds) => (gap ??= chunkGap.child(upstream)).observe(seconds),
      backpressure: (side, seconds) => slow[side].add(seconds),
      reasoningDropped: () => this.families.reasoningDropped.child(upstream).add(),
      served: (model, reply) => {
        record(models(model), reply)
        const { input = 0, cacheRead = 0 } = reply.usage
        hits.add(cacheRead)
        misses.add(input - cacheRead)
      },
    }
  }

  /** The first pairs get series of their own. Later models, then later upstreams, share `other`. */
  private model(upstream: string, model: string): ModelSeries {
    const existing = this.models.get(JSON.stringify([upstream, model]))
    if (existing !== undefined) return existing
    const pairs = Math.min(MODEL_PAIRS + this.upstreams(), MAX_MODEL_PAIRS)
    if (this.models.size < pairs) return this.makeModel(upstream, model)
    if (model !== 'other') return this.model(upstream, 'other')
    if (this.models.size < pairs + FOLDED_PAIRS - 1) return this.makeModel(upstream, model)
    return upstream === 'other' ? this.makeModel('other', 'other') : this.model('other', 'other')
  }

  private makeModel(upstream: string, model: string): ModelSeries {
    const names = ['chat', upstream, model]
    const { requestDuration, timeToFirstToken, timePerOutputToken, tokenUsage } = this.families
    const made: ModelSeries = {
      duration: requestDuration.child(...names),
      firstToken: timeToFirstToken.child(...names),
      perToken: timePerOutputToken.child(...names),
      input: tokenUsage.child(...names, 'input'),
      output: tokenUsage.child(...names, 'output'),
    }
    this.models.set(JSON.stringify([upstream, model]), made)
    return made
  }
}

function record(series: ModelSeries, { seconds, ttftSeconds, usage, traceId }: ServedReply): void {
  series.duration.observe(seconds, traceId)
  if (usage.input !== undefined) series.input.observe(usage.input)
  if (usage.output !== undefined) series.output.observe(usage.output)
  if (ttftSeconds === null) return
  series.firstToken.observe(ttftSeconds, traceId)
  if (usage.output === undefined || usage.output < 2) return
  series.perToken.observe((seconds - ttftSeconds) / (usage.output - 1))
}
