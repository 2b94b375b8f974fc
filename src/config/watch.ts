/**
 * Keeps the configuration in force and takes a changed file over while the process runs: a new
 * generation, or a refusal that leaves the old one in force.
 * Knows nothing of who uses it, and counts no metric: listeners do.
 */
import { watch, type FSWatcher } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Snapshot } from './config.js'
import { loadConfig, readText, type ConfigSources, type Env } from './load.js'
import { formatProblem, type ConfigProblem } from './problem.js'
import { changesBetween, createSnapshot } from './snapshot.js'

/** What a look at the files came to. */
export type ReloadOutcome =
  | { readonly result: 'applied'; readonly snapshot: Snapshot }
  | { readonly result: 'unchanged'; readonly snapshot: Snapshot }
  | { readonly result: 'refused'; readonly errors: readonly ConfigProblem[] }

/** A change that listeners hear of: `unchanged` is none. */
export type ConfigChange = Exclude<ReloadOutcome, { result: 'unchanged' }>

/** The configuration of a running process. */
export interface ConfigSource {
  /** The generation in force. A request takes it once and keeps it. */
  current(): Snapshot
  /** Why the newest files are not in force; null where they are. */
  readonly lastError: readonly ConfigProblem[] | null
  /** Calls back on each applied or refused change; returns a function that stops it. */
  subscribe(listener: (change: ConfigChange) => void): () => void
  /** Looks at the files now (SIGHUP). Calls that come close together share one look. */
  reload(): Promise<ReloadOutcome>
  /** Stops watching. The generation in force stays readable. */
  close(): Promise<void>
}

/** The first load failed: there is no generation to run with. */
export class ConfigRefused extends Error {
  readonly problems: readonly ConfigProblem[]

  constructor(problems: readonly ConfigProblem[]) {
    super(`the configuration is refused\n${problems.map(formatProblem).join('\n')}`)
    this.name = 'ConfigRefused'
    this.problems = problems
  }
}

/** Quiet time after a change before the files are read: editors write in several steps. */
const DEBOUNCE_MS = 200
/** A change is looked at after this time even if more follow. */
const MAX_DEBOUNCE_MS = 600
/** Explicit reloads look at the files at most once in this time. */
const RELOAD_INTERVAL_MS = 100
/** For file systems that report no events (network and some container mounts). */
const POLL_MS = 500

/** Loads the file and watches it. Rejects with `ConfigRefused` where the first load fails. */
export async function openConfig(path: string, env: Env): Promise<ConfigSource> {
  const first = loadConfig(path, env)
  if (!first.ok) throw new ConfigRefused(first.errors)
  const snapshot = createSnapshot(first, 1, Date.now())
  const watched = new WatchedConfig(env, snapshot, first.sources)
  await watched.arm()
  return watched
}

class WatchedConfig implements ConfigSource {
  private readonly env: Env
  private snapshot: Snapshot
  private inForce: ConfigSources
  /** The files as last looked at, good or bad. */
  private seen: ConfigSources
  private errors: readonly ConfigProblem[] | null = null
  private readonly listeners = new Set<(change: ConfigChange) => void>()
  private watchers: FSWatcher[] = []
  private readonly poll: NodeJS.Timeout
  private signature = ''
  private debounce: NodeJS.Timeout | null = null
  private firstEventAtMs = 0
  /** A look that has been asked for and has not begun to read; later calls may share it. */
  private waiting: Promise<ReloadOutcome> | null = null
  /** The look that reads now, if any: one at a time. */
  private reading: Promise<unknown> = Promise.resolve()
  private lastLookAtMs = 0
  private arming: Promise<void> = Promise.resolve()
  private closed = false

  constructor(env: Env, snapshot: Snapshot, sources: ConfigSources) {
    this.env = env
    this.snapshot = snapshot
    this.inForce = sources
    this.seen = sources
    this.poll = setInterval(() => void this.compareSignature(), POLL_MS)
    this.poll.unref()
  }

  get lastError(): readonly ConfigProblem[] | null {
    return this.errors
  }

  current(): Snapshot {
    return this.snapshot
  }

  subscribe(listener: (change: ConfigChange) => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  reload(): Promise<ReloadOutcome> {
    this.waiting ??= this.queueLook()
    return this.waiting
  }

  async close(): Promise<void> {
    this.closed = true
    clearInterval(this.poll)
    if (this.debounce !== null) clearTimeout(this.debounce)
    await this.reading.catch(() => null)
    await this.arming
    for (const watcher of this.watchers) watcher.close()
    this.watchers = []
    this.listeners.clear()
  }

  /** Watches the folders of all files anew, following links. */
  async arm(): Promise<void> {
    this.arming = this.rearm()
    await this.arming
  }

  private async rearm(): Promise<void> {
    const before = this.watchers
    const files = filesOf(this.seen)
    const folders = new Set<string>()
    for (const file of files) {
      folders.add(dirname(file))
      const real = await realpath(file).catch(() => null)
      if (real !== null) folders.add(dirname(real))
    }
    const opened: FSWatcher[] = []
    for (const folder of folders) {
      const watcher = this.watchFolder(folder)
      if (watcher !== null) opened.push(watcher)
    }
    this.watchers = opened
    for (const watcher of before) watcher.close()
  }

  private watchFolder(folder: string): FSWatcher | null {
    try {
      const watcher = watch(folder, { persistent: false }, () => this.changed())
      watcher.on('error', () => watcher.close())
      return watcher
    } catch {
      // No such folder, or no watches left on this machine: the poll sees the change instead.
      return null
    }
  }

  private async compareSignature(): Promise<void> {
    const signature = await signatureOf(filesOf(this.seen))
    if (signature === this.signature || this.closed) return
    this.signature = signature
    this.changed()
  }

  private changed(): void {
    if (this.closed) return
    const now = Date.now()
    if (this.debounce === null) this.firstEventAtMs = now
    else clearTimeout(this.debounce)
    const left = this.firstEventAtMs + MAX_DEBOUNCE_MS - now
    this.debounce = setTimeout(
      () => {
        this.debounce = null
        void this.reload()
      },
      Math.max(0, Math.min(DEBOUNCE_MS, left)),
    )
    this.debounce.unref()
  }

  private async queueLook(): Promise<ReloadOutcome> {
    // A look that failed has told its own caller.
    await this.reading.catch(() => null)
    const wait = this.lastLookAtMs + RELOAD_INTERVAL_MS - Date.now()
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
    this.lastLookAtMs = Date.now()
    this.waiting = null
    const reading = this.lookIfChanged()
    this.reading = reading
    return reading
  }

  private async lookIfChanged(): Promise<ReloadOutcome> {
    // Noted before the files are read: what changes while they are is then seen by the poll.
    this.signature = await signatureOf(filesOf(this.seen))
    const same = isSame(this.seen)
    if (same || this.closed) return this.standing()
    const outcome = this.look()
    await this.arm()
    return outcome
  }

  /** What is so when nothing has changed since the last look. */
  private standing(): ReloadOutcome {
    return this.errors === null
      ? { result: 'unchanged', snapshot: this.snapshot }
      : { result: 'refused', errors: this.errors }
  }

  private look(): ReloadOutcome {
    const loaded = loadConfig(this.seen.path, this.env)
    this.seen = loaded.sources
    if (!loaded.ok) {
      this.errors = loaded.errors
      return this.tell({ result: 'refused', errors: loaded.errors })
    }
    this.errors = null
    if (equalSources(loaded.sources, this.inForce)) return this.standing()
    this.inForce = loaded.sources
    const { generation, config } = this.snapshot
    const changes = changesBetween(config, loaded.config)
    this.snapshot = createSnapshot(loaded, generation + 1, Date.now(), changes)
    return this.tell({ result: 'applied', snapshot: this.snapshot })
  }

  private tell(change: ConfigChange): ConfigChange {
    for (const listener of [...this.listeners]) listener(change)
    return change
  }
}

function filesOf(sources: ConfigSources): string[] {
  return [sources.path, ...Object.keys(sources.files)]
}

function equalSources(a: ConfigSources, b: ConfigSources): boolean {
  const names = Object.keys(a.files)
  return (
    a.text === b.text &&
    names.length === Object.keys(b.files).length &&
    names.every((name) => a.files[name] === b.files[name])
  )
}

/** Whether the files still hold what was read: nothing is parsed when nothing has changed. */
function isSame(sources: ConfigSources): boolean {
  // A missing file was noted as an empty one.
  if ((readText(sources.path) ?? '') !== sources.text) return false
  return Object.entries(sources.files).every(([file, text]) => readText(file) === text)
}

async function signatureOf(files: readonly string[]): Promise<string> {
  const parts = files.map(async (file) => {
    const state = await stat(file).catch(() => null)
    return state === null ? '-' : `${state.dev}:${state.ino}:${state.size}:${state.mtimeMs}`
  })
  return (await Promise.all(parts)).join(' ')
}
