/**
 * Goal: a disabled user has no sign-in left when it is enabled again, and a role that a group of the identity
 * provider gives stays the group's when other values of the member change.
 * Method: the page, the admin API, `apply` and commands at a running gateway with a real provider, on both
 * stores.
 */
import t from 'tap'
import { createAdminToken } from '../../../src/accounts/admin-tokens.js'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { createUser } from '../../../src/accounts/members.js'
import { objectOf } from '../../../src/base/json.js'
import { oidcStartReply, sessionReply } from '../../../src/control/dashboard/schema/schema.js'
import { sluiceHere } from '../../cli/session.js'
import { onBothStores } from '../admin/admin-stage.js'
import { PASSWORD, startStage, type Browser } from '../../dashboard/fixtures/stage.js'
import { scene } from './oidc-stage.js'
import { knownHash } from '../../helpers/password.js'

onBothStores(t, 'sign-ins and links of before do not come back', async (t, settings) => {
  const stage = await startStage(t, settings)
  const { store, gateway } = stage
  const ada = await stage.account('ada@example.com')
  const root = await stage.signedIn('root@example.com', 'max', 'admin')
  const command = (action: string) => {
    return sluiceHere(['users', action, '--email', 'ada@example.com', '--config', gateway.configFile])
  }
  const page = (action: string) => {
    return root.ask('PATCH', `/users/${ada.id}`, { body: { disabled: action === 'disable' } })
  }
  for (const [name, change] of Object.entries({ command, page })) {
    const browser = stage.browser()
    t.equal((await browser.signIn('ada@example.com')).status, 200, name)
    const made = await root.ask('POST', `/users/${ada.id}/invite`, { body: {} })
    const { url } = objectOf(made.json['link'])
    const link = typeof url === 'string' ? url.split('#')[1] : ''
    await change('disable')
    t.equal((await browser.get('/keys')).status, 401, `${name}: at once`)
    await change('enable')
    t.equal((await store.users.byId(ada.id))?.disabled, false)
    t.equal((await browser.get('/keys')).status, 401, `${name}: the session`)
    const used = await stage.browser().ask('POST', '/reset', { body: { link, password: PASSWORD } })
    t.equal(used.status, 403, `${name}: the link`)
    t.equal(await store.signInTokens.end('device', ada.id, null), 0, `${name}: the device`)
  }
})

onBothStores(t, 'a role by a group ends with the group', async (t, settings) => {
  const stage = await scene(t, undefined, { ...settings, more: 'admin_api: { enabled: true }' })
  const { store, origin } = stage
  stage.configure({ more: ", roles: { accounts: { 'team-*': owner } }" })
  const { account } = await createAccount(store, { name: 'team-a', plan: 'max', password: null })
  await createUser(store, { email: 'root@example.com', role: 'admin', password: PASSWORD, hash: knownHash })
  const wish = { name: 'robot', scopes: ['accounts:write', 'keys:write'], createdBy: 'test', audit: () => [] }
  const { secret } = await createAdminToken(store, { ...wish, accountId: null })
  const ask = async (method: string, path: string, body: object) => {
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
    const reply = await fetch(`${origin}/admin/v1${path}`, { method, headers, body: JSON.stringify(body) })
    return { status: reply.status, json: objectOf(await reply.json()) }
  }
  const enter = async (browser: Browser, groups: readonly string[]) => {
    stage.provider.person = { email: 'ada@example.com', verified: true, sub: 'ada', groups }
    const started = await browser.ask('POST', '/oidc/start', { body: {} })
    const query = await stage.provider.visit(oidcStartReply.parse(started.json).url)
    const { status, json } = await browser.ask('POST', '/oidc/finish', { body: { query } })
    return status === 200 ? sessionReply.parse(json).accounts.map(({ role }) => role) : status
  }
  const path = '/accounts/team-a/members/ada@example.com'
  const document = (spec: object, labels: object) => ({
    documents: [{ kind: 'Member', metadata: { name: 'ada@example.com', account: 'team-a', labels }, spec }],
  })
  const changes: Readonly<Record<string, () => Promise<{ readonly status: number }>>> = {
    'labels by PATCH': () => ask('PATCH', path, { labels: { team: 'a' } }),
    'the same role by PUT': () => ask('PUT', path, { role: 'owner', labels: { team: 'b' } }),
    'the same role by apply': () => ask('POST', '/apply', document({ role: 'owner' }, { team: 'c' })),
  }
  for (const [name, change] of Object.entries(changes)) {
    t.strictSame(await enter(stage.browser(), ['team-a']), ['owner'], name)
    t.equal((await change()).status, 200, name)
    const member = await store.memberOf(account.id, 'ada@example.com')
    t.match(member, { role: null, groupRole: 'owner', labels: { team: /[abc]/ } }, name)
    t.equal(await enter(stage.browser(), []), 403, `${name}: the role left with the group`)
    t.equal(await store.memberOf(account.id, 'ada@example.com'), null, name)
  }

  // A lower role by hand is kept beside the group's.
  t.strictSame(await enter(stage.browser(), ['team-a']), ['owner'])
  const lowered = await ask('PUT', path, { role: 'viewer' })
  t.match(lowered, { status: 200, json: { role: 'owner' } }, 'the higher one counts')
  t.match(await store.memberOf(account.id, 'ada@example.com'), { role: 'viewer', groupRole: 'owner' })
  const again = await ask('PUT', path, { role: 'viewer' })
  t.equal(again.json['etag'], lowered.json['etag'], 'equal: nothing is written')
  t.strictSame(await enter(stage.browser(), []), ['viewer'])
})
