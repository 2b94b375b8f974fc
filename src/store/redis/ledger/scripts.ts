/**
 * The scripts of limits and of the ledger. What each one reads, writes and answers stands in its file.
 * Each touches keys of one slot of a Cluster; without a Cluster, all keys that its requests need.
 */
import { loadScript } from '../connection/script.js'

export const ADMIT = loadScript(
  'limits/time',
  'limits/each',
  'limits/counters',
  'limits/held-places',
  'limits/admit',
)

export const RELEASE_SHARED = loadScript('limits/time', 'limits/give-back', 'limits/release-shared')

export const RENEW = loadScript('limits/time', 'limits/renew')

export const RENEW_SHARED = loadScript('limits/time', 'limits/renew-shared')

export const DUE = loadScript('limits/time', 'ledger/due')

export const READ_ROWS = loadScript('ledger/read-rows')

export const DROP_ROWS = loadScript('ledger/drop-rows')

export const SLICES = loadScript(
  'limits/time',
  'limits/each',
  'limits/counters',
  'limits/held-places',
  'limits/place-slices',
  'limits/slice',
  'limits/slices',
)

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
