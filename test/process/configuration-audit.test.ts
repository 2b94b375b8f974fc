/**
 * Goal: the audit trail answers what changed before an incident: each change of the configuration is one
 * entry of the gateway with its author and the changed settings before and after, whether the file changed
 * while the gateway ran or before a start, or the command rolled back. Secrets are masked.
 * Method: the real program with two workers, which must not record twice, started again with another file.
 */
import { once } from 'node:events'
import { dirname, join } from 'node:path'
import t from 'tap'
import { openStore } from '../../src/store/open-store.js'
import type { AuditEntry } from '../../src/store/audit-trail.js'
import { fileText, startServe, until, type Served } from './program.js'

t.setTimeout(240_000)

const TOKEN = 'tok-0123456789abcdef'
const WORKERS = { server: `workers: 2, drain_ms: 1000, admin_token: ${TOKEN}` }

async function changes({ file }: Served): Promise<AuditEntry[]> {
  const store = await openStore(`sqlite:${join(dirname(file), 'data', 'sluice.db')}`)
  try {
    const page = await store.auditTrail.page({ accountId: null, after: null, limit: 100 })
    return page.filter(({ action }) => action.startsWith('configuration.')).reverse()
  } finally {
    await store.close()
  }
}

void t.test('changes of the configuration are in the audit trail', async (t) => {
  const served = await startServe(t, WORKERS)
  const text = fileText(served.emulator, WORKERS)
  t.same(await changes(served), [], 'the first generation changes nothing')

  served.write(`# author: ada@example.com\n${text}on_loss: reject\n`)
  await until(async () => (await changes(served)).length === 1)
  served.write(`${text.replace(TOKEN, `${TOKEN}99`)}on_loss: reject\n`)
  await until(async () => (await changes(served)).length === 2)
  const response = await fetch(`http://127.0.0.1:${served.opsPort}/generations/1/rollback`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}99` },
    body: JSON.stringify({ author: 'operator', reason: 'errors doubled' }),
  })
  t.equal(response.status, 200)
  await until(async () => (await changes(served)).length === 3)

  served.program.child.kill('SIGTERM')
  await once(served.program.child, 'close')
  served.write(`# author: bo@example.com\n${text}on_loss: reject\n`)
  const again = served.again()
  await until(() => again.out().includes('"sluice serves"'))
  await until(async () => (await changes(served)).length >= 4)
  // Time for an entry that must not come.
  await new Promise((resolve) => setTimeout(resolve, 500))

  const found = await changes(served)
  t.match(found, [
    {
      ...{ accountId: '', actor: 'ada@example.com', action: 'configuration.load', target: '2' },
      ...{ detail: /^generation 2 of \S+$/, reason: 'gateway.yaml changed', address: null },
      ...{ before: { on_loss: '"report"' }, after: { on_loss: '"reject"' } },
    },
    { action: 'configuration.load', target: '3', after: { 'server.admin_token': /\*\*\*/ } },
    {
      ...{ actor: 'operator', action: 'configuration.rollback', target: '1', reason: 'errors doubled' },
      ...{ before: { on_loss: '"reject"' }, after: { on_loss: '"report"' } },
    },
    {
      ...{ actor: 'bo@example.com', action: 'configuration.load', reason: 'start' },
      ...{ before: { on_loss: '"report"' }, after: { on_loss: '"reject"' } },
    },
  ])
  t.equal(found.length, 4, 'each once, by one of the workers')
  t.notMatch(JSON.stringify(found), TOKEN)
})
