/**
 * Goal: any sequence of requests to the admin API leaves the state of a model in memory, and a token of an
 * account sees and changes nothing outside its tree.
 * Method: random walks over a few names on both stores; each reply and each list is compared with the model.
 */
import t, { type Test } from 'tap'
import { isObject, type JsonObject } from '../../../src/base/json.js'
import { textIn } from '../../../src/accounts/changes/field-types.js'
import { dice } from '../../helpers/seeded-random.js'
import { onBothStores, startAdmin, type AdminStage, type Reply } from './admin-stage.js'
import { IS_LONG } from '../../helpers/long-suite.js'

const STEPS = IS_LONG ? 2_000 : 100
/** Requests of one token, which has 50 at once. */
const PER_TOKEN = 20
const ROOTS = ['acme', 'other']
const NAMES = ['acme--a', 'acme--b', 'c', 'd']
const KEYS = ['ci', 'dev']
const PLANS = ['starter', 'pro', 'max']

interface ModelAccount {
  plan: string
  parent: string
  labels: Record<string, string>
  disabled: boolean
  etag: unknown
  /** Live keys with their rate limits. */
  readonly keys: Map<string, number | null>
}

function itemsOf({ json }: Reply): JsonObject[] {
  return Array.isArray(json['items']) ? json['items'].filter(isObject) : []
}

async function walk(t: Test, stage: AdminStage, seed: number): Promise<void> {
  const { ask, makeToken, store } = stage
  const next = dice(seed)
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)] as T
  for (const root of ROOTS) await ask('PUT', `/accounts/${root}`, { body: { plan: 'max' } })
  const scope = await store.accountByName('acme')
  const model = new Map<string, ModelAccount>()
  const inTree = (name: string): boolean => model.get(name)?.parent === 'acme'
  let tokens = { all: '', own: '' }
  for (let step = 0; step < STEPS; step += 1) {
    if (step % PER_TOKEN === 0) {
      const scopes = ['accounts:write', 'keys:write']
      tokens = { all: await makeToken(scopes), own: await makeToken(scopes, scope?.id) }
    }
    const isOwn = next() < 0.4
    const token = isOwn ? tokens.own : tokens.all
    const name = pick(NAMES)
    const known = model.get(name)
    const path = `/accounts/${name}`
    const isHidden = isOwn && known !== undefined && !inTree(name)
    const action = pick(['put', 'put', 'patch', 'disable', 'purge', 'get', 'key', 'revoke', 'list'])
    const title = `${seed}/${step}: ${action} ${name}${isOwn ? ' by acme' : ''}`
    switch (action) {
      case 'put': {
        const parent = pick(ROOTS)
        const labels = { step: String(step % 3) }
        const body = { plan: pick(PLANS), parent, labels }
        const reply = await ask('PUT', path, { token, body })
        if (isHidden) t.match(reply, { status: 409, json: { kind: 'name_taken' } }, title)
        else if (isOwn && parent !== 'acme') t.equal(reply.status, 403, title)
        else if (isOwn && known === undefined && !name.startsWith('acme--')) {
          t.match(reply, { status: 400, json: { field: 'name' } }, title)
        } else {
          t.equal(reply.status, known === undefined ? 201 : 200, title)
          const keys = known?.keys ?? new Map<string, number | null>()
          const isEqual =
            known?.plan === body.plan &&
            known.parent === parent &&
            known.labels['step'] === labels.step &&
            known.labels['team'] === undefined &&
            !known.disabled
          if (known !== undefined) t.equal(reply.json['etag'] === known.etag, isEqual, title)
          model.set(name, { ...body, disabled: false, etag: reply.json['etag'], keys })
        }
        break
      }
      case 'patch': {
        const body = { labels: { team: next() < 0.5 ? 'blue' : null } }
        const reply = await ask('PATCH', path, { token, body })
        if (known === undefined || isHidden) t.equal(reply.status, 404, title)
        else {
          t.equal(reply.status, 200, title)
          const { team, ...others } = known.labels
          const labels = body.labels.team === null ? others : { ...others, team: body.labels.team }
          t.equal(reply.json['etag'] === known.etag, team === (body.labels.team ?? undefined), title)
          Object.assign(known, { labels, etag: reply.json['etag'] })
        }
        break
      }
      case 'disable': {
        const reply = await ask('DELETE', path, { token })
        if (known === undefined || isHidden) t.equal(reply.status, 404, title)
        else {
          t.match(reply, { status: 200, json: { disabled: true } }, title)
          t.equal(reply.json['etag'] === known.etag, known.disabled, title)
          Object.assign(known, { disabled: true, etag: reply.json['etag'] })
        }
        break
      }
      case 'purge': {
        const reply = await ask('DELETE', `${path}?purge=true`, { token })
        t.equal(reply.status, known === undefined || isHidden ? 404 : 204, title)
        if (!isHidden) model.delete(name)
        break
      }
      case 'get': {
        const reply = await ask('GET', path, { token })
        if (known === undefined || isHidden) t.equal(reply.status, 404, title)
        else {
          const { plan, parent, labels, disabled, etag } = known
          t.equal(reply.status, 200, title)
          const { json } = reply
          t.same({ ...json, ...{ plan, parent, labels, disabled, etag } }, json, title)
        }
        break
      }
      case 'key': {
        const key = pick(KEYS)
        const limit = pick([null, 5, 10])
        const body = { limits: { requests_per_minute: limit } }
        const reply = await ask('PUT', `${path}/keys/${key}`, { token, body })
        if (known === undefined || isHidden) t.equal(reply.status, 404, title)
        else {
          t.equal(reply.status, known.keys.has(key) ? 200 : 201, title)
          t.equal(typeof reply.json['secret'], known.keys.has(key) ? 'undefined' : 'string', title)
          known.keys.set(key, limit)
        }
        break
      }
      case 'revoke': {
        const key = pick(KEYS)
        const reply = await ask('DELETE', `${path}/keys/${key}`, { token })
        const isGone = known === undefined || isHidden
        // A revoked key answers again until its account is purged.
        if (isGone) t.equal(reply.status, 404, title)
        else if (known.keys.delete(key)) t.equal(reply.status, 200, title)
        break
      }
      default: {
        const names = itemsOf(await ask('GET', '/accounts', { token })).map((item) => item['name'])
        const expected = [...model.keys()].filter((each) => !isOwn || inTree(each))
        const seen = names.filter((each) => NAMES.includes(textIn(each)))
        t.same(seen, expected.sort(), title)
        if (isOwn) t.notOk(names.includes('other'), title)
        if (known === undefined || isHidden) break
        const keys = itemsOf(await ask('GET', `${path}/keys`, { token }))
        t.same(
          keys.map((key) => [key['name'], (key['limits'] as JsonObject)['requests_per_minute'] ?? null]),
          [...known.keys].sort(([a], [b]) => (a < b ? -1 : 1)),
          title,
        )
      }
    }
  }
}

onBothStores(t, 'random walks', async (t, settings) => {
  const stage = await startAdmin(t, settings)
  await walk(t, stage, 7)
})
