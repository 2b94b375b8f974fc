/** Measures the event loop delay, the heap and the open files of this process. */
import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { monitorEventLoopDelay, type IntervalHistogram } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { Readings } from './overload-levels.js'

/** The histogram measures the time between two of its timers, this time included. */
const RESOLUTION_MS = 10
/** Interval for counting open files, which costs more than the other readings. */
const FILES_EVERY_MS = 1_000
const FILES = '/proc/self/fd'

/** Holds a timer until `close`. */
export class ProcessReadings {
  private readonly delays: IntervalHistogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  private readonly maxFiles = fileLimit()
  private openFiles = 0
  private countedMs = Number.NEGATIVE_INFINITY

  constructor() {
    this.delays.enable()
  }

  /** Returns the readings since the last call. */
  read(inFlight: number): Readings {
    const delayMs = Math.max(0, this.delays.percentile(99) / 1e6 - RESOLUTION_MS)
    this.delays.reset()
    this.countFiles()
    const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics()
    return {
      delayMs,
      heapShare: used / limit,
      openFilesShare: this.maxFiles === null ? null : this.openFiles / this.maxFiles,
      inFlight,
    }
  }

  close(): void {
    this.delays.disable()
  }

  private countFiles(): void {
    const nowMs = performance.now()
    if (this.maxFiles === null || nowMs - this.countedMs < FILES_EVERY_MS) return
    this.countedMs = nowMs
    readdir(FILES).then(
      (files) => (this.openFiles = files.length),
      // Listing the folder needs a file descriptor itself, and none was left.
      (error: unknown) => {
        const isFull = error instanceof Error && 'code' in error && error.code === 'EMFILE'
        if (isFull) this.openFiles = this.maxFiles ?? 0
      },
    )
  }
}

/** The soft limit of open files; null if the system does not report it. */
function fileLimit(): number | null {
  try {
    const maxFiles = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
    return maxFiles === undefined ? null : Number(maxFiles)
  } catch {
    return null
  }
}
