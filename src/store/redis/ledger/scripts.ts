/**
 * The scripts of limits and of the ledger. What each one reads, writes and answers stands in its file.
 * Each touches keys of one slot of a Cluster; without a Cluster, all keys that its requests need.
 */
import { loadScript } from '../connection/script.js'

/** Admits requests, or reads how limits stand. */
export const ADMIT = loadScript(
  'limits/time',
  'limits/each',
  'limits/counters',
  'limits/held-places',
  'limits/admit',
)

/** Gives back what a limit in another slot of a Cluster holds. */
export const RELEASE_SHARED = loadScript('limits/time', 'limits/give-back', 'limits/release-shared')

/** Prolongs the leases of running requests. */
export const RENEW = loadScript('limits/time', 'limits/renew')

/** The same for a limit in another slot of a Cluster. */
export const RENEW_SHARED = loadScript('limits/time', 'limits/renew-shared')

/** Lists leases that have run out. */
export const DUE = loadScript('limits/time', 'ledger/due')

/** Reads ledger entries by request id. */
export const READ_ROWS = loadScript('ledger/read-rows')

/** Deletes ledger entries. */
export const DROP_ROWS = loadScript('ledger/drop-rows')

/** Reports slices and asks for more. */
export const SLICES = loadScript(
  'limits/time',
  'limits/each',
  'limits/counters',
  'limits/held-places',
  'limits/place-slices',
  'limits/slice',
  'limits/slices',
)

/** Writes ledger entries and corrects what was reserved. */
export const SETTLE = loadScript(
  'limits/time',
  'limits/each',
  'limits/counters',
  'limits/give-back',
  'limits/held-places',
  'limits/place-slices',
  'limits/slice',
  'ledger/settle',
)
