/**
 * Notifies when many requests of the gateway end with a 5xx reply, and when they no longer do. Reads the
 * metrics of all its processes, so that a request costs nothing, and only while a receiver is configured.
 */
import type { Config } from '../config/config.js'
import type { Notify } from '../observe/notification.js'

/** Time between two readings. */
const INTERVAL_MS = 10_000
/** Readings in the window of a minute. */
const READINGS = 6
const WINDOW_SECONDS = (READINGS * INTERVAL_MS) / 1_000
/** High: at least this many failed requests in the window, and this share of all of them. */
const MIN_FAILED = 10
const HIGH_SHARE = 0.05
/** Normal again: at most this share. */
const NORMAL_SHARE = 0.01

/** What the watch uses. */
interface ErrorRateOptions {
  /** The metrics of all processes, in Prometheus's text format. */
  readonly metrics: () => Promise<string>
  /** Its `notify` tells whether a receiver is configured. */
  readonly source: { current(): { readonly config: Pick<Config, 'notify'> } }
  readonly notify: Notify
}

/** Requests since the start, by upstream. */
type Counts = ReadonlyMap<string, { readonly all: number; readonly failed: number }>

/** Reads the metrics every ten seconds until the process ends. */
export function watchErrorRate(options: ErrorRateOptions): void {
  const watch = new ErrorRateWatch(options)
  // A worker that does not reply in time is counted with the next reading.
  setInterval(() => void watch.read().catch(() => null), INTERVAL_MS).unref()
}

/** Reports a high share of 5xx replies, and its end. */
export class ErrorRateWatch {
  private readonly options: ErrorRateOptions
  /** The first one is the start of the gateway. */
  private readings: Counts[] = [new Map()]
  private isHigh = false

  constructor(options: ErrorRateOptions) {
    this.options = options
  }

  /** Compares with the reading of a minute ago. Rejects if `metrics` does. */
  async read(): Promise<void> {
    const { notify } = this.options.source.current().config
    if (!notify.some(({ events }) => events.includes('error_rate'))) {
      this.readings = []
      return
    }
    const counts = countsIn(await this.options.metrics())
    this.readings.push(counts)
    if (this.readings.length > READINGS + 1) this.readings.shift()
    const [first] = this.readings
    if (first !== undefined) this.compare(difference(counts, first))
  }

  private compare(counts: Counts): void {
    const each = [...counts]
    const requests = each.reduce((sum, [, { all }]) => sum + all, 0)
    const failed = each.reduce((sum, [, count]) => sum + count.failed, 0)
    const share = requests === 0 ? 0 : failed / requests
    const isHigh = this.isHigh ? share > NORMAL_SHARE : failed >= MIN_FAILED && share >= HIGH_SHARE
    if (isHigh === this.isHigh) return
    this.isHigh = isHigh
    const [worst] = each.sort(([, one], [, other]) => other.failed - one.failed)
    const data = {
      state: isHigh ? 'high' : 'normal',
      percent: Math.round(share * 1_000) / 10,
      failed,
      requests,
      window_seconds: WINDOW_SECONDS,
      upstream: isHigh && worst !== undefined ? worst[0] : null,
    }
    this.options.notify({ type: 'error_rate.changed', atMs: Date.now(), data })
  }
}

const REQUESTS = /^sluice_requests_total\{([^}]*)\} (\d+)/gm

function countsIn(text: string): Counts {
  const counts = new Map<string, { all: number; failed: number }>()
  for (const [, labels = '', value] of text.matchAll(REQUESTS)) {
    const upstream = /upstream="([^"]*)"/.exec(labels)?.[1] ?? ''
    const count = counts.get(upstream) ?? { all: 0, failed: 0 }
    counts.set(upstream, count)
    count.all += Number(value)
    if (/status="5\d\d"/.test(labels)) count.failed += Number(value)
  }
  return counts
}

function difference(now: Counts, then: Counts): Counts {
  return new Map(
    [...now].map(([upstream, { all, failed }]) => {
      const before = then.get(upstream) ?? { all: 0, failed: 0 }
      // A process that ended without its last report takes its counts with it.
      const more = (value: number, former: number): number => Math.max(0, value - former)
      return [upstream, { all: more(all, before.all), failed: more(failed, before.failed) }]
    }),
  )
}
