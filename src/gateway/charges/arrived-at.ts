/** When a request arrived, by its id: every entry that is made of it has the same time. */
import { timeOfRequestId } from '../../http/request-id.js'
import type { RequestContext } from '../request-context.js'

/** ms since 1970. */
export function arrivedAtMs({ id, startedMs }: Pick<RequestContext, 'id' | 'startedMs'>): number {
  return timeOfRequestId(id) ?? Math.round(Date.now() - (performance.now() - startedMs))
}
