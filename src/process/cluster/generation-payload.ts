/** The generation of the configuration as the primary sends it to its workers. */
import type { Snapshot } from '../../config/config.js'
import type { Generation } from '../serve-worker.js'

/** Random values that the primary generates and shares with all workers and their successors. */
export interface SharedValues {
  /** Used if the file sets no `escrow.key`. */
  readonly sealSecret: string
  readonly setUpSecret: string
  readonly gatewayId: string
}

/** The message for workers: the generation in force and the shared values. */
export function payloadOf(
  snapshot: Snapshot,
  { sealSecret, setUpSecret, gatewayId }: SharedValues,
): Generation {
  const { generation, fileHash, loadedAtMs, config, catalogue } = snapshot
  const escrow = { ...config.escrow, key: config.escrow.key ?? sealSecret }
  return {
    generation,
    fileHash,
    loadedAtMs,
    config: { ...config, escrow },
    models: catalogue.models,
    changes: snapshot.changes,
    waitingForRestart: snapshot.waitingForRestart,
    setUpSecret,
    gatewayId,
  }
}
