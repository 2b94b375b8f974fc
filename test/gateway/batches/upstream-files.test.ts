/**
 * Goal: files of OpenAI's clients with other purposes than `batch` are kept by the upstream that
 * `files.upstream` names, and belong to the account that uploaded them.
 * Method: the OpenAI SDK of two accounts against a gateway and the emulator, on both stores.
 */
import type OpenAI from 'openai'
import { toFile } from 'openai'
import t from 'tap'
import { startEmulator } from '../../../src/emulator/server.js'
import { rowsOf } from '../../helpers/ledger.js'
import { openBatchStage, PLACES, statusOf, uploaded } from './batch-stage.js'
import { PLACES_OF_DAY } from './places-of-day.js'

t.setTimeout(120_000)

for (const place of PLACES_OF_DAY) {
  void t.test(
    `${place.store}: files of other purposes are at files.upstream, and of their account`,
    async (t) => {
      const emulator = await startEmulator()
      t.teardown(() => emulator.close())
      const { openai } = emulator.baseUrls
      const stage = await openBatchStage(t, place, {
        ...{ upstreams: { openai }, files: ', upstream: openai, max_line_bytes: 2000' },
        more: 'limits: [{ scope: account, usd_per_day: 50 }]\n',
      })
      const { client, other, gateway } = stage
      const bytes = Buffer.alloc(3 * 1024 * 1024, 'x')
      const uploadOf = async (purpose: OpenAI.FilePurpose, name = 'a"b.txt'): Promise<OpenAI.FileObject> =>
        client.files.create({ file: await toFile(bytes, name, { type: 'text/plain' }), purpose })
      // The SDK sends the file before its purpose.
      const file = await uploadOf('user_data')
      t.match(file, { object: 'file', bytes: bytes.length, purpose: 'user_data' })
      const eval_ = await uploadOf('evals', 'b.txt')
      t.equal(await statusOf(uploadOf('batch')), 400, 'lines of batches are as long as before')
      const lines = await uploaded(client, '{"custom_id":"a"}\n')
      t.match(await client.files.retrieve(file.id), { id: file.id, purpose: 'user_data' })
      t.equal((await (await client.files.content(file.id)).arrayBuffer()).byteLength, bytes.length)
      const idsOf = async (of: OpenAI, purpose?: string): Promise<string[]> =>
        (await of.files.list(purpose === undefined ? {} : { purpose })).data.map(({ id }) => id).sort()
      t.same(await idsOf(client), [file.id, eval_.id, lines].sort())
      t.same(await idsOf(client, 'evals'), [eval_.id])
      t.same(await idsOf(client, 'batch'), [lines])
      t.same(await idsOf(other), [])
      const before = emulator.ledger.length
      for (const ask of [
        () => other.files.retrieve(file.id),
        () => other.files.content(file.id),
        () => other.files.delete(file.id),
        () => client.files.retrieve('file-unknown'),
      ]) {
        t.equal(await statusOf(ask()), 404)
      }
      t.equal(await statusOf(client.files.retrieve('file-a/../../models')), 400)
      t.equal(emulator.ledger.length, before, 'nothing of it reached the vendor')
      const ask = (of: OpenAI): Promise<unknown> =>
        of.chat.completions.create({
          model: 'gpt-5.4',
          messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: file.id } }] }],
        })
      t.equal(await statusOf(ask(other)), 404)
      t.match(await ask(client), { object: 'chat.completion' })
      t.match(await client.files.delete(file.id), { id: file.id, deleted: true })
      t.equal(await statusOf(client.files.retrieve(file.id)), 404)
      t.same(await idsOf(client), [eval_.id, lines].sort())
      const rows = (await rowsOf(gateway)).filter(({ ingress }) => ingress === 'files')
      t.ok(rows.length >= 4 && rows.every(({ costNanoUsd }) => costNanoUsd === 0), 'files are free')
    },
  )
}

void t.test('an upstream that cannot be reached: 502, and nothing is left', async (t) => {
  const stage = await openBatchStage(t, PLACES[0], {
    ...{ upstreams: { openai: 'http://127.0.0.1:9/v1' }, files: ', upstream: openai' },
  })
  const file = await toFile(Buffer.from('a'), 'a.txt')
  t.equal(await statusOf(stage.client.files.create({ file, purpose: 'vision' })), 502)
  t.same((await stage.client.files.list({ purpose: 'batch' })).data, [])
})
