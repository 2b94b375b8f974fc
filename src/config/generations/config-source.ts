/**
 * The configuration of a running gateway: the generation in force, and where the next one comes from: changed files, a
 * rollback, or, at a start with a broken file, the history. Counts no metric and writes no log; listeners do.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Config, Snapshot } from '../config.js'
import { hashOf, loadConfig, type ConfigSources, type Env, type Loaded } from '../load.js'
import type { ConfigProblem } from '../problem.js'
import { createSnapshot, shownConfig } from '../snapshot.js'
import { Debounce } from './debounce.js'
import { differencesOf } from './differences.js'
import type { Author, GenerationContent, GenerationRecord, History } from './history.js'
import type {
  InitialState,
  ConfigChange,
  Override,
  ReloadOutcome,
  RollbackOutcome,
} from './reload-outcome.js'
import { removeRunning, writeRunning, type RunningGateway } from './running-gateway-file.js'
import { untilWritten } from './wait-until-written.js'
import { changeOf, filesOf, hasSameSecrets, isEqual, isSame, textsOf } from './compare-sources.js'
import { inForce, needsRestart } from './values-in-force.js'
import { FileWatcher } from './watch-files.js'

type Ops = Pick<RunningGateway, 'opsHost' | 'opsPort'>

/** The generation that the values which need a restart are from. */
interface Started {
  readonly config: Config
  readonly generation: number
}

/** A slow disk does not hold up a generation for longer than this. */
const KEEP_MS = 250
/** Minimum time between two looks at the files. */
const LOOK_INTERVAL_MS = 100

/** The configuration of a running process; `open-config.ts` opens it. */
export class ConfigSource {
  /** Earlier generations, in memory or on disk. */
  readonly history: History
  /** The configuration file, absolute. */
  readonly path: string
  private readonly env: Env
  private readonly listeners = new Set<(change: ConfigChange) => void>()
  private readonly debounce = new Debounce(() => void this.reload())
  private readonly watcher = new FileWatcher(() => this.debounce.touch())
  private snapshot: Snapshot
  private started: Started
  /** As the files or the history have it, with the values that wait for a restart. */
  private wanted: Config
  /** What the generation in force was made from. */
  private taken: Loaded['sources']
  /** The files as last looked at, good or bad. */
  private seen: ConfigSources
  private errors: readonly ConfigProblem[] | null
  private holding: Override | null
  private ops: Ops | null = null
  private tryOut: (snapshot: Snapshot) => Promise<string | null> = () => Promise.resolve(null)
  /** A look that was asked for and has not begun to read; later calls share it. */
  private waiting: Promise<ReloadOutcome> | null = null
  private takesFiles = false
  /** Looks and rollbacks run one at a time. */
  private working: Promise<unknown> = Promise.resolve()
  private lastLookAtMs = 0
  private closed = false

  constructor(
    path: string,
    env: Env,
    { loaded, seen, errors, held, record, history }: InitialState,
  ) {
    this.path = path
    this.env = env
    this.history = history
    this.wanted = loaded.config
    this.started = { config: loaded.config, generation: record.generation }
    this.snapshot = createSnapshot(loaded, record.generation, record.atMs)
    this.taken = loaded.sources
    this.seen = seen
    this.errors = errors
    this.holding = held
    history.protect(record.generation)
    if (history.find(record.generation) === null) history.add(record, this.content())
  }

  /** The generation in force. A request takes it once and keeps it. */
  current(): Snapshot {
    return this.snapshot
  }

  /** The generation that the values which need a restart are from: port, workers, store. */
  get startedGeneration(): number {
    return this.started.generation
  }

  /** Why the files are not in force; null if they have no fault. */
  get lastError(): readonly ConfigProblem[] | null {
    return this.errors
  }

  /** Why the content in force is not that of the files; null if it is, or if only a later change was refused. */
  get held(): Override | null {
    return this.holding
  }

  /** Calls back for each applied or refused change; returns a function that stops it. */
  subscribe(listener: (change: ConfigChange) => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /** From now on each generation is tried before it is in force; a text refuses it and is reported as the reason. */
  tryWith(tryOut: (snapshot: Snapshot) => Promise<string | null>): void {
    this.tryOut = tryOut
  }

  /**
   * Looks at the files now. Calls that come close together share one look. With `takeFiles` (SIGHUP), the files replace
   * content that a rollback put in force.
   */
  reload({ takeFiles = false } = {}): Promise<ReloadOutcome> {
    this.takesFiles ||= takeFiles
    this.waiting ??= this.queueLook()
    return this.waiting
  }

  /** Puts the content of an earlier generation in force, as a new one, until the files change or `takeFiles`. */
  rollBack(generation: number, by: Author): Promise<RollbackOutcome> {
    return this.inTurn(async () => {
      if (generation === this.snapshot.generation) return { result: 'current' }
      if (this.history.find(generation) === null) return { result: 'unknown' }
      const content = await this.history.content(generation)
      if (content === null) return { result: 'unreadable' }
      const loaded = loadConfig(this.path, this.env, content)
      if (!loaded.ok) return { result: 'refused', errors: loaded.errors }
      const outcome = await this.adopt(loaded, by, { origin: 'rollback', contentOf: generation })
      if (outcome.result !== 'applied') return outcome
      this.holding = hashOf(this.taken) === hashOf(this.seen) ? null : 'rollback'
      await this.watcher.watch(this.watched())
      return outcome
    })
  }

  /**
   * Puts the values in force that wait for a restart, in the same generation: the caller restarts what uses them.
   * Returns a function that takes this back if the restart failed.
   */
  takeWaiting(): () => void {
    const former = this.started
    this.startWith({ config: this.wanted, generation: this.snapshot.generation })
    return () => this.startWith(former)
  }

  /** Lets commands find this gateway by its ops port. Call it again when the port changes. */
  announce(ops: Ops): Promise<void> {
    this.ops = ops
    const { folder } = this.history
    if (folder === null) return Promise.resolve()
    const { pid } = process
    return writeRunning(folder, { pid, ...ops, startedGeneration: this.started.generation }).catch(
      // The history has reported that the folder cannot be written; commands try the port of the file.
      () => undefined,
    )
  }

  /** Watches the files from now on; resolves when the first generation is kept. */
  async watch(): Promise<void> {
    await Promise.race([this.history.flushed(), delay(KEEP_MS, undefined, { ref: false })])
    await this.watcher.note(this.watched())
    await this.watcher.watch(this.watched())
  }

  /** Stops watching, and resolves when the history is on disk. The generation in force stays readable. */
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
    const { generation, loadedAtMs: atMs, changes } = this.snapshot
    const parts = { ...this.snapshot, config: inForce(started.config, this.wanted) }
    const waitingForRestart = needsRestart(started.config, this.wanted)
    this.snapshot = createSnapshot(parts, generation, atMs, { changes, waitingForRestart })
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    // Work that failed has reported it to its own caller.
    const done = this.working.catch(() => null).then(work)
    this.working = done
    return done
  }

  private watched(): string[] {
    return [...new Set([...filesOf(this.seen), ...filesOf(this.taken)])]
  }

  private async queueLook(): Promise<ReloadOutcome> {
    const waitMs = this.lastLookAtMs + LOOK_INTERVAL_MS - Date.now()
    if (waitMs > 0) await delay(waitMs)
    return this.inTurn(() => {
      this.waiting = null
      this.lastLookAtMs = Date.now()
      const takeFiles = this.takesFiles
      this.takesFiles = false
      return this.lookIfChanged(takeFiles)
    })
  }

  private async lookIfChanged(takeFiles: boolean): Promise<ReloadOutcome> {
    // Noted before the files are read: the poll reports what changes meanwhile.
    await this.watcher.note(this.watched())
    const isDue = takeFiles && this.holding !== null
    if (this.closed || (!isDue && isSame(this.seen) && hasSameSecrets(this.taken))) {
      return this.standing()
    }
    await untilWritten(textsOf(this.seen))
    const outcome = await this.look(takeFiles)
    await this.watcher.watch(this.watched())
    return outcome
  }

  /** What is reported when nothing has changed since the last look. */
  private standing(): ReloadOutcome {
    return this.errors === null
      ? { result: 'unchanged', snapshot: this.snapshot }
      : { result: 'refused', errors: this.errors }
  }

  private async look(takeFiles: boolean): Promise<ReloadOutcome> {
    const former = this.seen
    const loaded = loadConfig(this.path, this.env)
    this.seen = loaded.sources
    this.errors = loaded.ok ? null : loaded.errors
    const newest = this.history.list()[0]
    const isSameFile = newest !== undefined && hashOf(loaded.sources) === newest.filesHash
    if (this.holding === 'rollback' && isSameFile && !takeFiles) {
      return (await this.refresh()) ?? this.standing()
    }
    if (!loaded.ok) {
      await this.refresh()
      return this.tell({ result: 'refused', errors: loaded.errors })
    }
    if (isEqual(loaded.sources, this.taken)) {
      this.holding = null
      return this.standing()
    }
    const outcome = await this.adopt(loaded, changeOf(former, loaded.sources))
    if (outcome.result === 'applied') this.holding = null
    else this.errors = outcome.errors
    return outcome
  }

  /** Reads secrets again for content that is in force in place of the files; null if they have not changed. */
  private async refresh(): Promise<ReloadOutcome | null> {
    const former = this.taken
    if (hasSameSecrets(former)) return null
    const { text, catalogue } = former
    const loaded = loadConfig(this.path, this.env, { text, catalogue: catalogue.text })
    return loaded.ok ? this.adopt(loaded, changeOf(former, loaded.sources)) : null
  }

  private async adopt(
    loaded: Loaded,
    by: Author,
    from: Pick<GenerationRecord, 'origin' | 'contentOf'> = { origin: 'change', contentOf: null },
  ): Promise<ConfigChange> {
    const newest = this.history.list()[0]?.generation ?? 0
    const generation = Math.max(newest, this.snapshot.generation) + 1
    const atMs = Date.now()
    const changes = differencesOf(shownConfig(this.wanted), shownConfig(loaded.config))
    const waitingForRestart = needsRestart(this.started.config, loaded.config)
    const parts = { ...loaded, config: inForce(this.started.config, loaded.config) }
    const snapshot = createSnapshot(parts, generation, atMs, { changes, waitingForRestart })
    const fault = await this.tryOut(snapshot)
    if (fault !== null) {
      const problem = { file: this.path, line: 1, column: 1, path: '', suggestion: null }
      return this.tell({ result: 'refused', errors: [{ ...problem, message: fault }] })
    }
    this.wanted = loaded.config
    this.taken = loaded.sources
    const hashes = { hash: hashOf(this.taken), filesHash: hashOf(this.seen) }
    this.history.add({ generation, atMs, ...hashes, ...by, ...from }, this.content())
    // A process that is killed once requests are in this generation can start from it.
    await Promise.race([this.history.flushed(), delay(KEEP_MS, undefined, { ref: false })])
    this.snapshot = snapshot
    return this.tell({ result: 'applied', snapshot })
  }

  private content(): GenerationContent {
    const { text, catalogue } = this.taken
    return { text, catalogue: catalogue.text, shown: shownConfig(this.wanted) }
  }

  private tell(change: ConfigChange): ConfigChange {
    for (const listener of [...this.listeners]) listener(change)
    return change
  }
}
