/**
 * A simulated week of two gateways as input of `promtool test rules`: traffic by time of day, and the noise
 * of a healthy service. Samples are 15 s apart, the longest interval for which the alerts' times hold.
 */
import { dice } from '../helpers/seeded-random.js'

/** Seconds between two samples. */
export const STEP = 15
const DAY = 86_400
/** Samples of the week. */
const SAMPLES = (7 * DAY) / STEP
/** Samples after the week, in which one provider fails. */
const FAILING = 12

const GATEWAYS = ['a', 'b']
const UPSTREAMS = ['openai', 'anthropic']

/** A series of promtool. */
export interface InputSeries {
  readonly series: string
  readonly values: string
}

/** Values of one series, one for each sample. */
class Samples {
  private readonly values = new Map<string, number[]>()

  /** Adds to a counter, which keeps its value until then. */
  add(series: string, at: number, count: number): void {
    this.set(series, at, (this.values.get(series)?.at(-1) ?? 0) + count)
  }

  set(series: string, at: number, value: number): void {
    const values = this.values.get(series) ?? []
    this.values.set(series, values)
    const last = values.at(-1) ?? 0
    while (values.length < at) values.push(last)
    values[at] = value
  }

  /** A process starts: its counters begin at 0. */
  reset(instance: string, at: number): void {
    for (const series of this.values.keys()) {
      if (series.includes(`instance="${instance}"`) && !series.startsWith('up')) {
        this.set(series, at, 0)
      }
    }
  }

  /** Every `every`th sample of the series with these names, after `days` days. */
  series(names: RegExp, days: number, every: number): InputSeries[] {
    const from = (days * DAY) / STEP
    const isTaken = (_: number, at: number): boolean => at >= from && at % every === 0
    return [...this.values].flatMap(([series, values]) =>
      names.test(series) ? { series, values: values.filter(isTaken).join(' ') } : [],
    )
  }
}

/** The week, and after it three minutes in which every attempt at openai fails. */
export function simulatedWeek(): Samples {
  const samples = new Samples()
  const random = dice(7)
  for (let at = 0; at < SAMPLES + FAILING; at += 1) {
    for (const gateway of GATEWAYS) {
      const restarts = isDeploy(at, gateway)
      if (restarts) samples.reset(gateway, at)
      samples.set(`up{job="sluice",instance="${gateway}"}`, at, restarts ? 0 : 1)
      if (restarts) continue
      sampleStore(samples, { at, gateway, random })
      for (const upstream of UPSTREAMS) sampleUpstream(samples, { at, gateway, upstream, random })
    }
  }
  return samples
}

/** Every day one gateway after the other is away for 45 s. */
function isDeploy(at: number, gateway: string): boolean {
  const second = (at * STEP) % DAY
  const from = gateway === 'a' ? 50_400 : 50_520
  return second >= from && second < from + 45
}

interface Moment {
  readonly at: number
  readonly gateway: string
  readonly random: () => number
}

/** Single errors, and on the last day a failover of 15 s in which all operations fail. */
function sampleStore(samples: Samples, { at, gateway, random }: Moment): void {
  const isFailover = at === Math.round((6.4 * DAY) / STEP)
  const single = random() < 0.001 ? 1 : 0
  const errors = (op: string): string => `sluice_store_errors_total{instance="${gateway}",op="${op}"}`
  const count = (op: string): string =>
    `sluice_store_duration_seconds_count{instance="${gateway}",op="${op}"}`
  samples.add(count('probe'), at, 15)
  samples.add(count('admit'), at, 60)
  samples.add(errors('probe'), at, isFailover ? 15 : single)
  samples.add(errors('admit'), at, isFailover ? 60 : 0)
}

function sampleUpstream(
  samples: Samples,
  { at, gateway, upstream, random }: Moment & { readonly upstream: string },
): void {
  const second = at * STEP
  const requests = requestsAt(second, random)
  const isDown = at >= SAMPLES && upstream === 'openai'
  // A provider fails for half of the attempts of 15 s, three times a day.
  const isBlip = second % (8 * 3_600) === 7_215 && upstream === 'openai'
  const share = isDown ? 1 : isBlip ? 0.5 : 0.0005
  let failed = 0
  for (let each = 0; each < requests; each += 1) if (random() < share) failed += 1
  // One request in some hours fails on each of its three attempts.
  const isUnlucky = random() < 0.001
  const failedAttempts = failed + (isUnlucky ? 3 : 0)
  const failedRequests = (isDown ? failed : Math.floor(failed / 10)) + (isUnlucky ? 1 : 0)
  const left = random() < 0.05 ? 1 : 0
  const labels = `instance="${gateway}",upstream="${upstream}"`
  const attempts = (kind: string): string => `sluice_attempts_total{${labels},kind="${kind}"}`
  samples.add(attempts('ok'), at, requests - failed)
  samples.add(attempts('upstream_failed'), at, failedAttempts)
  samples.add(attempts('client_gone'), at, left)
  const replies = (outcome: string): string => `sluice_requests_total{${labels},outcome="${outcome}"}`
  samples.add(replies('ok'), at, requests - failedRequests)
  samples.add(replies('upstream_failed'), at, failedRequests)
  samples.set(`sluice_breaker_state{${labels}}`, at, isBlip || isDown ? 2 : 0)
  const ends = (end: string): string => `sluice_stream_ends_total{${labels},end="${end}"}`
  samples.add(ends('complete'), at, requests - failedRequests)
  samples.add(ends('truncated'), at, random() < 0.01 ? 1 : 0)
  // On the sixth day a provider is slow for an hour.
  const isSlow = second >= 5.5 * DAY && second < 5.5 * DAY + 3_600
  const late = Math.round(requests * (isSlow ? 0.9 : 0.01))
  const first = (name: string): string => `gen_ai_server_time_to_first_token_seconds_${name}`
  samples.add(`${first('bucket')}{${labels},le="5"}`, at, requests - late)
  samples.add(`${first('count')}{${labels}}`, at, requests)
}

/** From one request in two minutes at night to three a second at noon, when the week begins and ends. */
function requestsAt(second: number, random: () => number): number {
  const ofDay = (1 + Math.cos((2 * Math.PI * (second % DAY)) / DAY)) / 2
  const expected = 0.125 + 45 * ofDay ** 2
  return Math.floor(expected) + (random() < expected % 1 ? 1 : 0)
}
