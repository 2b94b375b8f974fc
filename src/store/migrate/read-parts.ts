/**
 * The parts of a store that a migration copies, and how to read them in batches.
 */
import { createHash } from 'node:crypto'
import type { ApiKey, Member } from '../../accounts/account.js'
import { periodOf } from '../limit-arithmetic.js'
import type { AdminToken, AdminTokenPage } from '../admin-tokens.js'
import type { AuditEntry } from '../audit-trail.js'
import { denialEndOf, type Denial } from '../denials.js'
import type { BudgetSpent } from '../ledger.js'
import type { StoredValue } from '../dimension-values.js'
import { endOf, type ProviderObject } from '../provider-objects.js'
import type { SignInToken } from '../sign-in-tokens.js'
import type { SealedRecord } from '../sealed-records.js'
import { PROPERTIES, type AccountUse, type UsageSum } from '../usage-queries.js'
import { accountPages, everyAccount, keyPages, userPages } from '../list-all.js'
import type { Page, Store } from '../store.js'

const AUDIT_PAGE = 1_000
/** Recordings that are in memory at the same time, each of a few MB. */
const RECORDINGS = 8

/** Tokens that outlive a migration: people need not sign their programs in again. */
export const LOGIN_KINDS = ['login', 'access'] as const

/** The parts, in the order in which they are copied. */
export const PARTS = [
  'users',
  'accounts',
  'members',
  'keys',
  'trail',
  'rows',
  'hours',
  'days',
  'budgets',
  'values',
  'logins',
  'objects',
  'denials',
  'months',
  'tokens',
  'recordings',
] as const
/**
 * A kind of record; `rows` are ledger entries, `hours` and `days` the ledger's sums, `budgets` their spend,
 * `values` those of dimensions, `logins` sign-ins of programs with their access tokens,
 * `objects` those of providers with their owners, `denials` denied workload identities,
 * `months` the use of pruned entries, `tokens` those of the admin API, `recordings` encrypted requests.
 */
export type Part = (typeof PARTS)[number]

/**
 * A step of a migration: the target's content is checked, then the source is copied, then both are read back.
 */
type Step = 'checked' | 'copied' | 'read back'

/** Called with the number of records of a part that a step is done with. */
export type Progress = (step: Step, part: Part, done: number) => void

/** A record with its place in the order of its list, if the part is a list. */
interface PartRecord {
  /** Sorts by time. A store prunes the oldest records of a part; 0 for a part that it does not prune. */
  readonly age: string | number
  readonly record: unknown
}

/** Every record of a part, in batches. */
export function recordsOf(store: Store, part: Part, nowMs: number): AsyncIterable<PartRecord[]> {
  switch (part) {
    case 'users':
      return aged(userPages(store), () => 0)
    case 'members':
      return aged(everyMemberPage(store), () => 0)
    case 'accounts':
      return placed(accountPages(store))
    case 'keys':
      return placed(everyKeyPage(store))
    case 'trail':
      return aged(auditPages(store), ({ id }) => id)
    case 'rows':
      return aged(store.ledger.export(0), ({ atMs }) => atMs)
    case 'hours':
      return aged(everySum(store, 'hour'), ({ startMs }) => startMs)
    case 'days':
      return aged(everySum(store, 'day'), ({ startMs }) => startMs)
    case 'budgets':
      return aged(budgetBatches(store, nowMs), () => 0)
    case 'values':
      return aged(valueBatches(store, nowMs), () => 0)
    case 'logins':
      return aged(loginPages(store, nowMs), () => 0)
    case 'objects':
      return aged(objectBatches(store, nowMs), () => 0)
    case 'denials':
      return placed(denialPages(store, nowMs))
    case 'tokens':
      return placed(tokenPages(store))
    case 'recordings':
      return aged(recordingDigests(store, nowMs), () => 0)
    case 'months':
      return aged(prunedUses(store), ({ month }) => month)
    default:
      return part satisfies never
  }
}

/** Every engine lists these in the order of creation, which is compared, too. */
async function* placed<T>(batches: AsyncIterable<readonly T[]>): AsyncGenerator<PartRecord[]> {
  let place = 0
  for await (const batch of batches) {
    yield batch.map((record) => ({ age: 0, record: [(place += 1), record] }))
  }
}

async function* aged<T>(
  batches: AsyncIterable<readonly T[]>,
  ageOf: (record: T) => string | number,
): AsyncGenerator<PartRecord[]> {
  for await (const batch of batches) yield batch.map((record) => ({ age: ageOf(record), record }))
}

/** Every entry, newest first, page by page. */
export async function* auditPages(store: Store): AsyncGenerator<readonly AuditEntry[]> {
  for (let after: string | null = null; ;) {
    const query = { accountId: null, after, limit: AUDIT_PAGE }
    const page: readonly AuditEntry[] = await store.auditTrail.page(query)
    yield page
    const last = page.at(-1)
    if (last === undefined || page.length < AUDIT_PAGE) return
    after = last.id
  }
}

/** The spend of the current day, week or month, in batches; the spend of earlier ones is not kept. */
export async function* budgetBatches(store: Store, nowMs: number): AsyncGenerator<readonly BudgetSpent[]> {
  for await (const batch of store.ledger.budgets()) {
    yield batch.filter(({ kind, period }) => period >= periodOf(kind, nowMs))
  }
}

/** The values of dimensions that are kept, in batches. */
export async function* valueBatches(store: Store, nowMs: number): AsyncGenerator<readonly StoredValue[]> {
  for await (const batch of store.dimensionValues.all()) {
    yield batch.filter(({ untilMs }) => untilMs > nowMs)
  }
}

/** The sign-ins of programs and their access tokens, user by user. */
async function* loginPages(store: Store, nowMs: number): AsyncGenerator<readonly SignInToken[]> {
  for await (const page of userPages(store)) {
    for (const { id } of page) {
      const [logins, access] = await Promise.all(
        LOGIN_KINDS.map((kind) => store.signInTokens.tokensOf(kind, id, nowMs)),
      )
      yield [...(logins ?? []), ...(access ?? [])]
    }
  }
}

/** Providers' objects that have not expired, in batches. */
export async function* objectBatches(store: Store, nowMs: number): AsyncGenerator<readonly ProviderObject[]> {
  for await (const batch of store.providerObjects.all()) {
    yield batch.filter((object) => endOf(object) > nowMs)
  }
}

async function* everyMemberPage(store: Store): AsyncGenerator<readonly Member[]> {
  for await (const { id } of everyAccount(store)) yield await store.membersOf(id)
}

/** Denials that have not expired, in batches, in the order of creation. */
export async function* denialPages(store: Store, nowMs: number): AsyncGenerator<readonly Denial[]> {
  for (let after: string | null = null, isFirst = true; isFirst || after !== null; isFirst = false) {
    const query = { order: 'oldest_first', after, limit: AUDIT_PAGE } as const
    const page: Page<Denial> = await store.denials.list(query)
    yield page.items.filter((denial) => denialEndOf(denial) > nowMs)
    after = page.next
  }
}

/** The tokens of the admin API, newest first. */
export async function* tokenPages(store: Store): AsyncGenerator<readonly AdminToken[]> {
  for (let after: string | null = null; ;) {
    const page: AdminTokenPage = await store.adminTokens.page(after, AUDIT_PAGE)
    yield page.items
    if (page.next === null) return
    after = page.next
  }
}

/** Recordings that have not expired, with their encrypted values, newest first, a few in each batch. */
export async function* recordingBatches(
  store: Store,
  nowMs: number,
): AsyncGenerator<readonly SealedRecord[]> {
  const seen = new Set<string>()
  let untilMs = Number.MAX_SAFE_INTEGER
  for (;;) {
    const heads = await store.sealedRecords.list('recording', { untilMs }, nowMs)
    const fresh = heads.filter(({ id }) => !seen.has(id))
    for (let from = 0; from < fresh.length; from += RECORDINGS) {
      const batch = fresh.slice(from, from + RECORDINGS)
      const found = await Promise.all(batch.map(({ id }) => store.sealedRecords.find('recording', id, nowMs)))
      for (const { id } of batch) seen.add(id)
      yield found.filter((record) => record !== null)
    }
    const last = heads.at(-1)
    if (last === undefined || fresh.length === 0) return
    untilMs = last.atMs
  }
}

/** The same with digests of the values, whose types differ between engines. */
async function* recordingDigests(store: Store, nowMs: number): AsyncGenerator<readonly object[]> {
  for await (const batch of recordingBatches(store, nowMs)) {
    yield batch.map((record) => ({
      ...record,
      value: createHash('sha256').update(record.value).digest('hex'),
    }))
  }
}

/** The use of pruned entries, in batches. */
export async function* prunedUses(store: Store): AsyncGenerator<readonly AccountUse[]> {
  const uses = await store.ledger.prunedUse()
  for (let from = 0; from < uses.length; from += AUDIT_PAGE) yield uses.slice(from, from + AUDIT_PAGE)
}

async function* everyKeyPage(store: Store): AsyncGenerator<readonly ApiKey[]> {
  for await (const { id } of everyAccount(store)) {
    for await (const page of keyPages(store, id)) yield page
  }
}

async function* everySum(store: Store, by: 'hour' | 'day'): AsyncGenerator<readonly UsageSum[]> {
  for await (const { id } of everyAccount(store)) yield await sumsOf(store, id, by)
}

/** All sums of an account, by key and model and by property. */
export async function sumsOf(store: Store, accountId: string, by: 'hour' | 'day'): Promise<UsageSum[]> {
  const all = { accountId, by, fromMs: 0, toMs: Number.MAX_SAFE_INTEGER }
  const sums = await store.ledger.sums(all)
  for (const property of PROPERTIES) sums.push(...(await store.ledger.sums({ ...all, property })))
  return sums
}
