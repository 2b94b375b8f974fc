/**
 * Goal: no random sequence of calls shows a user anything of an account in which the user has no role, and
 * each call is allowed exactly if the roles at that moment allow it.
 * Method: random walks of calls of the dashboard's API, compared with a model in memory: who has which role
 * where, and who made which key. `SLUICE_LONG=1` makes all 500 walks.
 */
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import * as z from 'zod'
import type { AccountRole, GatewayRole } from '../../../../src/accounts/account.js'
import { createAccount } from '../../../../src/accounts/changes/change-accounts.js'
import { createUser, setMember } from '../../../../src/accounts/members.js'
import { ACCESS, type AccessName } from '../../../../src/control/dashboard/routing/access.js'
import { createdKeyReply } from '../../../../src/control/dashboard/schema/schema.js'
import type { JsonObject } from '../../../../src/base/json.js'
import { dice } from '../../../helpers/seeded-random.js'
import { aRow, PASSWORD, startStage, type Browser, type Stage } from '../../../dashboard/fixtures/stage.js'
import { IS_LONG } from '../../../helpers/long-suite.js'
import { knownHash } from '../../../helpers/password.js'

t.setTimeout(600_000)
const WALKS = IS_LONG ? 500 : 30
const STEPS = 8
const ACCOUNTS = 4
const USERS = 5
const ROLES = ['owner', 'member', 'viewer'] as const

interface ModelAccount {
  readonly id: string
  readonly name: string
  readonly requestId: string
  readonly parent: ModelAccount | null
}

interface ModelKey {
  readonly id: string
  readonly account: ModelAccount
  readonly maker: string
}

interface ModelUser {
  readonly email: string
  readonly gatewayRole: GatewayRole | null
  readonly roles: Map<ModelAccount, AccountRole>
  readonly browser: Browser
}

/** The state that the gateway must have. */
class Model {
  readonly accounts: ModelAccount[] = []
  readonly users: ModelUser[] = []
  readonly keys: ModelKey[] = []

  /** The roles in the account, and `above` for an owner of an account above it. */
  rolesIn({ roles }: ModelUser, account: ModelAccount): (AccountRole | 'above')[] {
    const own = roles.get(account)
    const found: (AccountRole | 'above')[] = own === undefined ? [] : [own]
    for (let { parent } = account; parent !== null; { parent } = parent) {
      if (roles.get(parent) === 'owner') found.push('above')
    }
    return found
  }

  /** `yes`, `own` or `no` with a role; null without one, when the account does not exist for the user. */
  permission(user: ModelUser, account: ModelAccount, name: AccessName): string | null {
    const { may } = ACCESS[name]
    const { gatewayRole } = user
    const roles = [...(gatewayRole === null ? [] : [gatewayRole]), ...this.rolesIn(user, account)]
    if (roles.length === 0) return null
    const all = roles.map((role) => may[role])
    return all.includes('yes') ? 'yes' : all.includes('own') ? 'own' : 'no'
  }

  isSignedOut({ gatewayRole, roles }: ModelUser): boolean {
    return gatewayRole === null && roles.size === 0
  }
}

async function setModel(stage: Stage): Promise<Model> {
  const model = new Model()
  const { store } = stage
  for (let at = 0; at < ACCOUNTS; at += 1) {
    const parent = model.accounts[at - 2] ?? null
    const wanted = { name: `acct${at}x`, plan: 'max', password: null } as const
    const { account } = await createAccount(store, {
      ...wanted,
      ...(parent === null ? {} : { parentId: parent.id }),
    })
    const row = aRow(account.id, { keyId: `key_of_acct${at}x` })
    await store.ledger.settle(row)
    model.accounts.push({ id: account.id, name: account.name, requestId: row.requestId, parent })
  }
  for (let at = 0; at < USERS + 2; at += 1) {
    const gatewayRole = at === USERS ? 'admin' : at === USERS + 1 ? 'auditor' : null
    const email = `user${at}@example.com`
    const { user } = await createUser(store, {
      email,
      role: gatewayRole,
      password: PASSWORD,
      hash: knownHash,
    })
    const roles = new Map<ModelAccount, AccountRole>()
    for (const [index, each] of model.accounts.entries()) {
      const role = ROLES[(at + index) % (ROLES.length + 1)]
      if (gatewayRole !== null || role === undefined) continue
      const account = await store.accountById(each.id)
      if (account === null) throw new Error('the account is gone')
      await setMember(store, { account, user, role, nowMs: 1, audit: () => [] })
      roles.set(each, role)
    }
    const browser = stage.browser()
    await browser.signIn(email)
    model.users.push({ email, gatewayRole, roles, browser })
  }
  return model
}

const keyList = z.object({ keys: z.array(z.object({ id: z.string() })) })

void t.test(`${WALKS} random walks show nothing of other accounts`, { timeout: 600_000 }, async (t) => {
  const stage = await startStage(t)
  const model = await setModel(stage)
  const random = dice(31)
  const pick = <Item>(items: readonly Item[]): Item => {
    const item = items[Math.floor(random() * items.length)]
    if (item === undefined) throw new Error('nothing to pick from')
    return item
  }
  const wrong: string[] = []
  let calls = 0

  /** Sends the call and compares its status; no reply names an account without a role of the user. */
  const check = async (
    user: ModelUser,
    [method, path]: readonly [string, string],
    expected: number,
    body?: JsonObject,
  ) => {
    calls += 1
    let reply = await user.browser.ask(method, path, { body })
    // New keys of an account have a limit, which is that of no role.
    while (reply.status === 429) {
      await delay(1_000)
      reply = await user.browser.ask(method, path, { body })
    }
    const status = model.isSignedOut(user) ? 401 : expected
    const what = `${user.email} ${method} ${path}: ${reply.status}, expected ${status}`
    if (reply.status !== status) wrong.push(`${what}: ${reply.text.slice(0, 200)}`)
    for (const account of model.accounts) {
      const isVisible = user.gatewayRole !== null || model.rolesIn(user, account).length > 0
      const isLeak = reply.text.includes(account.id) || reply.text.includes(account.name)
      if (!isVisible && isLeak) wrong.push(`${what}: it shows ${account.name}`)
    }
    return reply
  }
  const statusOf = (permission: string | null, allowed: number): number =>
    permission === null ? 404 : permission === 'no' ? 403 : allowed

  const steps: readonly ((user: ModelUser, account: ModelAccount, query: string) => Promise<void>)[] = [
    async (user, account, query) => {
      const permission = model.permission(user, account, 'read keys')
      const reply = await check(user, ['GET', `/keys${query}`], statusOf(permission, 200))
      if (reply.status !== 200) return
      const seen = keyList.parse(reply.json).keys.map(({ id }) => id)
      const isSeen = ({ account: of, maker }: ModelKey): boolean =>
        of === account && (permission === 'yes' || maker === user.email)
      const due = model.keys.filter(isSeen).map(({ id }) => id)
      if (seen.sort().join() !== due.sort().join()) wrong.push(`${user.email} sees other keys`)
    },
    async (user, account, query) => {
      const permission = model.permission(user, account, 'make keys')
      const body = { name: `of ${account.name}` }
      const reply = await check(user, ['POST', `/keys${query}`], statusOf(permission, 201), body)
      if (reply.status !== 201) return
      const { id, accountId } = createdKeyReply.parse(reply.json).key
      if (accountId !== account.id) wrong.push('a key of another account')
      model.keys.push({ id, account, maker: user.email })
    },
    async (user, account, query) => {
      if (model.keys.length === 0) return
      const key = pick(model.keys)
      const permission = model.permission(user, account, 'change keys')
      const isOwn = permission === 'yes' || key.maker === user.email
      const found = key.account === account && isOwn ? 200 : 404
      const isRevoked = random() < 0.3
      const path = `/keys/${key.id}${query}`
      const call = isRevoked ? (['DELETE', path] as const) : (['PATCH', path] as const)
      const body = isRevoked ? undefined : { expiresAtMs: null }
      const reply = await check(user, call, statusOf(permission, found), body)
      if (isRevoked && reply.status === 200) model.keys.splice(model.keys.indexOf(key), 1)
    },
    async (user, account, query) => {
      const of = pick(model.accounts)
      const permission = model.permission(user, account, 'usage')
      const found = of === account ? 200 : 404
      await check(user, ['GET', `/requests/${of.requestId}${query}`], statusOf(permission, found))
      await check(user, ['GET', `/requests${query}`], statusOf(permission, 200))
    },
    async (user, account, query) => {
      const permission = model.permission(user, account, 'read account')
      await check(user, ['GET', `/members${query}`], statusOf(permission, 200))
      await check(user, ['GET', `/audit${query}`], statusOf(permission, 200))
    },
    async (user, account, query) => {
      const other = pick(model.users.slice(0, USERS))
      const permission = model.permission(user, account, 'change members')
      const path = `/members/${encodeURIComponent(other.email)}${query}`
      const isMember = other.roles.has(account)
      if (random() < 0.4) {
        const found = isMember ? 200 : 404
        const reply = await check(user, ['DELETE', path], statusOf(permission, found))
        if (reply.status === 200) other.roles.delete(account)
        return
      }
      const role = pick(ROLES)
      const allowed = isMember ? 200 : 201
      const reply = await check(user, ['PUT', path], statusOf(permission, allowed), { role })
      if (reply.status >= 300) return
      // Its session has ended with its last role.
      const isBack = model.isSignedOut(other)
      other.roles.set(account, role)
      if (isBack) await other.browser.signIn(other.email)
    },
    async (user) => {
      const isGateway = user.gatewayRole !== null
      await check(user, ['GET', '/accounts'], isGateway ? 200 : 403)
      await check(user, ['GET', '/live?account=all'], isGateway ? 200 : 404)
    },
  ]
  for (let walk = 0; walk < WALKS; walk += 1) {
    const user = pick(model.users)
    for (let step = 0; step < STEPS; step += 1) {
      const account = pick(model.accounts)
      const query = `?account=${random() < 0.5 ? account.id : account.name}`
      await pick(steps)(random() < 0.2 ? pick(model.users) : user, account, query)
    }
  }
  t.strictSame(wrong.slice(0, 5), [], `${calls} calls of ${WALKS} walks`)
  t.equal(wrong.length, 0)
  t.ok(calls > WALKS * STEPS * 0.9, `${calls} calls`)
})
