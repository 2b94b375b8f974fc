/** The reason of a generation as a text. */
import type { GenerationRecord } from '../../../server/schema/schema.js'

/** Includes the generation whose content a rollback restored. */
export function reasonOf({ contentOf, reason }: GenerationRecord): string {
  if (contentOf === null) return reason
  return reason === '' ? `rollback to ${contentOf}` : `rollback to ${contentOf}: ${reason}`
}
