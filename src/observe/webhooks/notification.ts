/**
 * Types of webhook notifications. A type is `GROUP.EVENT`; `notify[].events` of the configuration selects
 * groups. Notifications travel between processes as JSON.
 */

/** The groups of notifications. */
export const NOTIFY_GROUPS = ['budget', 'breaker', 'config', 'canary'] as const

/** One of the groups. */
export type NotifyGroup = (typeof NOTIFY_GROUPS)[number]

/** Every type of notification. */
export type NotificationType =
  'budget.threshold' | 'breaker.changed' | 'config.refused' | 'canary.aborted'

/** An event. `data` contains names of the configuration, ids and figures; no secrets and no prompts. */
export interface Notification {
  readonly type: NotificationType
  /** When it happened, ms since 1970. */
  readonly atMs: number
  readonly data: Readonly<Record<string, string | number | null>>
}

/** Queues a notification; never throws and never blocks. */
export type Notify = (notification: Notification) => void

/** The group that a type belongs to. */
export function groupOf(type: NotificationType): NotifyGroup {
  switch (type) {
    case 'budget.threshold':
      return 'budget'
    case 'breaker.changed':
      return 'breaker'
    case 'config.refused':
      return 'config'
    case 'canary.aborted':
      return 'canary'
    default:
      return type satisfies never
  }
}
