/**
 * Reports that files may have changed: replaced, edited in place, or swapped behind a symbolic link as
 * Kubernetes does. The caller compares the contents. File systems without events are polled.
 */
import { watch, statSync, type FSWatcher } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { readText } from '../load-config.js'

/** For file systems that report no events (network and some container mounts). */
const POLL_MS = 500

/** Watches files, existing or not, until `close`. Timers and watchers do not keep the process running. */
export class FileWatcher {
  private readonly onChange: () => void
  private files: readonly string[] = []
  private watchers: FSWatcher[] = []
  private signature = ''
  private arming: Promise<void> = Promise.resolve()
  private readonly poll: NodeJS.Timeout
  private closed = false

  /** `onChange` may be called without a change of content, and more than once for one change. */
  constructor(onChange: () => void) {
    this.onChange = onChange
    this.poll = setInterval(() => void this.compare(), POLL_MS)
    this.poll.unref()
  }

  /**
   * Records the current state of the files; the poll reports later changes. Call it before the files are
   * read.
   */
  async note(files: readonly string[]): Promise<void> {
    this.files = files
    this.signature = await signatureOf(files)
  }

  /** Replaces the watched files: watches their folders, and those of the files that links lead to. */
  async watch(files: readonly string[]): Promise<void> {
    this.files = files
    this.arming = this.rearm(files)
    await this.arming
  }

  async close(): Promise<void> {
    this.closed = true
    clearInterval(this.poll)
    await this.arming
    for (const watcher of this.watchers) watcher.close()
    this.watchers = []
  }

  private async rearm(files: readonly string[]): Promise<void> {
    const before = this.watchers
    const folders = new Set<string>()
    for (const file of files) {
      folders.add(dirname(file))
      const real = await realpath(file).catch(() => null)
      if (real !== null) folders.add(dirname(real))
    }
    this.watchers = [...folders].flatMap((folder) => this.watchFolder(folder))
    for (const watcher of before) watcher.close()
  }

  private watchFolder(folder: string): FSWatcher[] {
    try {
      const watcher = watch(folder, { persistent: false }, () => this.changed())
      watcher.on('error', () => watcher.close())
      return [watcher]
    } catch {
      // The folder does not exist, or the system has no watches left: the poll reports the change.
      return []
    }
  }

  private async compare(): Promise<void> {
    const { files } = this
    const signature = await signatureOf(files)
    if (files !== this.files || signature === this.signature) return
    this.signature = signature
    this.changed()
  }

  private changed(): void {
    if (!this.closed) this.onChange()
  }
}

async function signatureOf(files: readonly string[]): Promise<string> {
  const parts = files.map(async (file) => {
    const state = await stat(file).catch(() => null)
    return state === null ? '-' : `${state.dev}:${state.ino}:${state.size}:${state.mtimeMs}`
  })
  return (await Promise.all(parts)).join(' ')
}

/** Quiet time after a change before the files are read: editors write in several steps. */
const DEBOUNCE_MS = 200
/** Maximum delay of the call while reports continue. */
const MAX_DEBOUNCE_MS = 600
/** Calls `act` when no report has arrived for a moment. The timer does not keep the process running. */
export class Debounce {
  private readonly act: () => void
  private timer: NodeJS.Timeout | null = null
  private firstAtMs = 0
  private closed = false

  constructor(act: () => void) {
    this.act = act
  }

  /** Reports that something may have changed. */
  touch(): void {
    if (this.closed) return
    const nowMs = Date.now()
    if (this.timer === null) this.firstAtMs = nowMs
    else clearTimeout(this.timer)
    const leftMs = this.firstAtMs + MAX_DEBOUNCE_MS - nowMs
    const due = (): void => {
      this.timer = null
      this.act()
    }
    this.timer = setTimeout(due, Math.max(0, Math.min(DEBOUNCE_MS, leftMs)))
    this.timer.unref()
  }

  close(): void {
    this.closed = true
    if (this.timer !== null) clearTimeout(this.timer)
  }
}

/** A file is read when it has not changed for this time. */
const QUIET_MS = 50
/** The same for a file that looks incomplete. */
const QUIET_IF_CUT_MS = 700
/** A file that changes continuously is read after this time. */
const MAX_WAIT_MS = 2_000

/**
 * Resolves when the files have stopped changing, or after two seconds, so that a partial edit is not loaded.
 * YAML has no end mark: the first half of a file may be valid YAML with fewer routes. `before` maps each path
 * to its last text.
 */
export async function untilWritten(before: ReadonlyMap<string, string>): Promise<void> {
  const deadlineMs = Date.now() + MAX_WAIT_MS
  for (;;) {
    const waitMs = Math.max(0, ...[...before].map(([path, text]) => remainingMs(path, text)))
    if (waitMs === 0 || Date.now() + waitMs > deadlineMs) return
    await delay(waitMs)
  }
}

function remainingMs(path: string, before: string): number {
  const changedAtMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs
  if (changedAtMs === undefined) return 0
  const ageMs = Date.now() - changedAtMs
  // The clock of a file server may be ahead of this one.
  if (ageMs < -QUIET_MS || ageMs >= QUIET_IF_CUT_MS) return 0
  const text = readText(path)
  const quietMs = text !== null && looksCut(text, before) ? QUIET_IF_CUT_MS : QUIET_MS
  return Math.max(0, Math.ceil(quietMs - ageMs))
}

/**
 * Whether the text may be incomplete: it is the start of the previous text, or lacks its final line break.
 */
function looksCut(text: string, before: string): boolean {
  if (text === '') return true
  if (text.length < before.length && before.startsWith(text)) return true
  return before.endsWith('\n') && !text.endsWith('\n')
}
