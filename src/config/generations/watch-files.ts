/**
 * Reports that files may have changed: replaced, edited in place, or swapped behind a symbolic link as
 * Kubernetes does. The caller compares the contents. File systems without events are polled.
 */
import { watch, type FSWatcher } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

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
