/**
 * Goal: no file of a client stops the gateway or takes more room than its account has.
 * Method: files of many, empty and long lines against a gateway, with both stores and both places of files.
 */
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { newId } from '../../../src/policy/file-store.js'
import { openStore } from '../../../src/store/open-store.js'
import { MAX_LISTED_RECORDS } from '../../../src/store/sealed-records.js'
import { isToday, ofToday } from '../../helpers/long-suite.js'
import { TurnWatch } from '../../hostile/turn-watch.js'
import { openBatchStage, statusOf, textOf, uploaded } from './batch-stage.js'

t.setTimeout(240_000)

const PLACES = [
  { store: 'sqlite', to: './files' },
  { store: 'sqlite', to: 'store' },
  { store: 'redis', to: './files' },
  { store: 'redis', to: 'store' },
] as const
/** Each day both stores, each with one place. */
const OF_DAY = PLACES.filter((_, at) => isToday(Number(at === 1 || at === 2), 2))
const BYTES = 3_000_000
/** Instead of `MAX_LISTED_RECORDS` on two of three days. */
const FEW_RECORDS = 500

/** Text of a file, and the refusal of its batch. */
const FILES: Readonly<Record<string, { readonly text: string; readonly message: RegExp }>> = {
  'empty lines': { text: '\n'.repeat(BYTES), message: /Line 100001: a file has at most 100000 lines/ },
  'blank lines': { text: ' \r\n'.repeat(90_000), message: /no lines/ },
  'long blank lines': { text: `${' '.repeat(1_000_000)}\n`.repeat(8), message: /no lines/ },
  'deep lines': { text: `{"a":${'['.repeat(1_000_000)}\n`, message: /Line 1: / },
}

for (const place of OF_DAY) {
  void t.test(`${place.store}, ${place.to}: no file holds the event loop`, async (t) => {
    const { client } = await openBatchStage(t, place)
    for (const [name, { text, message }] of Object.entries(FILES)) {
      const input_file_id = await uploaded(client, text)
      await pause(50)
      const watch = new TurnWatch()
      const made = client.batches.create({
        input_file_id,
        endpoint: '/v1/chat/completions',
        completion_window: '24h',
      })
      await t.rejects(made, { status: 400, message }, name)
      const slowestMs = watch.end()
      t.ok(slowestMs < 50, `${name}: ${Math.round(slowestMs)} ms`)
    }
  })
}

for (const place of OF_DAY) {
  void t.test(`${place.store}, ${place.to}: an account has its room once`, async (t) => {
    const files = ', max_bytes: 4000, max_bytes_per_account: 9000'
    const upstreamOptions = 'operations: { batch: queue }'
    const { client, other } = await openBatchStage(t, place, { files, upstreamOptions })
    const text = 'a\n'.repeat(1_700)
    const uploads = await Promise.all(Array.from({ length: 12 }, () => statusOf(uploaded(client, text))))
    const taken = async (): Promise<number> => {
      return (await client.files.list()).data.reduce((sum, { bytes }) => sum + bytes, 0)
    }
    t.ok(uploads.every((status) => status === null || status === 413))
    t.ok((await taken()) <= 9_000, 'uploads at the same time')
    t.equal(await statusOf(uploaded(other, text)), null, 'another account has its own')
    for (const { id } of (await client.files.list()).data) await client.files.delete(id)

    const body = { model: 'gpt-5.5', messages: [{ role: 'user', content: 'hello '.repeat(400) }] }
    const input_file_id = await uploaded(client, textOf([body]))
    const made = await Promise.all(
      Array.from({ length: 12 }, () =>
        statusOf(
          client.batches.create({
            ...{ input_file_id, endpoint: '/v1/chat/completions', completion_window: '24h' },
          }),
        ),
      ),
    )
    t.ok(made.every((status) => status === null || status === 413))
    t.ok(made.filter((status) => status === null).length < 4, 'and so have the lines of its batches')
  })
}

for (const place of ofToday([PLACES[0], PLACES[3]], 2)) {
  void t.test(`${place.store}: many files of an account hold up no other`, async (t) => {
    const { gateway, client } = await openBatchStage(t, place)
    const store = await openStore(gateway.store)
    t.teardown(() => store.close())
    const { sealedRecords } = store
    const head = { kind: 'file', accountId: 'acc_other', keyId: 'key_other', model: '' } as const
    const info = JSON.stringify({ name: 'x', purpose: 'batch', bytes: 1, isPartial: false })
    const [atMs, expiresAtMs] = [Date.now(), Date.now() + 3_600_000]
    const record = { ...head, atMs, expiresAtMs, info, value: Buffer.alloc(0) }
    const ids = Array.from({ length: isToday(0, 3) ? MAX_LISTED_RECORDS : FEW_RECORDS }, () => newId('file-'))
    await Promise.all(ids.map((id) => sealedRecords.put({ ...record, id }, Infinity, atMs)))
    const own = await uploaded(client, 'x\n')
    const steps: Readonly<Record<string, () => Promise<unknown>>> = {
      upload: () => uploaded(client, 'x\n'),
      read: () => client.files.retrieve(own),
      list: () => client.files.list(),
      all: () => sealedRecords.list('file', {}, Date.now()),
    }
    for (const [name, step] of Object.entries(steps)) {
      const watch = new TurnWatch()
      await step()
      const slowestMs = watch.end()
      t.ok(slowestMs < 50, `${name}: ${Math.round(slowestMs)} ms`)
    }
    t.equal(
      (await sealedRecords.list('file', {}, Date.now())).length,
      Math.min(ids.length + 2, MAX_LISTED_RECORDS),
    )
    t.same(await sealedRecords.list('file', { id: own, accountId: 'acc_other' }, Date.now()), [])
  })
}

for (const place of ofToday([PLACES[0], PLACES[3]], 2)) {
  void t.test(`${place.store}: batches made at the same time are no more than may be open`, async (t) => {
    const upstreams = { openai: 'http://127.0.0.1:1/v1' }
    const upstreamOptions = 'operations: { batch: queue }'
    const batches = ', max_open_per_account: 3'
    const { client } = await openBatchStage(t, place, { upstreams, upstreamOptions, batches })
    const body = { model: 'gpt-5.5', messages: [{ role: 'user', content: 'hello' }] }
    const input_file_id = await uploaded(client, textOf([body]))
    const made = await Promise.all(
      Array.from({ length: 12 }, () =>
        statusOf(
          client.batches.create({
            ...{ input_file_id, endpoint: '/v1/chat/completions', completion_window: '24h' },
          }),
        ),
      ),
    )
    t.ok(made.every((status) => status === null || status === 429))
    t.ok(made.filter((status) => status === null).length <= 3, made.join())
    t.ok((await client.batches.list()).data.length <= 3)
  })
}
