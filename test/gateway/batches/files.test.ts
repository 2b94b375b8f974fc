/**
 * Goal: files are kept for their own account alone, encrypted, within their limits.
 * Method: the OpenAI SDK and raw forms against a gateway, with both stores.
 */
import { readdirSync, readFileSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { toFile } from 'openai'
import t from 'tap'
import { FolderChunks } from '../../../src/policy/file-chunks.js'
import { FileStore, newId } from '../../../src/policy/file-store.js'
import { openStore } from '../../../src/store/open-store.js'
import { MAX_LISTED_RECORDS } from '../../../src/store/sealed-records.js'
import { rowsOf } from '../../helpers/ledger.js'
import { startGateway } from '../../helpers/gateway.js'
import { ofToday } from '../../helpers/long-suite.js'
import { startRedis } from '../../helpers/redis.js'
import { openBatchStage, PLACES, statusOf, uploaded } from './batch-stage.js'
import { PLACES_OF_DAY } from './places-of-day.js'

t.setTimeout(120_000)

const TEXT = `{"custom_id":"secret words","n":1}\n`.repeat(60_000)

for (const place of PLACES_OF_DAY) {
  void t.test(`${place.store}: a file is uploaded, read, listed and deleted by its account`, async (t) => {
    const { gateway, client, other } = await openBatchStage(t, place)
    const file = await toFile(Buffer.from(TEXT), 'lines.jsonl')
    // The SDK sends the members in the order of the object.
    const made = await client.files.create({
      file,
      purpose: 'batch',
      expires_after: { anchor: 'created_at', seconds: 3_600 },
    })
    t.match(made.id, /^file-[A-Za-z0-9]{24}$/)
    t.match(made, {
      object: 'file',
      bytes: TEXT.length,
      filename: 'lines.jsonl',
      purpose: 'batch',
      status: 'processed',
    })
    t.equal(made.expires_at, made.created_at + 3_600)
    t.same(await client.files.retrieve(made.id), made)
    t.equal(await (await client.files.content(made.id)).text(), TEXT, 'in several chunks')
    const second = await uploaded(client, 'x\n')
    t.same(
      (await client.files.list()).data.map(({ id }) => id),
      [second, made.id],
      'newest first',
    )
    const page = await client.files.list({ limit: 1 })
    t.equal(page.has_more, true)
    t.same(
      (await page.getNextPage()).data.map(({ id }) => id),
      [made.id],
    )
    t.same((await other.files.list()).data, [])
    const unknown = await other.files.retrieve('file-0').catch((error: unknown) => error)
    for (const of of [
      other.files.retrieve(made.id),
      other.files.content(made.id),
      other.files.delete(made.id),
    ]) {
      const foreign = await of.catch((error: unknown) => error)
      t.match(foreign, { status: 404 })
      t.equal(String(foreign).replace(made.id, 'file-0'), String(unknown), 'as an unknown one')
    }
    if (place.store === 'sqlite') {
      const path = join(gateway.folder, 'files', made.id)
      t.equal(statSync(path).mode & 0o777, 0o600)
      t.equal(readFileSync(path).includes('secret words'), false, 'encrypted')
    }
    t.match(await client.files.delete(made.id), { id: made.id, deleted: true })
    t.equal(await statusOf(client.files.retrieve(made.id)), 404)
    if (place.store === 'sqlite') t.same(readdirSync(join(gateway.folder, 'files')), [second])
    const rows = await rowsOf(gateway)
    t.ok(rows.every(({ ingress, costNanoUsd }) => ingress === 'files' && costNanoUsd === 0))
  })

  void t.test(`${place.store}: what is refused leaves nothing`, async (t) => {
    const { gateway, client } = await openBatchStage(t, place, {
      files: ', max_bytes: 4000, max_bytes_per_account: 6000, max_line_bytes: 2000',
    })
    const status = async (text: string): Promise<unknown> => {
      try {
        await uploaded(client, text)
        return 200
      } catch (error) {
        return error
      }
    }
    t.match(await status('a'.repeat(2_001)), {
      status: 400,
      message: /Line 1: must not be longer than 2000 bytes/,
    })
    t.match(await status(`a\n${'a'.repeat(2_001)}`), { message: /Line 2:/ })
    t.match(await status('a\n'.repeat(2_001)), { status: 413, message: /4000 bytes/ })
    const form = (fields: Record<string, string>): Promise<Response> => {
      const data = new FormData()
      data.append('file', new Blob(['{}\n']), 'a.jsonl')
      for (const [name, value] of Object.entries(fields)) data.append(name, value)
      const headers = { authorization: `Bearer ${gateway.secret}` }
      return fetch(`${gateway.baseUrl}/files`, { method: 'POST', body: data, headers })
    }
    t.match(await (await form({})).json(), { error: { param: 'purpose' } })
    t.match(await (await form({ purpose: 'fine-tune' })).json(), { error: { message: /"batch"/ } })
    const short = { purpose: 'batch', 'expires_after[anchor]': 'created_at', 'expires_after[seconds]': '5' }
    t.match(await (await form(short)).json(), { error: { param: 'expires_after.seconds' } })
    t.same((await client.files.list()).data, [])
    t.equal(await status('a\n'.repeat(1_900)), 200, 'the file may come before the purpose')
    if (place.store === 'sqlite') t.equal(readdirSync(join(gateway.folder, 'files')).length, 1)
    t.match(await status('a\n'.repeat(1_900)), { status: 413, message: /max_bytes_per_account/ })
    t.equal((await fetch(`${gateway.baseUrl}/files`)).status, 401)
  })
}

void t.test('without files.to', async (t) => {
  const gateway = await startGateway(t)
  const headers = { authorization: `Bearer ${gateway.secret}` }
  for (const path of ['/v1/files', '/v1/batches', '/openai/v1/files']) {
    const res = await fetch(gateway.origin + path, { headers })
    t.equal(res.status, 400)
    t.match(await res.json(), { error: { kind: 'untranslatable', message: /files\.to/ } })
  }
})

void t.test('a chunk that a killed process wrote in part does not damage those after it', async (t) => {
  const folder = t.testdir()
  const file = { id: newId('file-'), accountId: 'a', expiresAtMs: Number.MAX_SAFE_INTEGER }
  const before = new FolderChunks(folder)
  await before.append(file, Buffer.from('first'))
  await before.append(file, Buffer.from('second, cut'))
  truncateSync(join(folder, file.id), 4 + 5 + 4 + 3)
  const after = new FolderChunks(folder)
  const more = ['third', 'fourth', 'fifth'].map((text) => after.append(file, Buffer.from(text)))
  await Promise.all(more)
  const texts: string[] = []
  for (let place = 0; ;) {
    const sealed = await after.at(file, place)
    if (sealed === null) break
    texts.push(sealed.toString())
    place = after.placeAfter(place, sealed)
  }
  t.same(texts.sort(), ['fifth', 'first', 'fourth', 'third'])
})

for (const { store: kind } of ofToday(PLACES, PLACES.length)) {
  void t.test(`${kind}: files beyond the longest list keep their bytes, and take room`, async (t) => {
    const place = t.testdir()
    const url =
      kind === 'redis' ? `${(await startRedis(t)).url()}?timeout_ms=2000` : `sqlite:${place}/store.db`
    const store = await openStore(url)
    t.teardown(() => store.close())
    const folder = join(place, 'files')
    const upstreams = { openai: null, anthropic: null, gemini: null }
    const settings = {
      upstreams,
      maxBytes: 1e6,
      maxBytesPerAccount: 1e6,
      maxLineBytes: 1e6,
      keepMs: 1e6,
      folder,
    }
    const { sealedRecords: records } = store
    const files = new FileStore({
      ...{ records, secret: 'secret' },
      settings: { ...settings, maxBytesTotal: 100 },
    })
    const expiresAtMs = Date.now() + 3_600_000
    const owner = { accountId: 'acc_ada', keyId: 'key_ada' }
    const writer = await files.begin(owner, { name: 'old.jsonl', purpose: 'work', expiresAtMs })
    await writer.write(Buffer.from('lines'))
    const old = await writer.end()
    const record = {
      ...{ kind: 'file' as const, ...owner, model: '', info: '{}', value: Buffer.alloc(0) },
      expiresAtMs,
    }
    const atMs = Date.now() + 1
    const newer = Array.from({ length: MAX_LISTED_RECORDS }, () => newId('file-'))
    await Promise.all(newer.map((id) => records.put({ ...record, id, atMs }, Infinity, atMs)))
    await files.sweep()
    const found = await files.find(owner.accountId, old.id)
    t.ok(found)
    if (found === null) return
    const chunks: Buffer[] = []
    for await (const chunk of files.read(found)) chunks.push(chunk)
    t.equal(Buffer.concat(chunks).toString(), 'lines')

    const other = { accountId: 'acc_bob', keyId: 'key_bob' }
    const upload = async (bytes: number): Promise<unknown> => {
      const of = { name: 'new.jsonl', purpose: 'batch' as const, expiresAtMs, expectedBytes: bytes }
      const begun = await files.begin(other, of)
      try {
        await begun.write(Buffer.alloc(bytes))
        return null
      } catch (error) {
        return error
      } finally {
        await begun.abort()
      }
    }
    t.match(await upload(96), { kind: 'body_too_large', message: /max_bytes_total/ })
    t.equal(await upload(95), null)
  })
}
