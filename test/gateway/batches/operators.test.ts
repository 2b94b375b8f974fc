/**
 * Goal: operators list, read and cancel batches of all accounts, through the admin API and the command; a
 * token of an account does so with those of its own and below, and no reply has a line.
 * Method: batches of two accounts on a queue whose upstream refuses each line for now, with both stores.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { createAdminToken } from '../../../src/accounts/admin-tokens.js'
import { isObject, type JsonObject } from '../../../src/base/json.js'
import { command } from '../../../src/cli/batches.js'
import { withStore, type OpenStore } from '../../../src/cli/with-store.js'
import { batchesReply, batchReply } from '../../../src/control/dashboard/schema/schema.js'
import { openStore } from '../../../src/store/open-store.js'
import type { Store } from '../../../src/store/store.js'
import { assertDeclared } from '../../control/admin/admin-stage.js'
import { aRow, Browser } from '../../dashboard/fixtures/stage.js'
import type { TestGateway } from '../../helpers/gateway.js'
import { batchOf, ended, openBatchStage, textOf } from './batch-stage.js'
import { PLACES_OF_DAY } from './places-of-day.js'

t.setTimeout(120_000)

const LINES = ['one', 'two', 'three'].map((word) => ({
  ...{ model: 'gpt-5.5', max_completion_tokens: 50 },
  messages: [{ role: 'user', content: word }],
}))

/** The batches of a list. */
function idsIn({ items }: JsonObject): unknown[] {
  return Array.isArray(items) ? items.map((item) => (isObject(item) ? item['id'] : null)) : []
}

function cursorIn({ next_cursor: cursor }: JsonObject): string {
  return typeof cursor === 'string' ? cursor : ''
}

/** Runs `sluice batches` with the words. */
async function sluiceBatches({ configFile }: TestGateway, ...words: string[]) {
  const lines: string[] = []
  const print = (line: string): void => void lines.push(line)
  const terminal = {
    out: print,
    err: print,
    ready: () => Promise.resolve(),
    input: () => Promise.resolve(''),
  }
  const open: OpenStore = (config, work) => withStore(config, work, { terminal })
  const status = process.exitCode
  await command(open).parseAsync([...words, '--config', configFile], { from: 'user' })
  const own = process.exitCode ?? 0
  process.exitCode = status
  return { status: own, text: lines.join('\n') }
}

for (const place of PLACES_OF_DAY) {
  void t.test(`${place.store}: batches are listed, read and cancelled by operators`, async (t) => {
    const server = createServer((req, res) => {
      req.resume().once('end', () => {
        res.writeHead(429, { 'content-type': 'application/json' }).end('{"error":{"message":"slow down"}}')
      })
    }).listen(0, '127.0.0.1')
    t.teardown(() => server.close())
    await once(server, 'listening')
    const { gateway, client, other } = await openBatchStage(t, place, {
      upstreams: { openai: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` },
      upstreamOptions: 'operations: { batch: queue }',
      more: 'admin_api: { enabled: true }\n',
    })
    const store = await openStore(gateway.store)
    t.teardown(() => store.close())
    const first = await batchOf(client, textOf(LINES))
    const second = await batchOf(other, textOf(LINES))
    const owner = await store.accountByEmail('other@example.com')
    const tokenOf = async (scopes: readonly string[], accountId: string | null = null): Promise<string> => {
      const wish = { name: 'robot', scopes, accountId, createdBy: 'test', audit: () => [] }
      return (await createAdminToken(store, wish)).secret
    }
    const reader = await tokenOf(['requests:read'])
    const writer = await tokenOf(['batches:write'])
    const theirs = await tokenOf(['batches:write'], owner?.id ?? '')
    const audit = await tokenOf(['audit:read'])
    const ask = async (token: string, path: string, body?: object) => {
      const reply = await fetch(`${gateway.origin}/admin/v1${path}`, {
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
      })
      const json: unknown = await reply.json()
      assertDeclared(body === undefined ? 'GET' : 'POST', path, reply, json)
      return { status: reply.status, json: isObject(json) ? json : {} }
    }

    const all = await ask(reader, '/batches')
    t.same(idsIn(all.json), [second.id, first.id], 'newest first')
    t.notMatch(JSON.stringify(all.json), /three/, 'without lines')
    const page = await ask(reader, '/batches?limit=1')
    t.same(idsIn(page.json), [second.id])
    const next = await ask(reader, `/batches?limit=1&cursor=${cursorIn(page.json)}`)
    t.same([idsIn(next.json), next.json['next_cursor']], [[first.id], null])
    t.same(idsIn((await ask(reader, `/batches?account=${owner?.name}`)).json), [second.id])
    t.same(idsIn((await ask(reader, '/batches?state=completed')).json), [])
    t.match(await ask(reader, '/batches?state=odd'), { status: 400, json: { field: 'state' } })
    t.same(idsIn((await ask(theirs, '/batches')).json), [second.id], 'of its account alone')
    t.match(await ask(reader, `/batches/${second.id}`), {
      status: 200,
      json: {
        ...{ id: second.id, account: owner?.name, state: /validating|in_progress/, model: 'gpt-5.5' },
        ...{ upstream: 'openai', form: 'queue', request_counts: { total: 3 }, ended_at: null },
      },
    })
    t.equal((await ask(theirs, `/batches/${first.id}`)).status, 404)
    t.equal((await ask(theirs, `/batches/${first.id}/cancel`, {})).status, 404)
    t.equal((await ask(reader, `/batches/${first.id}/cancel`, {})).status, 403)
    t.equal((await ask(reader, '/batches/batch_x')).status, 404)

    const stopped = await ask(writer, `/batches/${first.id}/cancel`, { reason: 'wrong model' })
    t.match(stopped, { status: 200, json: { id: first.id, state: 'cancelling' } })
    t.equal((await ask(writer, `/batches/${first.id}/cancel`, {})).status, 200, 'again')
    t.equal((await ended(client, first.id)).status, 'cancelled')
    t.match(await ask(writer, `/batches/${first.id}/cancel`, {}), {
      status: 400,
      json: { detail: /has ended/ },
    })

    const listed = await sluiceBatches(gateway, 'list', '--account', owner?.name ?? '')
    t.match(listed, { status: 0, text: new RegExp(`${second.id} .*gpt-5.5 +openai`) })
    t.notMatch(listed.text, first.id)
    const json: unknown = JSON.parse((await sluiceBatches(gateway, 'list', '--json')).text)
    t.match(json, [{ id: second.id }, { id: first.id, state: 'cancelled' }])
    const shown = await sluiceBatches(gateway, 'show', '--batch', first.id)
    t.match(JSON.parse(shown.text), { state: 'cancelled', ended_at: /^20/, request_counts: { total: 3 } })
    t.match(await sluiceBatches(gateway, 'show', '--batch', 'batch_x'), { status: 1, text: /no batch/ })
    t.match(await sluiceBatches(gateway, 'cancel', '--batch', second.id, '--reason', 'late'), { status: 0 })
    t.equal((await ended(other, second.id)).status, 'cancelled')
    t.match(await sluiceBatches(gateway, 'cancel', '--batch', second.id), { status: 1, text: /has ended/ })

    const trail = (await ask(audit, '/audit?action=batch.cancel')).json['items']
    t.match(trail, [
      { actor: 'command line', target: second.id, account: owner?.name, after: { reason: 'late' } },
      { actor: /^token:robot/, target: first.id, after: { state: 'cancelling', reason: 'wrong model' } },
    ])
    t.equal(Array.isArray(trail) ? trail.length : 0, 2, 'one entry for each')
    const third = await batchOf(other, textOf(LINES))
    await onThePage(t, { gateway, store }, { first: first.id, second: second.id, third: third.id })
    t.equal((await ended(other, third.id)).status, 'cancelled')
  })
}

/** What the owner of the second and third batch sees and does in the dashboard. */
async function onThePage(
  t: Test,
  { gateway: { origin }, store }: { readonly gateway: TestGateway; readonly store: Store },
  { first, second, third }: Readonly<Record<'first' | 'second' | 'third', string>>,
): Promise<void> {
  const owner = new Browser(origin)
  t.equal((await owner.signIn('other@example.com')).status, 200)
  const { batches } = batchesReply.parse((await owner.get('/batches')).json)
  t.match(batches, [
    { id: third, lines: { total: 3 }, endedAtMs: null },
    { id: second, state: 'cancelled', endedAtMs: Number },
  ])
  for (const { id, used } of batches) {
    const own = batchReply.parse((await owner.get(`/batches/${id}`)).json).used
    t.match(used, { requests: Number, isPart: false }, 'the list has what each has used')
    t.equal(used?.costNanoUsd, own.costNanoUsd)
  }
  t.equal(batches.length, 2, 'of the own account alone')
  const accountId = batches[0]?.accountId ?? ''
  await store.ledger.append(aRow(accountId, { batch: third, atMs: Date.now(), costNanoUsd: 7_000_000_000 }))
  const newer = batchReply.parse((await owner.get(`/batches/${third}`)).json).used
  t.ok(newer.costNanoUsd >= 7_000_000_000, 'an entry counts at once in the drawer')
  const [again] = batchesReply.parse((await owner.get('/batches?limit=1')).json).batches
  t.same(again?.used, newer, 'and then in the list')
  const page = batchesReply.parse((await owner.get('/batches?limit=1')).json)
  const next = batchesReply.parse((await owner.get(`/batches?limit=1&after=${page.next ?? ''}`)).json)
  t.match([page.batches, next.batches], [[{ id: third }], [{ id: second }]])
  t.match(batchesReply.parse((await owner.get('/batches?state=cancelled')).json).batches, [{ id: second }])
  t.equal((await owner.get('/batches?after=x')).json['next'], null)
  t.equal((await owner.get(`/batches/${first}`)).status, 404)
  t.equal((await owner.ask('POST', `/batches/${first}/cancel`, { body: {} })).status, 404)
  t.equal((await owner.get('/batches?account=all')).status, 404)
  const one = batchReply.parse((await owner.get(`/batches/${third}`)).json)
  t.match(one, { mayCancel: true, batch: { form: 'queue' }, used: { isPart: false } })
  const stopped = await owner.ask('POST', `/batches/${third}/cancel`, { body: { reason: 'again' } })
  t.match(batchReply.parse(stopped.json).batch, { state: 'cancelling' })
  t.match(await owner.ask('POST', `/batches/${second}/cancel`, { body: {} }), {
    status: 400,
    error: { message: /has ended/ },
  })
  t.equal(batchReply.parse((await owner.get(`/batches/${second}`)).json).mayCancel, false)
}
