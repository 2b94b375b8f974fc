/** Watches budgets for webhooks in a process that serves requests. */
import type { Snapshot } from '../config/config.js'
import type { Services } from '../gateway/pipeline.js'
import { BudgetWatch } from '../limits/budget-watch.js'
import type { Notify } from '../observe/webhooks/notification.js'
import type { Store } from '../store/store.js'

/** Without `notify` no budget is watched. */
export function watchFor(
  notify: Notify | undefined,
  { throttle: attempts }: Pick<Store, 'throttle'>,
  snapshot: () => Snapshot,
): Pick<Services, 'budgets' | 'notify'> {
  if (notify === undefined) return { budgets: null, notify: () => undefined }
  const isWanted = (): boolean =>
    snapshot().config.notify.some(({ events }) => events.includes('budget'))
  return { budgets: new BudgetWatch({ attempts, notify, isWanted }), notify }
}
