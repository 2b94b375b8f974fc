/** Runs the overload control of a process: takes its readings with a timer. */
import type { OverloadConfig } from '../../config/config.js'
import type { Logger } from '../../observe/log/log.js'
import type { Metrics } from '../../observe/metrics/metrics.js'
import { Overload, SAMPLE_MS } from './overload.js'
import { ProcessReadings } from './process-readings.js'

/** The services and settings of the process that the control uses. */
export interface MonitorOptions {
  readonly settings: () => OverloadConfig
  readonly inFlight: () => number
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly metrics: Pick<Metrics, 'overloadLevel' | 'shed'>
}

/** Holds timers until `close`; they do not keep the process running. */
export class OverloadMonitor {
  readonly overload: Overload
  private readonly gauges = new ProcessReadings()
  private readonly timer: NodeJS.Timeout

  constructor({ settings, inFlight, log, metrics }: MonitorOptions) {
    this.overload = new Overload({
      settings,
      inFlight,
      log,
      read: (requests) => this.gauges.read(requests),
      now: () => performance.now(),
      random: Math.random,
      onLevel: (level) => metrics.overloadLevel(level),
      onShed: (resource) => metrics.shed(resource),
    })
    this.timer = setInterval(() => this.overload.sample(), SAMPLE_MS).unref()
  }

  close(): void {
    clearInterval(this.timer)
    this.gauges.close()
  }
}
