/**
 * Goal: usage, requests, the audit trail and the configuration are those of the dashboard and the ops port.
 * Method: ledger entries and requests to a whole gateway on both stores, as JSON and as CSV.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { COLUMNS } from '../../../src/ledger/export-columns.js'
import type { JsonObject } from '../../../src/base/json.js'
import { aRow } from '../../dashboard/fixtures/stage.js'
import { onBothStores, startAdmin, textOf } from './admin-stage.js'

/** Two days ago: older entries are removed. */
const DAY = Math.floor(Date.now() / 86_400_000 - 2) * 86_400_000
const day = (after: number): string => new Date(DAY + after * 86_400_000).toISOString()

function itemsOf(json: JsonObject, name = 'items'): JsonObject[] {
  const items = json[name]
  return Array.isArray(items) ? (items as JsonObject[]) : []
}

onBothStores(t, 'usage and requests', async (t, settings) => {
  const { ask, store, makeToken } = await startAdmin(t, settings)
  await ask('PUT', '/accounts/acme', { body: {} })
  await ask('PUT', '/accounts/research', { body: { parent: 'acme' } })
  await ask('PUT', '/accounts/ml', { body: { parent: 'research' } })
  const ids = new Map<string, string>()
  for (const name of ['acme', 'research', 'ml']) {
    ids.set(name, (await store.accountByName(name))?.id ?? '')
  }
  const key = await ask('PUT', '/accounts/ml/keys/ci', { body: {} })
  const keyId = textOf(key, 'id')
  const costs = { acme: 1_000, research: 20_000, ml: 300_000 }
  for (const [name, costNanoUsd] of Object.entries(costs)) {
    for (const at of [0, 1]) {
      const own = { costNanoUsd, atMs: DAY + at * 86_400_000 + 5, labels: `team=${name}` }
      const outcome = at === 0 ? 'ok' : 'rate_limited'
      const units = name === 'ml' ? 'audio_second=61.5 image=2 output_image=1120' : null
      const ingress = name === 'ml' ? 'image_edits' : 'chat'
      await store.ledger.settle(aRow(ids.get(name) ?? '', { ...own, keyId, outcome, units, ingress }))
    }
  }
  const span = `from=${day(0)}&to=${day(2)}`
  const of = async (by: string, more = ''): Promise<JsonObject> => {
    const { json } = await ask('GET', `/usage?by=${by}&${span}${more}`)
    const sums: JsonObject = {}
    for (const row of itemsOf(json, 'rows')) {
      sums[JSON.stringify(row['group']).slice(1, -1)] = row['cost_nano_usd']
    }
    return sums
  }
  t.same(await of('account'), { ml: 600_000, research: 40_000, acme: 2_000 })
  t.same(await of('parent'), { research: 600_000, acme: 42_000 })
  t.same(await of('root'), { acme: 642_000 })
  t.same(await of('key'), { [keyId]: 642_000 })
  t.same(await of('label:team'), { ml: 600_000, research: 40_000, acme: 2_000 })
  t.same(await of('day'), { [day(0).slice(0, 10)]: 321_000, [day(1).slice(0, 10)]: 321_000 })
  t.same(await of('client_format'), { image_edits: 600_000, chat: 42_000 })
  t.same(await of('client_format', '&account=research&tree=true'), { image_edits: 600_000, chat: 40_000 })
  t.same(await of('account', '&client_format=chat'), { research: 40_000, acme: 2_000 })
  const months = Object.values(await of('month')).map(Number)
  t.equal(
    months.reduce((sum, cost) => sum + cost, 0),
    642_000,
  )
  t.same(await of('member', '&account=ml'), { 'token:robot': 600_000 })
  t.same(await of('account', '&account=research&tree=true'), { ml: 600_000, research: 40_000 })
  t.same(await of('account', '&account=research'), { research: 40_000 })
  const part = `from=${day(0).replace('.000Z', '.001Z')}&to=${day(0.5)}`
  const { json } = await ask('GET', `/usage?by=model&${part}`)
  t.match(json, {
    ...{ by: 'model', from: day(0).replace('.000Z', '.001Z') },
    total: { requests: 3, failed: 0, cost_nano_usd: 321_000, cost_usd: '0.000321000' },
  })
  t.same((json['total'] as JsonObject)['units'], { image: 2, audio_second: 61.5 })
  for (const by of ['account', 'label:team', 'month', 'model', 'key', 'upstream']) {
    const all = (await ask('GET', `/usage?by=${by}&${span}`)).json
    t.same((all['total'] as JsonObject)['units'], { image: 4, audio_second: 123 }, by)
  }
  const [ml] = itemsOf((await ask('GET', `/usage?by=account&${span}`)).json, 'rows')
  t.match(ml, { group: 'ml', units: { image: 4, audio_second: 123 } })
  t.match(await ask('GET', '/usage?by=colour'), { status: 400, json: { field: 'by' } })
  t.match(await ask('GET', `/usage?from=${day(1)}&to=${day(0)}`), {
    status: 400,
    json: { field: 'to' },
  })
  const csv = await ask('GET', `/usage?by=root&${span}`, { headers: { accept: 'text/csv' } })
  t.match(csv.headers.get('content-type'), /^text\/csv/)
  t.equal(
    csv.text,
    'group,requests,failed,input_tokens,output_tokens,cost_nano_usd,cost_usd,unpriced_requests,units\r\n' +
      `acme,6,3,${await tokens()},642000,0.000642000,0,audio_second=123 image=4\r\n`,
  )
  async function tokens(): Promise<string> {
    const total = (await ask('GET', `/usage?by=root&${span}`)).json['total'] as JsonObject
    return `${JSON.stringify(total['input_tokens'])},${JSON.stringify(total['output_tokens'])}`
  }

  const first = await ask('GET', `/requests?limit=4&account=acme&tree=true&${span}`)
  const items = itemsOf(first.json)
  t.equal(items.length, 4)
  t.same(
    Object.keys(items[0] ?? {}),
    COLUMNS.map(([name]) => name),
  )
  const cursor = textOf(first, 'next_cursor')
  const rest = await ask('GET', `/requests?limit=4&account=acme&tree=true&${span}&cursor=${cursor}`)
  t.match([itemsOf(rest.json).length, rest.json['next_cursor']], [2, null])
  const all = [...items, ...itemsOf(rest.json)].map((item) => item['request_id'])
  t.equal(new Set(all).size, 6, 'each exactly once')
  const file = await ask('GET', `/requests?format=csv&${span}`)
  t.equal(file.text.split('\r\n')[0], COLUMNS.map(([name]) => name).join(','))
  t.equal(file.text.trim().split('\r\n').length, 7)
  t.equal(itemsOf((await ask('GET', `/requests?outcome=rate_limited&${span}`)).json).length, 3)
  const edits = await ask('GET', `/requests?client_format=image_edits&${span}`)
  t.same(
    itemsOf(edits.json).map((item) => item['ingress']),
    ['image_edits', 'image_edits'],
  )
  const csvOfChats = await ask('GET', `/requests?client_format=chat&format=csv&${span}`)
  t.equal(csvOfChats.text.trim().split('\r\n').length, 5)

  const month = day(0).slice(0, 7)
  const isOneMonth = month === day(1).slice(0, 7)
  const statement = await ask('GET', `/accounts/acme/statements/${month}`)
  t.match(statement.json, { account: 'acme', month, lines: [{ account: 'acme', key_id: keyId }] })
  const sum = itemsOf(statement.json, 'lines').map((line) => Number(line['cost_nano_usd']))
  t.equal(
    sum.reduce((all, cost) => all + cost, 0),
    isOneMonth ? 642_000 : 321_000,
  )
  const days = isOneMonth ? 2 : 1
  const units = { image: 2 * days, audio_second: 61.5 * days }
  t.same((statement.json['total'] as JsonObject)['units'], units)
  const table = await ask('GET', `/accounts/acme/statements/${month}?format=csv`)
  t.match(table.text, /^account,key,key_id,model,requests,/)
  const split = await ask('GET', `/accounts/acme/statements/${month}?by=program`)
  t.match(split.json, { by: 'program', lines: [{ account: 'acme', key_id: keyId, group: /./ }] })
  const byFormat = await ask('GET', `/accounts/acme/statements/${month}?by=client_format`)
  const formats = itemsOf(byFormat.json, 'lines').map((line) => line['group'])
  t.same([...new Set(formats)].sort(), ['chat', 'image_edits'], 'each request by its format')
  t.same(byFormat.json['total'], statement.json['total'])
  t.match(await ask('GET', `/accounts/acme/statements/${month}?by=team`), {
    status: 400,
    json: { field: 'by' },
  })
  t.match(await ask('GET', '/accounts/acme/statements/2026-13'), {
    status: 400,
    json: { field: 'month' },
  })
  t.equal((await ask('GET', `/accounts/none/statements/${month}`)).status, 404)

  const token = await makeToken(['usage:read', 'audit:read'], ids.get('research'))
  t.equal((await ask('GET', `/accounts/acme/statements/${month}`, { token })).status, 404)
  const own = await ask('GET', `/usage?${span}`, { token })
  t.match(own.json, { total: { cost_nano_usd: 640_000 } }, 'only its tree')
  t.equal((await ask('GET', `/usage?account=acme&${span}`, { token })).status, 404)
  t.equal(itemsOf((await ask('GET', `/requests?${span}`, { token })).json).length, 4)
  const lines = itemsOf((await ask('GET', '/audit', { token })).json)
  t.same([...new Set(lines.map((line) => line['account']))].sort(), ['ml', 'research'])
  const audit = await ask('GET', '/audit?format=csv&limit=2')
  t.match(audit.text, /^id,at,actor,address,request_id,action,account,target,before,after\r\n/)
  t.match(audit.headers.get('link'), /cursor=.*rel="next"/)
})

void t.test('the configuration', async (t) => {
  const { ask, gateway } = await startAdmin(t)
  const config = await ask('GET', '/config')
  t.match(config.json, { generation: 1, held: null, last_error: null })
  t.notMatch(config.text, /"emulated"/, 'secrets are masked')
  const list = await ask('GET', '/generations')
  t.match(list.json, { generation: 1, generations: [{ generation: 1, in_force: true }] })
  t.match(await ask('GET', '/generations/1'), {
    status: 200,
    json: { generation: 1, in_force: true },
  })
  t.equal((await ask('GET', '/generations/99')).status, 404)
  t.match(await ask('POST', '/generations/1/rollback', { body: { reason: 'test' } }), {
    status: 400,
    json: { detail: /in force already/ },
  })
  t.equal((await ask('POST', '/generations/99/rollback')).status, 404)
  t.match(await ask('POST', '/generations/1/rollback', { body: { why: 'x' } }), {
    status: 400,
    json: { kind: 'unknown_field' },
  })
  const text = readFileSync(gateway.configFile, 'utf8')
  const moved = text.replace('{ prefix: gpt-, upstream: openai }', '{ prefix: gpt-, upstream: google }')
  const plan = await ask('POST', '/plan', { body: { config: moved } })
  t.equal(plan.status, 200, plan.text)
  t.match(plan.json, { source: 'files', moves: [{ to: { upstream: 'google' } }] })
  t.match(await ask('POST', '/plan', { body: { config: 'routes: 3' } }), {
    status: 400,
    json: { field: 'config', detail: /routes/ },
  })
})

onBothStores(t, 'denials', async (t, settings) => {
  const identity = 'name: ci, issuer: "https://issuer.example", audience: [sluice], account: test'
  const more = `identity:\n  - { ${identity}, key_name: ci, jwks_uri: "https://issuer.example/keys" }\n`
  const { ask, makeToken } = await startAdmin(t, { ...settings, more })
  t.match(await ask('POST', '/denials', { body: { identity: 'co', sub: 'x' } }), {
    status: 400,
    json: { field: 'identity', fix: /ci/ },
  })
  for (const more of [{}, { sub: 'x', jti: 'y' }]) {
    t.match(await ask('POST', '/denials', { body: { identity: 'ci', ...more } }), {
      status: 400,
      json: { field: 'sub' },
    })
  }
  const made = await ask('POST', '/denials', { body: { identity: 'ci', sub: 'x', reason: 'lost' } })
  t.match(made, {
    status: 201,
    json: { identity: 'ci', sub: 'x', jti: null, reason: 'lost', expires_at: null, etag: /^"/ },
  })
  const path = `/denials/${textOf(made, 'id')}`
  t.equal(made.headers.get('location'), `/admin/v1${path}`)
  t.same((await ask('GET', path)).json, made.json)
  t.match((await ask('GET', '/denials')).json, { items: [{ sub: 'x' }], next_cursor: null })
  const token = await makeToken(['keys:write'], (await idOf())[0])
  t.equal((await ask('GET', '/denials', { token })).status, 403)
  t.equal((await ask('DELETE', path)).status, 204)
  t.equal((await ask('DELETE', path)).status, 404)
  t.match(await ask('GET', '/audit?target=' + textOf(made, 'id')), {
    json: { items: [{ action: 'denial.remove', account: null }, { action: 'denial.create' }] },
  })

  async function idOf(): Promise<string[]> {
    return itemsOf((await ask('GET', '/accounts')).json).map((account) => {
      return typeof account['id'] === 'string' ? account['id'] : ''
    })
  }
})
