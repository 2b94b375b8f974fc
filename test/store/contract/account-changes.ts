/**
 * The tests of every engine for users, members, trees of accounts, and changes of an account with its members
 * and keys.
 */
import { putAccount, putKey } from '../../helpers/store-changes.js'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import type { Account, ApiKey, Member, User } from '../../../src/accounts/account.js'
import {
  NO_ACCOUNT,
  type AccountDecision,
  type AccountReads,
  type AccountState,
} from '../../../src/store/account-changes.js'
import { openStore } from '../../../src/store/open-store.js'
import type { Store } from '../../../src/store/store.js'
import { allAccounts, allKeys } from '../../helpers/lists.js'
import { aKey, aLogin, anAccount, anEntry, aUser } from './sample-records.js'

type NewUrl = (t: Test) => string | Promise<string>

const NOW = 1_800_000_000_000

async function opened(t: Test, newUrl: NewUrl): Promise<Store> {
  const store = await openStore(await newUrl(t))
  t.teardown(() => store.close())
  return store
}

function memberOf(account: Account, user: User, over: Partial<Member> = {}): Member {
  const [accountId, userId] = [account.id, user.id]
  return { accountId, userId, email: user.email, role: 'member', createdAtMs: 5, ...over }
}

function change<Reason>(
  store: Store,
  { id }: Account,
  decide: (state: AccountState) => AccountDecision<Reason>,
  reads: AccountReads = {},
) {
  return store.transact({ accountId: id, reads, decide, nowMs: NOW })
}

async function actions(store: Store, accountId: string): Promise<string[]> {
  const page = await store.auditTrail.page({ accountId, after: null, limit: 100 })
  return page.map(({ action }) => action).reverse()
}

/** The memberships of a user follow the address; of several users who want it, one gets it. */
async function newAddresses(t: Test, store: Store, id: string): Promise<void> {
  const { users } = store
  const [member] = await users.memberships(id)
  const accountId = member?.accountId ?? ''
  t.equal(await users.changeEmail('usr_none', 'x@example.com'), null)
  const other = aUser({ email: 'other@example.com' })
  await users.create(other)
  t.equal(await users.changeEmail(id, other.email), 'email_taken')
  t.equal(await users.changeEmail(id, 'x'.repeat(5_000)), 'email_taken', 'one that cannot be stored')
  const wanted = ['one@example.com', 'two@example.com', 'one@example.com', 'own@example.com']
  for (const [at, email] of wanted.entries()) {
    const entry = anEntry(id, { action: 'user.email', target: String(at) })
    t.match(await users.changeEmail(id, email, () => [entry]), { id, email })
    t.match(await users.byEmail(email), { id, email })
    t.same(await users.byId(id), await users.byEmail(email))
    t.match(await users.memberships(id), [{ ...member, email }])
    t.match(await store.memberOf(accountId, email), { userId: id, email })
    for (const former of wanted.filter((each) => each !== email)) {
      t.equal(await users.byEmail(former), null, 'the former address is free')
      t.equal(await store.memberOf(accountId, former), null)
    }
  }
  const together = await Promise.all(
    [id, other.id, id].map((each) => users.changeEmail(each, 'new@example.com')),
  )
  const holder = await users.byEmail('new@example.com')
  t.ok(together.some((each) => each !== null && each !== 'email_taken' && each.id === holder?.id))
  t.equal(together.includes('email_taken'), true)
  t.match(await users.memberships(id), [{ email: (await users.byId(id))?.email }])
  const listed = (await users.list({ after: null, limit: 100 })).items
  t.equal(new Set(listed.map((user) => user.id)).size, listed.length, 'each user once')
}

/** People who sign in. */
export async function users(t: Test, newUrl: NewUrl): Promise<void> {
  const store = await opened(t, newUrl)
  const ada = aUser({ role: 'auditor', groupRole: 'admin', issuer: 'https://id', subject: '7' })
  const bob = aUser()
  t.equal(await store.users.byId(ada.id), null)
  t.equal(await store.users.byEmail(ada.email), null)
  const entry = anEntry(ada.id, { action: 'user.create', target: ada.id })
  t.equal(await store.users.create(ada, [entry]), 'created')
  t.equal(await store.users.create(bob), 'created')
  t.equal(await store.users.create(aUser({ email: ada.email })), 'email_taken')
  t.equal(await store.users.create(aUser({ id: ada.id })), 'id_taken')
  for (const bad of ['', 'a b', '\0']) {
    t.equal(await store.users.create(aUser({ id: bad })), 'bad_name')
    t.equal(await store.users.create(aUser({ email: bad })), 'bad_name')
    t.equal(await store.users.byId(bad), null)
    t.equal(await store.users.change(bad, { disabled: true }), null)
  }
  t.same(await store.users.byId(ada.id), ada, 'every field')
  t.same(await store.users.byEmail(ada.email.toUpperCase()), ada)
  t.same(await actions(store, ada.id), ['user.create'])
  const emails = [ada, bob].map(({ email }) => email).sort()
  const first = await store.users.list({ after: null, limit: 1 })
  t.same([first.items.map(({ email }) => email), first.next], [emails.slice(0, 1), emails[0]])
  const rest = await store.users.list({ after: first.next, limit: 1 })
  t.same([rest.items.map(({ email }) => email), rest.next], [emails.slice(1), null])

  const edited = { ...ada, role: null, signedInAtMs: 9 }
  delete edited.groupRole
  t.same(
    await store.users.change(ada.id, { role: null, groupRole: null, signedInAtMs: 9 }, () => [
      anEntry(ada.id, { action: 'user.change', target: ada.id }),
    ]),
    edited,
  )
  t.same(await store.users.byEmail(ada.email), edited)
  t.equal(await store.users.change(ada.id, () => null), null, 'a change may refuse')
  const raced = Array.from({ length: 10 }, () =>
    store.users.change(ada.id, (user) => ({ signedInAtMs: (user.signedInAtMs ?? 0) + 1 })),
  )
  await Promise.all(raced)
  t.equal((await store.users.byId(ada.id))?.signedInAtMs, 19, 'each change sees the one before')
  t.same(await actions(store, ada.id), ['user.create', 'user.change'])

  const account = anAccount({ email: 'own@example.com' })
  const login = aLogin(account)
  t.equal(await putAccount(store, account, [], login), 'created')
  t.same(await store.users.byEmail('own@example.com'), login, 'made with the account')
  t.match(await store.users.memberships(login.id), [{ accountId: account.id, role: 'owner' }])
  t.same(await store.users.memberships(bob.id), [])
  await newAddresses(t, store, login.id)
}

/** Names and parents. */
export async function trees(t: Test, newUrl: NewUrl): Promise<void> {
  const store = await opened(t, newUrl)
  const [top, mid, low, leaf] = [anAccount(), anAccount(), anAccount(), anAccount()]
  t.equal(await putAccount(store, top), 'created')
  t.equal(await putAccount(store, { ...mid, parentId: top.id }), 'created')
  t.equal(await putAccount(store, { ...low, parentId: mid.id }), 'created')
  t.equal(await putAccount(store, { ...leaf, parentId: low.id }), 'created')
  t.same(await store.accountByName(leaf.name), { ...leaf, parentId: low.id })
  t.equal(await store.accountByName('no-one-has-it'), null)
  t.equal(await putAccount(store, anAccount({ name: top.name })), 'name_taken')
  t.equal(await putAccount(store, anAccount({ parentId: leaf.id })), 'too_deep')
  t.equal(await putAccount(store, anAccount({ parentId: 'acc_none' })), 'no_parent')
  t.equal((await allAccounts(store)).length, 4, 'a refused account does not exist')

  const found = await store.ancestorsOf({ ...leaf, parentId: low.id })
  t.same(
    found.map(({ id }) => id),
    [low.id, mid.id, top.id],
    'the parent first',
  )
  t.same(await store.childrenOf(mid.id), [low.id])
  t.same(await store.childrenOf(leaf.id), [])
  const key = aKey(leaf.id)
  await putKey(store, key, null)
  const lookup = await store.findKey(key.digest)
  t.same(
    lookup?.ancestors?.map(({ id }) => id),
    [low.id, mid.id, top.id],
  )

  const move = (account: Account, parentId: string | undefined) =>
    change(store, account, ({ account: is }) => {
      if (is === null) return { refuse: 'absent' }
      const account = { ...is }
      delete account.parentId
      if (parentId !== undefined) account.parentId = parentId
      return { write: { account, audit: [] } }
    })
  t.match(await move(top, leaf.id), { kind: 'conflict', conflict: 'parent_loop' })
  t.match(await move(top, top.id), { kind: 'conflict', conflict: 'parent_loop' })
  t.match(await move(mid, 'acc_none'), { kind: 'conflict', conflict: 'no_parent' })
  t.match(await move(mid, undefined), { kind: 'written' })
  t.same(await store.childrenOf(top.id), [])
  const deep = anAccount({ parentId: top.id })
  t.equal(await putAccount(store, deep), 'created')
  t.match(await move(mid, deep.id), { kind: 'conflict', conflict: 'too_deep' })
  t.match(await move(mid, top.id), { kind: 'written' })
  t.same((await store.childrenOf(top.id)).sort(), [mid.id, deep.id].sort())

  await Promise.all([move(top, mid.id), move(mid, undefined), move(top, deep.id)])
  for (const account of await allAccounts(store)) {
    const above = await store.ancestorsOf(account)
    t.notOk(
      above.some(({ id }) => id === account.id),
      'never a loop',
    )
  }

  const names = (await allAccounts(store)).map(({ name }) => name).sort()
  const listed: string[] = []
  for (let after: string | null = null, more = true; more;) {
    const page = await store.accountsByName({ after, limit: 2 })
    listed.push(...page.items.map(({ name }) => name))
    after = page.next
    more = after !== null
  }
  t.same(listed, names, 'in the order of their names')
}

/** An account, its members and its keys in one step. */
export async function accountChanges(t: Test, newUrl: NewUrl): Promise<void> {
  const store = await opened(t, newUrl)
  const [ada, bob] = [aUser(), aUser()]
  await store.users.create(ada)
  await store.users.create(bob)
  const account = anAccount()
  const key = aKey(account.id, { name: 'ci' })
  const entry = (action: string) => anEntry(account.id, { action, target: account.id })
  const full: Account = {
    ...account,
    displayName: 'Ünï',
    labels: { a: 'b' },
    limits: { nanoUsdPerDay: 5 },
  }
  const created = await change(store, account, (state) => {
    t.same(state, { ...NO_ACCOUNT })
    const members = [memberOf(account, ada, { role: 'owner', labels: { a: 'b' } })]
    return { write: { account: full, members, newKeys: [key], audit: [entry('account.create')] } }
  })
  t.equal(created.kind, 'written')
  t.same(await store.accountById(account.id), full, 'every field')
  t.same(await store.membersOf(account.id), [memberOf(account, ada, { role: 'owner', labels: { a: 'b' } })])
  t.same((await store.findKey(key.digest))?.key, key)
  t.same(await store.keyByName(account.id, 'ci'), key)
  t.equal(await store.countKeys(account.id), 1)
  t.same(await actions(store, account.id), ['account.create'])

  const refused = await change(store, account, () => ({ refuse: 'stale' }))
  t.same(refused, { kind: 'refused', reason: 'stale' })
  const conflict = async (writes: object, name: string) => {
    const decision = { write: { audit: [entry('x')], ...writes } }
    t.match(await change(store, account, () => decision), { kind: 'conflict', conflict: name })
  }
  await conflict({ newKeys: [aKey(account.id, { name: 'ci' })] }, 'name_taken')
  await conflict({ newKeys: [aKey(account.id, { digest: key.digest })] }, 'id_taken')
  await conflict({ newKeys: [aKey(account.id, { id: '' })] }, 'bad_name')
  await conflict({ members: [memberOf(account, aUser())] }, 'no_user')
  const twins = [aKey(account.id, { name: 'twin' }), aKey(account.id, { name: 'twin' })]
  await conflict({ newKeys: twins }, 'name_taken')
  t.same(await actions(store, account.id), ['account.create'], 'a refused change leaves nothing')
  t.same(await allKeys(store, account.id), [key])

  // A rotation: the name means the new key.
  const next = aKey(account.id, { name: 'ci', replaces: key.id })
  const rotated = await change(
    store,
    account,
    ({ keys, members, liveKeys }) => {
      t.same([...keys.keys(), ...members.keys(), liveKeys], ['ci', ada.email, 1])
      const old = { ...key, replacedBy: next.id, expiresAtMs: NOW + 1 }
      return { write: { keys: [old], newKeys: [next], audit: [entry('key.rotate')] } }
    },
    { keys: ['ci', 'none'], members: 'all' },
  )
  t.equal(rotated.kind, 'written')
  t.same(await store.keyByName(account.id, 'ci'), next)
  t.match((await store.findKey(key.digest))?.key, { replacedBy: next.id, expiresAtMs: NOW + 1 })
  t.equal(await store.countKeys(account.id), 2)
  const revoke = { write: { keys: [{ ...next, revokedAtMs: NOW }], audit: [entry('key.revoke')] } }
  t.equal((await change(store, account, () => revoke)).kind, 'written')
  t.match((await store.findKey(next.digest))?.key, { revokedAtMs: NOW })
  t.equal(await store.keyByName(account.id, 'ci'), null, 'a revoked key gives its name up')
  t.equal(await store.countKeys(account.id), 1)
  const expired = aKey(account.id, { name: 'ci', expiresAtMs: NOW - 1 })
  const again = aKey(account.id, { name: 'ci' })
  for (const newKey of [expired, again]) {
    const decision = { write: { newKeys: [newKey], audit: [] } }
    t.equal((await change(store, account, () => decision)).kind, 'written', 'so does an expired one')
  }
  t.same(await store.keyByName(account.id, 'ci'), again)

  const swap = {
    write: { members: [memberOf(account, bob)], removedMembers: [ada.email], audit: [] },
  }
  t.equal((await change(store, account, () => swap)).kind, 'written')
  t.same(
    (await store.membersOf(account.id)).map(({ email }) => email),
    [bob.email],
  )
  t.equal(await store.memberOf(account.id, ada.email), null)
  t.match(await store.memberOf(account.id, bob.email), { role: 'member' })
  t.same(await store.users.memberships(ada.id), [])
  t.match(await store.users.memberships(bob.id), [{ accountId: account.id }])

  const counted = await Promise.all(
    Array.from({ length: 12 }, () =>
      change(store, account, ({ account: is }) => {
        if (is === null) return { refuse: 'absent' }
        const count = Number(is.labels?.['count'] ?? 0) + 1
        return { write: { account: { ...is, labels: { count: String(count) } }, audit: [] } }
      }),
    ),
  )
  t.ok(counted.every(({ kind }) => kind === 'written'))
  t.same((await store.accountById(account.id))?.labels, { count: '12' }, 'no update is lost')

  await purge(t, store, account, again)
}

async function purge(t: Test, store: Store, account: Account, key: ApiKey): Promise<void> {
  const child = anAccount({ parentId: account.id })
  await putAccount(store, child)
  const entry = anEntry(account.id, { action: 'account.purge', target: account.id })
  const decision = { write: { purge: true, audit: [entry] } } as const
  const answer = await change(store, account, () => decision)
  t.match(answer, { kind: 'conflict', conflict: 'has_children' })
  t.match((await store.findKey(key.digest))?.key, { id: key.id })
  t.equal((await change(store, child, () => ({ write: { purge: true, audit: [] } }))).kind, 'written')
  t.equal((await change(store, account, () => decision)).kind, 'written')
  t.equal(await store.accountById(account.id), null)
  t.equal(await store.accountByName(account.name), null)
  t.equal(await store.findKey(key.digest), null, 'its keys are unknown')
  t.same(await store.membersOf(account.id), [])
  t.notOk((await allAccounts(store)).some(({ id }) => id === account.id))
  t.equal((await actions(store, account.id)).at(-1), 'account.purge', 'audit entries stay')
  t.equal(await putAccount(store, anAccount({ name: account.name })), 'created', 'a free name')
  t.equal(await putAccount(store, anAccount({ parentId: account.id })), 'no_parent')
}

/** A change of more members and keys than are handled in one turn of the event loop. */
export async function largeChanges(t: Test, newUrl: NewUrl): Promise<void> {
  const url = await newUrl(t)
  const [store, other] = [await openStore(url), await openStore(url)]
  t.teardown(() => Promise.all([store.close(), other.close()]))
  const [account, ada] = [anAccount(), aUser()]
  await store.users.create(ada)
  const keys = Array.from({ length: 150 }, (_, at) => aKey(account.id, { name: `k${at}` }))
  const reads = { keys: keys.map(({ name }) => name), members: [ada.email] }
  const entry = (action: string) => anEntry(account.id, { action, target: account.id })
  // More than Lua passes to a function at once.
  const audit = Array.from({ length: 4_200 }, () => entry('key.create'))
  const notified: (string | null)[] = []
  t.teardown(store.subscribe(({ digest }) => void notified.push(digest)))
  const made = await store.transact({
    ...{ accountId: account.id, reads, nowMs: NOW },
    *decide(state) {
      yield
      t.same(state, { ...NO_ACCOUNT })
      const members = [memberOf(account, ada)]
      return { write: { account, members, newKeys: keys, audit } }
    },
  })
  t.equal(made.kind, 'written')
  t.equal(await store.countKeys(account.id), keys.length)
  t.same(await allKeys(other, account.id), keys)
  t.match(await other.memberOf(account.id, ada.email), { role: 'member' })
  const page = { accountId: account.id, after: null, limit: 5_000 }
  t.equal((await other.auditTrail.page(page)).length, audit.length)
  t.ok(
    notified.includes(null) || keys.every(({ digest }) => notified.includes(digest)),
    'caches drop what they know of the keys',
  )

  const digest = keys[0]?.digest ?? ''
  const conflict = async (newKey: ApiKey, name: string) => {
    const decision = { write: { newKeys: [newKey], keys, audit: [entry('x')] } }
    const answer = await change(store, account, () => decision, reads)
    t.match(answer, { kind: 'conflict', conflict: name })
  }
  await conflict(aKey(account.id, { digest }), 'id_taken')
  await conflict(aKey(account.id, { name: 'k1' }), 'name_taken')
  const refused = await change(other, account, ({ keys: { size } }) => ({ refuse: size }), reads)
  t.same(refused, { kind: 'refused', reason: keys.length })
  t.equal(await store.countKeys(account.id), keys.length, 'a refused change leaves nothing')

  // Each adds one to every key; changes of one key come between.
  const addOne = (by: Store, which: AccountReads) =>
    change(
      by,
      account,
      ({ keys: found }) => {
        const counted = [...found.values()].map((key) => {
          return { ...key, labels: { count: String(Number(key.labels?.['count'] ?? 0) + 1) } }
        })
        return { write: { keys: counted, audit: [] } }
      },
      which,
    )
  const one = { keys: ['k7'] }
  const all = [store, other, store, other].map((by) => addOne(by, reads))
  const singles = [store, other, store].map((by) => addOne(by, one))
  t.ok((await Promise.all([...all, ...singles])).every(({ kind }) => kind === 'written'))
  for (const { name, labels } of await allKeys(store, account.id)) {
    t.same(labels, { count: name === 'k7' ? '7' : '4' }, 'no update is lost')
  }
}

/** A change whose account is changed by `other` between its reads and its first decision. */
async function overtaken<Reason>(
  store: Store,
  account: Account,
  decide: (state: AccountState) => AccountDecision<Reason>,
  other: () => Promise<{ kind: string }>,
) {
  let [isStarted, isDone] = [false, false]
  const kinds: string[] = []
  const start = async () => {
    try {
      kinds.push((await other()).kind)
    } finally {
      isDone = true
    }
  }
  // Enough names for every engine to decide in turns of the event loop.
  const keys = Array.from({ length: 150 }, (_, at) => `none${at}`)
  const result = await store.transact({
    ...{ accountId: account.id, reads: { keys }, nowMs: NOW },
    *decide(state) {
      if (!isStarted) void start()
      isStarted = true
      while (!isDone) yield
      return decide(state)
    },
  })
  return [...kinds, result.kind]
}

/** Two moves of one account to the same parent, one of which has read the account before the other one. */
export async function overtakenMoves(t: Test, newUrl: NewUrl): Promise<void> {
  const url = await newUrl(t)
  const [store, other] = [await openStore(url), await openStore(url)]
  t.teardown(() => Promise.all([store.close(), other.close()]))
  const [from, to] = [anAccount(), anAccount()]
  const account = anAccount({ parentId: from.id })
  for (const each of [from, to, account]) t.equal(await putAccount(store, each), 'created')
  const decide = ({ account: is }: AccountState): AccountDecision<string> => {
    if (is === null || is.parentId === to.id) return { refuse: 'unchanged' }
    return { write: { account: { ...is, parentId: to.id }, audit: [] } }
  }
  const kinds = await overtaken(store, account, decide, () => change(other, account, decide))
  t.same(kinds, ['written', 'refused'])
  t.equal((await store.accountById(account.id))?.parentId, to.id)
  t.same(await store.childrenOf(to.id), [account.id], 'the tree has the parent of the record')
  t.same(await store.childrenOf(from.id), [])
  const purge = () => ({ write: { purge: true, audit: [] } }) as const
  t.match(await change(store, to, purge), { kind: 'conflict', conflict: 'has_children' })
  t.equal((await change(store, from, purge)).kind, 'written')
}

/** A new account that is purged after a change has read it. */
export async function overtakenByPurge(t: Test, newUrl: NewUrl): Promise<void> {
  const url = await newUrl(t)
  const [store, other] = [await openStore(url), await openStore(url)]
  t.teardown(() => Promise.all([store.close(), other.close()]))
  const [account, next, ada] = [anAccount(), anAccount(), aUser()]
  await store.users.create(ada)
  for (const each of [account, next]) t.equal(await putAccount(store, each), 'created')
  const key = aKey(account.id)
  const decide = ({ account: is }: AccountState): AccountDecision<string> => {
    if (is === null) return { refuse: 'absent' }
    const audit = [anEntry(account.id, { action: 'key.create', target: key.id })]
    return { write: { newKeys: [key], members: [memberOf(account, ada)], audit } }
  }
  const purge = () => ({ write: { purge: true, audit: [] } }) as const
  const kinds = await overtaken(store, account, decide, () => change(other, account, purge))
  t.same(kinds, ['written', 'refused'], 'no secret is given for a key that does not exist')
  t.equal(await store.findKey(key.digest), null)
  t.same(await allKeys(store, account.id), [])
  t.equal(await store.countKeys(account.id), 0)
  t.same(await store.membersOf(account.id), [])
  t.same(await store.users.memberships(ada.id), [])
  t.same(await actions(store, account.id), [])
  t.equal(await putKey(store, { ...key, accountId: next.id }, null), 'created', 'nothing is left of the key')
}

/** Accounts that are moved and purged at the same time, by two processes. */
export async function movesAndPurges(t: Test, newUrl: NewUrl): Promise<void> {
  const url = await newUrl(t)
  const [store, other] = [await openStore(url), await openStore(url)]
  t.teardown(() => Promise.all([store.close(), other.close()]))
  const [from, to] = [anAccount(), anAccount()]
  const accounts = Array.from({ length: 30 }, () => anAccount({ parentId: from.id }))
  for (const each of [from, to, ...accounts]) t.equal(await putAccount(store, each), 'created')
  const move = ({ account: is }: AccountState): AccountDecision<string> => {
    if (is === null) return { refuse: 'absent' }
    return { write: { account: { ...is, parentId: to.id }, audit: [] } }
  }
  const purge = ({ account: is }: AccountState): AccountDecision<string> => {
    return is === null ? { refuse: 'absent' } : { write: { purge: true, audit: [] } }
  }
  for (const [at, account] of accounts.entries()) {
    const moved = change(store, account, move)
    // A move takes several round trips on Redis: the purges begin at each of them.
    await delay(at / 6)
    const purges = await Promise.all([change(other, account, purge), change(store, account, purge)])
    t.same(purges.map(({ kind }) => kind).sort(), ['refused', 'written'])
    await moved
  }
  for (const { id } of accounts) t.equal(await store.accountById(id), null)
  for (const { id } of [from, to]) t.same(await store.childrenOf(id), [], 'the tree has no purged account')
  for (const each of [from, to]) t.equal((await change(store, each, purge)).kind, 'written')
}
