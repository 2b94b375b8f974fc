/**
 * The scripts of limits and of the ledger. Each accesses keys of one slot of a Cluster; without a Cluster, all keys of
 * its requests.
 */
import { loadScript } from '../connection/script.js'

/** Admits requests, or reads the states of limits. */
export const ADMIT = loadScript(
  'limits/time',
  'limits/each-request',
  'limits/counters',
  'limits/concurrency-slice',
  'limits/admit',
)

/** Returns what a request holds of a limit in another slot of a Cluster. */
export const RELEASE_SHARED = loadScript(
  'limits/time',
  'limits/return-holds',
  'limits/release-shared',
)

/** Renews the leases of running requests. */
export const RENEW = loadScript('limits/time', 'limits/renew')

/** The same for a limit in another slot of a Cluster. */
export const RENEW_SHARED = loadScript('limits/time', 'limits/renew-shared')

/** Lists expired leases. */
export const LIST_EXPIRED = loadScript('limits/time', 'ledger/list-expired')

/** Reads ledger entries by request id. */
export const READ_ENTRIES = loadScript('ledger/read-entries')

/** Deletes ledger entries. */
export const DELETE_ENTRIES = loadScript('ledger/delete-entries')

/** Reports slices and requests more. */
export const REPORT_SLICES = loadScript(
  'limits/time',
  'limits/each-request',
  'limits/counters',
  'limits/concurrency-slice',
  'limits/counter-slice',
  'limits/report-slices',
)

/** Writes ledger entries and corrects reservations. */
export const SETTLE = loadScript(
  'limits/time',
  'limits/each-request',
  'limits/counters',
  'limits/return-holds',
  'limits/concurrency-slice',
  'limits/counter-slice',
  'ledger/settle',
)
