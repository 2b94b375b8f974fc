/**
 * Types of webhook notifications. A type is `GROUP.EVENT`; `notify[].events` of the configuration selects
 * groups. Notifications travel between processes as JSON.
 */

export const NOTIFY_GROUPS = ['budget', 'breaker', 'config', 'canary', 'error_rate', 'credential'] as const

/** A refused credential is reported at most once in this time. */
export const REPORT_INTERVAL_MS = 3_600_000

export type NotifyGroup = (typeof NOTIFY_GROUPS)[number]

/** Every type of notification. */
export const NOTIFICATION_TYPES = [
  'budget.threshold',
  'breaker.changed',
  'config.refused',
  'canary.aborted',
  'error_rate.changed',
  'credential.refused',
] as const

type NotificationType = (typeof NOTIFICATION_TYPES)[number]

/** An event. `data` contains names of the configuration, ids and figures; no secrets and no prompts. */
export interface Notification {
  readonly type: NotificationType
  /** When it happened, ms since 1970. */
  readonly atMs: number
  readonly data: Readonly<Record<string, string | number | null | readonly string[]>>
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
    case 'error_rate.changed':
      return 'error_rate'
    case 'credential.refused':
      return 'credential'
    default:
      return type satisfies never
  }
}
