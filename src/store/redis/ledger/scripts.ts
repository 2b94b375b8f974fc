/**
 * The scripts of limits and of the ledger. Each accesses keys of one slot of a Cluster; without a Cluster,
 * all keys of its requests.
 */
import { loadScript } from '../connection/script.js'

/** The last file of each script describes its keys, arguments and reply. */
export const LEDGER_SCRIPTS = {
  admit: loadScript(
    'limits/time',
    'limits/each-request',
    'limits/counters',
    'limits/concurrency-slice',
    'limits/admit',
  ),
  settle: loadScript(
    'limits/time',
    'limits/each-request',
    'limits/counters',
    'limits/charge-actual-usage',
    'limits/concurrency-slice',
    'limits/counter-slice',
    'ledger/settle',
  ),
  reportSlices: loadScript(
    'limits/time',
    'limits/each-request',
    'limits/counters',
    'limits/concurrency-slice',
    'limits/counter-slice',
    'limits/report-slices',
  ),
  releaseShared: loadScript('limits/time', 'limits/charge-actual-usage', 'limits/release-shared'),
  renew: loadScript('limits/time', 'limits/renew'),
  renewShared: loadScript('limits/time', 'limits/renew-shared'),
  listExpired: loadScript('limits/time', 'ledger/list-expired'),
  readEntries: loadScript('ledger/read-entries'),
  deleteEntries: loadScript('ledger/delete-entries'),
}
