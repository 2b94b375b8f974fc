/**
 * Goal: every failure has one cause, the side that can act on it.
 * Method: the ten failures of the how-to, and each kind of the table of errors.
 */
import t from 'tap'
import { ERRORS, CAUSES, causeOf, outcomesOf, type Cause } from '../src/errors.js'
import type { EntryOutcome } from '../src/ledger/entry.js'

void t.test('the cause is who can act on the failure', (t) => {
  const expected: Readonly<Partial<Record<EntryOutcome, Cause | null>>> = {
    ok: null,
    rate_limited: 'limits',
    unknown_model: 'client',
    upstream_busy: 'provider',
    upstream_failed: 'provider',
    upstream_truncated: 'provider',
    upstream_timeout: 'provider',
    upstream_denied: 'gateway',
    upstream_rejected: 'client',
    untranslatable: 'client',
    client_gone: 'client',
    store_unavailable: 'gateway',
    lost: 'gateway',
    // Of batches.
    failed: 'provider',
    expired: 'provider',
    cancelled: 'client',
  }
  for (const [outcome, cause] of Object.entries(expected)) {
    t.equal(causeOf(outcome as EntryOutcome), cause, outcome)
  }
  t.end()
})

void t.test('the causes together have every failure once', (t) => {
  const all = CAUSES.flatMap(outcomesOf)
  const ofBatches = ['failed', 'expired', 'cancelled']
  t.strictSame([...all].sort(), [...Object.keys(ERRORS), 'lost', ...ofBatches].sort())
  t.end()
})
