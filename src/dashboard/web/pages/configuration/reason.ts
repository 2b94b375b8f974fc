/** Why a generation came into force, in words. */
import type { GenerationRecord } from '../../../server/schema/schema.js'

/** With the generation whose content a rollback put back. */
export function reasonOf({ contentOf, reason }: GenerationRecord): string {
  if (contentOf === null) return reason
  return reason === '' ? `rollback to ${contentOf}` : `rollback to ${contentOf}: ${reason}`
}
