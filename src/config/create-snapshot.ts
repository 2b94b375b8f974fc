/** Creates the immutable snapshot of one generation. */
import { deepFreeze } from '../base/deep-freeze.js'
import type { Catalogue, Config, GenerationChange, SettingChange, Snapshot } from './config.js'
import { protectSecrets } from '../hide-secrets.js'
import { secretsOf } from './secret-settings.js'

/** The values that a snapshot is created from: the result of a successful load. */
export interface SnapshotParts {
  readonly config: Config
  readonly catalogue: Catalogue
  readonly fileHash: string
}

/** Properties of a snapshot besides its values. */
interface SnapshotProperties {
  readonly generation: number
  /** Ms since 1970. */
  readonly loadedAtMs: number
  /** Differences from the previous generation. */
  readonly changes?: readonly SettingChange[]
  readonly toRecord?: GenerationChange | null
  /** Settings whose new values need a restart. */
  readonly waitingForRestart?: readonly string[]
}

/**
 * An immutable snapshot: every object in it is frozen. After the call this process masks its secrets in all
 * output.
 */
export function createSnapshot(
  { config, catalogue, fileHash }: SnapshotParts,
  { generation, loadedAtMs, changes = [], toRecord = null, waitingForRestart = [] }: SnapshotProperties,
): Snapshot {
  protectSecrets(secretsOf(config))
  const snapshot = {
    generation,
    fileHash,
    loadedAtMs,
    config,
    catalogue,
    changes,
    toRecord,
    waitingForRestart,
  }
  return deepFreeze(snapshot)
}
