/**
 * The accounts of the demo: a company and a shop below it, with members in every role, keys and limits. What
 * is made up has a name that begins with `sample-`, and its keys have the label `data=sample`.
 */
import { shownAmounts } from '../config/schema/limits-schema.js'
import { memberChange, userChange } from '../accounts/changes/audit-text.js'
import { createAccount } from '../accounts/changes/change-accounts.js'
import type { Account, AccountRole, KeyLimits, User } from '../accounts/account.js'
import { createKey, revokeKey, type Changing } from '../accounts/changes/change-keys.js'
import { createUser, setMember } from '../accounts/members.js'
import { hashPassword, newPassword } from '../accounts/password.js'
import type { Plans } from '../accounts/plans.js'
import { newRequestId } from '../http/request-id.js'
import type { AuditEntry } from '../store/audit-trail.js'
import type { Store } from '../store/store.js'
import { SAMPLE_DATA, type DemoApp } from './demo-traffic.js'

/** A user of the demo; all have the same password. */
interface DemoUser {
  readonly email: string
  readonly role: string
}

/** The administrator, whose account has the user's own key. */
export const ADMIN = 'demo@example.com'
const AUDITOR = 'sample-auditor@example.com'
const OWNER = 'sample-owner@example.com'
const MEMBER = 'sample-member@example.com'
const VIEWER = 'sample-viewer@example.com'

export const DEMO_USERS: readonly DemoUser[] = [
  { email: ADMIN, role: 'administrator, owner of sample-company' },
  { email: AUDITOR, role: 'auditor: reads everything' },
  { email: OWNER, role: 'owner of sample-shop' },
  { email: MEMBER, role: 'member of sample-shop, viewer of sample-company' },
  { email: VIEWER, role: 'viewer of sample-shop' },
]

/** A key of an application, with the secret for requests of the demo itself. */
export interface SampleKey extends DemoApp {
  readonly name: SampleName
  readonly secret: string
}

/** What `createDemoAccounts` has made. */
interface DemoAccounts {
  readonly password: string
  /** The secret of the user's own key. */
  readonly secret: string
  readonly keys: readonly SampleKey[]
}

/** The keys with sample traffic: their account, team and share of the requests. */
const APPS = {
  'sample-web-app': { owner: 'shop', team: 'shop', share: 6 },
  'sample-support-bot': { owner: 'shop', team: 'support', share: 3 },
  'sample-nightly-batch': { owner: 'company', team: 'data', share: 2 },
  'sample-evaluation': { owner: 'company', team: 'research', share: 1 },
  'sample-reports': { owner: 'company', team: 'data', share: 1 },
} as const

/** The name of a key with sample traffic. */
export type SampleName = keyof typeof APPS

/** The most requests a minute of `sample-nightly-batch`; the demo sends more. */
const BATCH_LIMITS: KeyLimits = { requestsPerMinute: 3 }

/** Creates everything in an empty store. `sample-reports` uses only `endingModel`. */
export async function createDemoAccounts(
  store: Store,
  plans: Plans,
  endingModel: string,
): Promise<DemoAccounts> {
  const password = newPassword()
  const hash = hashPassword(password)
  const parts = { store, plans, password, hash: () => hash }
  const company = await newAccount(parts, { name: 'sample-company', email: ADMIN, plan: 'pro' })
  const shop = await newAccount(parts, {
    ...{ name: 'sample-shop', email: OWNER, plan: 'starter', parentId: company.id },
  })
  await newUser(parts, AUDITOR, 'auditor')
  const member = await newUser(parts, MEMBER, null)
  await join(store, shop, member, 'member')
  await join(store, company, member, 'viewer')
  await join(store, shop, await newUser(parts, VIEWER, null), 'viewer')
  const { secret } = await createKey(sampleChange(parts, SAMPLE_DATA), company, { name: 'demo' })
  const keys: SampleKey[] = []
  for (const [name, { owner: of, team, share }] of entriesOf(APPS)) {
    const account = of === 'shop' ? shop : company
    const made = await newSampleKey(parts, account, { name, team, createdBy: MEMBER })
    const accountPath = of === 'shop' ? `${company.name}/${shop.name}` : company.name
    const labels = `data=sample team=${team}`
    keys.push({
      ...{ name, secret: made.secret, keyId: made.key.id, accountId: account.id },
      ...{ accountPath, labels, share },
      ...(name === 'sample-reports' ? { model: endingModel } : {}),
    })
  }
  const leaked = { name: 'sample-leaked', team: 'shop', createdBy: OWNER }
  const { key } = await newSampleKey(parts, shop, leaked)
  await revokeKey(sampleChange(parts, SAMPLE_DATA), shop, key)
  return { password, secret, keys }
}

interface Parts {
  readonly store: Store
  readonly plans: Plans
  readonly password: string
  readonly hash: () => string
}

async function newAccount(
  { store, password, hash }: Parts,
  account: {
    readonly name: string
    readonly email: string
    readonly plan: string
    readonly parentId?: string
  },
): Promise<Account> {
  const role = account.email === ADMIN ? 'admin' : 'owner'
  const actor = { actor: SAMPLE_DATA, address: null }
  return (await createAccount(store, { ...account, password, role }, { hash, actor })).account
}

async function newUser({ store, password, hash }: Parts, email: string, role: User['role']): Promise<User> {
  const audit = (after: User): AuditEntry[] => [
    sampleEntry({
      ...{ accountId: after.id, action: 'user.create', target: after.id },
      ...{ detail: email, ...userChange(null, after) },
    }),
  ]
  return (await createUser(store, { email, role, password, hash, audit })).user
}

async function join(store: Store, account: Account, user: User, role: AccountRole): Promise<void> {
  await setMember(store, {
    ...{ account, user, role, nowMs: Date.now() },
    audit: (before, after) => [
      sampleEntry({
        ...{ accountId: account.id, action: 'member.create', target: user.email },
        ...{ detail: `${user.email}: ${role}`, ...memberChange(before, after) },
      }),
    ],
  })
}

async function newSampleKey(
  parts: Parts,
  account: Account,
  { name, team, createdBy }: { readonly name: string; readonly team: string; readonly createdBy: string },
) {
  return createKey(sampleChange(parts, createdBy), account, {
    ...{ name, labels: { data: 'sample', team } },
    ...(name === 'sample-nightly-batch' ? { limits: shownAmounts(BATCH_LIMITS) } : {}),
  })
}

function sampleChange({ store, plans }: Pick<Parts, 'store' | 'plans'>, actor: string): Changing {
  return { store, plans, nowMs: Date.now(), actor: { actor, address: null } }
}

/** An entry of the audit trail; its actor names the sample data. */
function sampleEntry(
  what: Pick<AuditEntry, 'accountId' | 'action' | 'target' | 'detail' | 'before' | 'after'>,
): AuditEntry {
  const atMs = Date.now()
  return { id: newRequestId(atMs), atMs, actor: SAMPLE_DATA, address: null, ...what }
}

function entriesOf<Key extends string, Value>(record: Record<Key, Value>): [Key, Value][] {
  return Object.entries(record) as [Key, Value][]
}
