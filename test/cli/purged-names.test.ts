/**
 * Goal: commands that select an account by the name of a purged one show nothing of the purged one, with
 * entries in the store and in an archive.
 * Method: the commands in this process on a SQLite store, on one day without an archive, on the next
 * one with a real PostgreSQL.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { openStore } from '../../src/store/open-store.js'
import { engineMissing, startArchive } from '../helpers/archive-engines.js'
import { anotherDay } from '../helpers/long-suite.js'
import { putAccount, putKey } from '../helpers/store-changes.js'
import { aKey, anAccount, anEntry as anAuditEntry } from '../store/contract/sample-records.js'
import { anEntry } from '../store/archive/entries.js'
import { configFolder, sluiceHere } from './session.js'

const DAY_MS = 86_400_000

for (const isArchived of [false, true]) {
  const skip = anotherDay(Number(isArchived), 2) || (isArchived && engineMissing('postgresql'))
  void t.test(`with${isArchived ? '' : 'out'} an archive`, { skip }, async (t) => {
    const { good } = configFolder(t)
    const more = `\nescrow: { key: 0123456789abcdef0123456789abcdef }\ndimensions: [{ name: run, from: [header:x-run-id] }]\n`
    const archive = isArchived
      ? `archive: { url: '${(await startArchive(t, 'postgresql')).url}', hot_hours: 1 }\n`
      : ''
    writeFileSync(good, readFileSync(good, 'utf8') + more + archive)
    const run = async (...words: readonly string[]) => {
      const { status, out, err } = await sluiceHere([...words, '--config', good])
      return { status, text: out + err }
    }
    const store = await openStore(`sqlite:${join(dirname(good), 'data', 'sluice.db')}`)
    t.teardown(() => store.close())
    const nowMs = Date.now()
    const oldMs = Math.floor((nowMs - 2 * DAY_MS) / DAY_MS) * DAY_MS
    const use = (id: string, accountId: string, accountPath: string, atMs: number) => {
      const usd = accountId === 'acc_next' ? 7 : 3_333
      const own = {
        requestId: id,
        accountId,
        accountPath,
        keyId: `key_${accountId}`,
        costNanoUsd: usd * 1_000_000_000,
      }
      return store.ledger.append(anEntry(1, { ...own, dimensions: 'run=r-1', atMs }))
    }
    const former = anAccount({ id: 'acc_former', name: 'finance', plan: 'max', createdAtMs: oldMs })
    await putAccount(store, former)
    await putKey(store, aKey(former.id, { id: 'key_former', name: 'formerkey' }))
    await use('req_former1', former.id, 'finance', oldMs + 1_000)
    await use('req_former2', 'acc_below', 'finance/below', oldMs + 2_000)
    await use('req_former3', former.id, 'finance', nowMs - 60_000)
    await use('req_former4', 'acc_below', 'finance/below', nowMs - 60_000)
    if (isArchived) {
      t.equal((await run('archive', 'schema', '--apply')).status, 0)
      t.equal((await run('archive', 'backfill')).status, 0)
    }
    const purge = anAuditEntry(former.id, {
      action: 'account.purge',
      target: former.id,
      detail: 'finance',
      atMs: nowMs - 30_000,
    })
    const decide = () => ({ write: { purge: true, audit: [purge] } }) as const
    const written = await store.transact({ accountId: former.id, reads: {}, decide, nowMs })
    t.equal(written.kind, 'written')
    const next = anAccount({ id: 'acc_next', name: 'finance', plan: 'max', createdAtMs: nowMs - 20_000 })
    await putAccount(store, next)
    await use('req_next', next.id, 'finance', nowMs - 10_000)

    const month = new Date(nowMs).toISOString().slice(0, 7)
    const since = ['--since', '5d'] as const
    const commands: readonly (readonly string[])[] = [
      ['usage', 'export', '--account', 'finance', '--format', 'jsonl'],
      ['usage', 'export', '--account', 'finance', '--format', 'csv', ...since],
      ['usage', 'export', '--account', 'finance', '--format', 'focus', ...since],
      ...['model', 'key', 'account', 'dimension:run', 'program'].map((by) => {
        return ['usage', 'summary', '--account', 'finance', '--by', by, '--json', ...since]
      }),
      ...['parent', 'root', 'member', 'month', 'key'].map((by) => {
        const form = by === 'key' ? ['--format', 'csv'] : ['--json']
        return ['usage', 'summary', '--account', 'finance', '--tree', '--by', by, ...form, ...since]
      }),
      ['usage', 'statement', '--account', 'finance', '--month', month, '--json'],
      ['usage', 'statement', '--account', 'finance', '--month', month, '--by', 'dimension:run', '--json'],
      ['recordings', 'list', '--account', 'finance'],
      ['audit', 'export', '--account', 'finance', '--format', 'jsonl'],
      ['runs', 'show', '--account', 'finance', '--run', 'r-1'],
      ['keys', 'list', '--account', 'finance'],
      ['members', 'list', '--account', 'finance'],
    ]
    for (const command of commands) {
      const { status, text } = await run(...command)
      const name = command.join(' ')
      t.equal(status, command[0] === 'runs' ? 1 : 0, `${name}: ${text}`)
      t.notMatch(text, /former|below/, `${name}: ${text}`)
      // Any sum with what one of them cost.
      t.notMatch(text, /3333|6666|3340|6673/, `${name}: ${text}`)
      if (command[0] === 'usage') t.match(text, /\b7\b|7000000000|7\.0/, `${name}: its own`)
    }
    const byId = await run('usage', 'export', '--account', former.id, '--format', 'jsonl')
    t.match(byId.text, /req_former1.*req_former3/s, 'by the id')
  })
}
