/**
 * The configuration of a running gateway: the generation in force and its successors, which come from changed
 * files, from a rollback or, if the file is broken at the start, from the history. Listeners write logs and
 * metrics.
 */
import { basename } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { authorOf } from './author.js'
import type { Config, SettingChange, Snapshot } from '../config.js'
import { createSnapshot } from '../create-snapshot.js'
import { hashOf, loadConfig, readText, type ConfigSources, type Env, type Loaded } from '../load-config.js'
import { shownConfig } from '../masked-config.js'
import { problemOfFile, type ConfigProblem } from '../config-problem.js'
import { differencesOf, inForce, needsRestart } from './diff-configs.js'
import { contentOf, type Author, type GenerationRecord, type History } from './history.js'
import { announceRunning, removeRunning, type RunningGateway } from './running-gateway-file.js'
import { Debounce, untilWritten, FileWatcher } from './watch-files.js'

type Ops = Pick<RunningGateway, 'opsHost' | 'opsPort'>

/** The generation whose values are in force for settings that need a restart. */
interface Started {
  readonly config: Config
  readonly generation: number
}

/** Minimum time between two checks of the files. */
const CHECK_INTERVAL_MS = 100

/** The configuration of a running process; `config-at-start.ts` opens it. */
export class ConfigSource {
  readonly history: History
  readonly path: string
  private readonly env: Env
  private readonly listeners = new Set<(change: ConfigChange) => void>()
  private readonly debounce = new Debounce(() => void this.reload())
  private readonly watcher = new FileWatcher(() => this.debounce.touch())
  private snapshot: Snapshot
  private started: Started
  /** The newest values, including those that wait for a restart. */
  private latest: Config
  /** The texts that the generation in force was built from. */
  private inForceSources: Loaded['sources']
  /** The files at the last check, valid or not. */
  private lastFiles: ConfigSources
  private errors: readonly ConfigProblem[] | null
  private activeOverride: Override | null
  private ops: Ops | null = null
  private validate: (snapshot: Snapshot) => Promise<string | null> = () => Promise.resolve(null)
  /** A check that has not started to read yet; later calls share it. */
  private waiting: Promise<ReloadOutcome> | null = null
  private takesFiles = false
  private working: Promise<unknown> = Promise.resolve()
  private lastCheckAtMs = 0
  private closed = false

  constructor(
    path: string,
    env: Env,
    { loaded, files: seen, errors, override, record, history, changes = null }: InitialState,
  ) {
    this.path = path
    this.env = env
    this.history = history
    this.latest = loaded.config
    const { generation, atMs: loadedAtMs } = record
    this.started = { config: loaded.config, generation }
    const { author, reason } = record
    const made = changes === null ? {} : { changes, toRecord: { author, reason, contentOf: null } }
    this.snapshot = createSnapshot(loaded, { generation, loadedAtMs, ...made })
    this.inForceSources = loaded.sources
    this.lastFiles = seen
    this.errors = errors
    this.activeOverride = override
    history.protect(record.generation)
    if (history.find(record.generation) === null)
      history.add(record, contentOf(this.inForceSources, this.latest))
  }

  /** The generation in force. A request reads it once and keeps it. */
  current(): Snapshot {
    return this.snapshot
  }

  /** The generation whose values are in force for settings that need a restart: port, workers, store. */
  get startedGeneration(): number {
    return this.started.generation
  }

  /** The problems of the files; null if they are valid. */
  get lastError(): readonly ConfigProblem[] | null {
    return this.errors
  }

  /**
   * Why the generation in force does not have the content of the files; null if only a later change was
   * refused.
   */
  get override(): Override | null {
    return this.activeOverride
  }

  /** Calls the listener for each applied or refused change; returns a function that unsubscribes it. */
  subscribe(listener: (change: ConfigChange) => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /**
   * Tests each generation from now on before it is in force; a text refuses it and is reported as the reason.
   */
  validateWith(validate: (snapshot: Snapshot) => Promise<string | null>): void {
    this.validate = validate
  }

  /**
   * Checks the files now. Concurrent calls share one check. With `takeFiles` (SIGHUP), the files replace
   * content that a rollback put in force.
   */
  reload({ takeFiles = false } = {}): Promise<ReloadOutcome> {
    this.takesFiles ||= takeFiles
    this.waiting ??= this.queueCheck()
    return this.waiting
  }

  /**
   * Puts the content of an earlier generation in force, as a new one, until the files change or `takeFiles`.
   * `isRecorded`: the caller writes the audit entry.
   */
  rollBack(generation: number, by: Author, isRecorded = false): Promise<RollbackOutcome> {
    return this.inTurn(async () => {
      if (generation === this.snapshot.generation) return { result: 'current' }
      if (this.history.find(generation) === null) return { result: 'unknown' }
      const content = await this.history.content(generation)
      if (content === null) return { result: 'unreadable' }
      const loaded = loadConfig(this.path, this.env, content)
      if (!loaded.ok) return { result: 'refused', errors: loaded.errors }
      const from = { origin: 'rollback', contentOf: generation } as const
      const outcome = await this.adopt(loaded, by, from, isRecorded)
      if (outcome.result !== 'applied') return outcome
      this.activeOverride = hashOf(this.inForceSources) === hashOf(this.lastFiles) ? null : 'rollback'
      await this.watcher.watch(watchedFiles(this.lastFiles, this.inForceSources))
      return outcome
    })
  }

  /**
   * Puts the values that wait for a restart in force, in the same generation: the caller restarts the parts
   * that use them. Returns a function that reverts this if the restart failed.
   */
  takeWaiting(): () => void {
    const former = this.started
    this.startWith({ config: this.latest, generation: this.snapshot.generation })
    return () => this.startWith(former)
  }

  /** Publishes the ops port, so that commands find this gateway. Call it again when the port changes. */
  announce(ops: Ops): Promise<void> {
    this.ops = ops
    const startedGeneration = this.started.generation
    return announceRunning(this.history.folder, { pid: process.pid, ...ops, startedGeneration })
  }

  /** Starts watching the files; resolves when the first generation is written. */
  async watch(): Promise<void> {
    await this.history.flushedSoon()
    await this.watcher.note(watchedFiles(this.lastFiles, this.inForceSources))
    await this.watcher.watch(watchedFiles(this.lastFiles, this.inForceSources))
  }

  /** Stops watching, and resolves when the history is written. The generation in force stays readable. */
  async close(): Promise<void> {
    this.closed = true
    this.debounce.close()
    await this.working.catch(() => null)
    await this.watcher.close()
    await this.history.flushed()
    this.listeners.clear()
    if (this.history.folder !== null) await removeRunning(this.history.folder)
  }

  private startWith(started: Started): void {
    this.started = started
    if (this.ops !== null) void this.announce(this.ops)
    this.history.protect(started.generation)
    const { generation, loadedAtMs, changes, toRecord } = this.snapshot
    const parts = { ...this.snapshot, config: inForce(started.config, this.latest) }
    const waitingForRestart = needsRestart(started.config, this.latest)
    this.snapshot = createSnapshot(parts, { generation, loadedAtMs, changes, toRecord, waitingForRestart })
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    // The caller of failed work has received the error.
    const done = this.working.catch(() => null).then(work)
    this.working = done
    return done
  }

  private async queueCheck(): Promise<ReloadOutcome> {
    const waitMs = this.lastCheckAtMs + CHECK_INTERVAL_MS - Date.now()
    if (waitMs > 0) await delay(waitMs)
    return this.inTurn(() => {
      this.waiting = null
      this.lastCheckAtMs = Date.now()
      const takeFiles = this.takesFiles
      this.takesFiles = false
      return this.checkIfChanged(takeFiles)
    })
  }

  private async checkIfChanged(takeFiles: boolean): Promise<ReloadOutcome> {
    // Noted before the files are read, so that the poll reports changes during the read.
    await this.watcher.note(watchedFiles(this.lastFiles, this.inForceSources))
    const isDue = takeFiles && this.activeOverride !== null
    if (this.closed || (!isDue && isSame(this.lastFiles) && hasSameSecrets(this.inForceSources))) {
      return this.currentOutcome()
    }
    await untilWritten(textsOf(this.lastFiles))
    const outcome = await this.check(takeFiles)
    await this.watcher.watch(watchedFiles(this.lastFiles, this.inForceSources))
    return outcome
  }

  /** The outcome if nothing has changed since the last check. */
  private currentOutcome(): ReloadOutcome {
    return this.errors === null
      ? { result: 'unchanged', snapshot: this.snapshot }
      : { result: 'refused', errors: this.errors }
  }

  private async check(takeFiles: boolean): Promise<ReloadOutcome> {
    const former = this.lastFiles
    const loaded = loadConfig(this.path, this.env)
    this.lastFiles = loaded.sources
    this.errors = loaded.ok ? null : loaded.errors
    const newest = this.history.list()[0]
    const isSameFile = newest !== undefined && hashOf(loaded.sources) === newest.filesHash
    if (this.activeOverride === 'rollback' && isSameFile && !takeFiles) {
      return (await this.refresh()) ?? this.currentOutcome()
    }
    if (!loaded.ok) {
      await this.refresh()
      return this.notify({ result: 'refused', errors: loaded.errors })
    }
    if (isEqual(loaded.sources, this.inForceSources)) {
      this.activeOverride = null
      return this.currentOutcome()
    }
    const outcome = await this.adopt(loaded, changeOf(former, loaded.sources))
    if (outcome.result === 'applied') this.activeOverride = null
    else this.errors = outcome.errors
    return outcome
  }

  /** Reads secrets again while a rollback is in force; null if they have not changed. */
  private async refresh(): Promise<ReloadOutcome | null> {
    const former = this.inForceSources
    if (hasSameSecrets(former)) return null
    const { text, catalogue } = former
    const loaded = loadConfig(this.path, this.env, { text, catalogue: catalogue.text })
    return loaded.ok ? this.adopt(loaded, changeOf(former, loaded.sources)) : null
  }

  private async adopt(
    loaded: Loaded,
    by: Author,
    from: Pick<GenerationRecord, 'origin' | 'contentOf'> = { origin: 'change', contentOf: null },
    isRecorded = false,
  ): Promise<ConfigChange> {
    const newest = this.history.list()[0]?.generation ?? 0
    const generation = Math.max(newest, this.snapshot.generation) + 1
    const loadedAtMs = Date.now()
    const changes = differencesOf(shownConfig(this.latest), shownConfig(loaded.config))
    const waitingForRestart = needsRestart(this.started.config, loaded.config)
    const parts = { ...loaded, config: inForce(this.started.config, loaded.config) }
    const toRecord = isRecorded ? null : { ...by, contentOf: from.contentOf }
    const snapshot = createSnapshot(parts, { generation, loadedAtMs, changes, toRecord, waitingForRestart })
    const fault = await this.validate(snapshot)
    if (fault !== null) {
      return this.notify({ result: 'refused', errors: [problemOfFile(this.path, fault)] })
    }
    this.latest = loaded.config
    this.inForceSources = loaded.sources
    const hashes = { hash: hashOf(this.inForceSources), filesHash: hashOf(this.lastFiles) }
    this.history.add(
      { generation, atMs: loadedAtMs, ...hashes, ...by, ...from },
      contentOf(this.inForceSources, this.latest),
    )
    // After a kill, the process can start again from the generation that requests already use.
    await this.history.flushedSoon()
    this.snapshot = snapshot
    return this.notify({ result: 'applied', snapshot })
  }

  private notify(change: ConfigChange): ConfigChange {
    for (const listener of [...this.listeners]) listener(change)
    return change
  }
}

/** The outcome of a check of the files. */
type ReloadOutcome =
  | { readonly result: 'applied'; readonly snapshot: Snapshot }
  | { readonly result: 'unchanged'; readonly snapshot: Snapshot }
  | { readonly result: 'refused'; readonly errors: readonly ConfigProblem[] }

/** A change that listeners are called for. */
export type ConfigChange = Exclude<ReloadOutcome, { result: 'unchanged' }>

/**
 * The outcome of a rollback. `unknown`: no such generation. `unreadable`: its content is lost. `current`: it
 * is in force.
 */
type RollbackOutcome = ConfigChange | { readonly result: 'unknown' | 'unreadable' | 'current' }

/** Why the generation in force does not have the content of the files. */
export type Override = 'rollback' | 'last_good'

/** The initial state of a source; `config-at-start.ts` finds it. */
export interface InitialState {
  readonly loaded: Loaded
  /** The files, valid or not. */
  readonly files: ConfigSources
  readonly errors: readonly ConfigProblem[] | null
  readonly override: Override | null
  readonly record: GenerationRecord
  readonly history: History
  /** How the record, if it is new, differs from the generation before it; absent: it is not, or the first. */
  readonly changes?: readonly SettingChange[] | null
}

/** All files of a configuration, absolute. */
function filesOf({ path, files }: ConfigSources): string[] {
  return [path, ...Object.keys(files)]
}

/** The files whose changes may lead to a new generation: those read last, and those that are in force. */
function watchedFiles(last: ConfigSources, inForce: ConfigSources): string[] {
  return [...new Set([...filesOf(last), ...filesOf(inForce)])]
}

/** Whether the files are unchanged; avoids parsing them. */
function isSame(sources: ConfigSources): boolean {
  // A missing file counts as an empty one.
  if ((readText(sources.path) ?? '') !== sources.text) return false
  return Object.entries(sources.files).every(([file, text]) => readText(file) === text)
}

/** Whether the files other than the configuration and its catalogue are unchanged. */
function hasSameSecrets({ files, catalogue }: ConfigSources): boolean {
  return Object.entries(files).every(([file, text]) => file === catalogue?.path || readText(file) === text)
}

/** Whether two generations were built from the same texts. */
function isEqual(a: ConfigSources, b: ConfigSources): boolean {
  const names = Object.keys(a.files)
  return (
    a.text === b.text &&
    names.length === Object.keys(b.files).length &&
    names.every((name) => a.files[name] === b.files[name])
  )
}

/** The texts of the configuration and its catalogue, by path. */
function textsOf({ path, text, catalogue }: ConfigSources): Map<string, string> {
  const texts = new Map([[path, text]])
  if (catalogue !== null) texts.set(catalogue.path, catalogue.text)
  return texts
}

/** The author of the differences between two versions of the files, and the files that differ. */
function changeOf(former: ConfigSources, next: ConfigSources): Author {
  const files = new Set([...filesOf(former), ...filesOf(next)])
  const changed = [...files].filter((file) => textIn(former, file) !== textIn(next, file))
  const [first] = changed
  if (first === undefined) {
    return { author: authorOf(next.path, next.text), reason: 'files reloaded after SIGHUP' }
  }
  const names = [...new Set(changed.map((file) => basename(file)))].join(', ')
  return { author: authorOf(first, textIn(next, first) ?? ''), reason: `${names} changed` }
}

function textIn({ path, text, files }: ConfigSources, file: string): string | null {
  return file === path ? text : (files[file] ?? null)
}
