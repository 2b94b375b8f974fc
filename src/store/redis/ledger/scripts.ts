/**
 * The scripts of limits and of the ledger. What each one reads, writes and answers stands in its file.
 * Each touches keys of one slot of a Cluster; without a Cluster, all keys that its requests need.
 */
import { loadScript } from '../connection/script.js'

/** Admits requests, or reads how limits stand. */
export const ADMIT = loadScript(
  'limits/time',
  'limits/each-request',
  'limits/counters',
  'limits/concurrency-slice',
  'limits/admit',
)

/** Gives back what a limit in another slot of a Cluster holds. */
export const RELEASE_SHARED = loadScript(
  'limits/time',
  'limits/return-holds',
  'limits/release-shared',
)

/** Prolongs the leases of running requests. */
export const RENEW = loadScript('limits/time', 'limits/renew')

/** The same for a limit in another slot of a Cluster. */
export const RENEW_SHARED = loadScript('limits/time', 'limits/renew-shared')

/** Lists leases that have run out. */
export const LIST_EXPIRED = loadScript('limits/time', 'ledger/list-expired')

/** Reads ledger entries by request id. */
export const READ_ENTRIES = loadScript('ledger/read-entries')

/** Deletes ledger entries. */
export const DELETE_ENTRIES = loadScript('ledger/delete-entries')

/** Reports slices and asks for more. */
export const REPORT_SLICES = loadScript(
  'limits/time',
  'limits/each-request',
  'limits/counters',
  'limits/concurrency-slice',
  'limits/counter-slice',
  'limits/report-slices',
)

/** Writes ledger entries and corrects what was reserved. */
export const SETTLE = loadScript(
  'limits/time',
  'limits/each-request',
  'limits/counters',
  'limits/return-holds',
  'limits/concurrency-slice',
  'limits/counter-slice',
  'ledger/settle',
)
