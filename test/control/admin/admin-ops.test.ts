/**
 * Goal: with `listen: ops` the admin API is on the ops port alone, and one that is off is on neither.
 * Method: the program with one process and with workers.
 */
import { dirname, join } from 'node:path'
import t from 'tap'
import { createAdminToken } from '../../../src/accounts/admin-tokens.js'
import { openStore } from '../../../src/store/open-store.js'
import { startServe } from '../../process/program.js'

for (const workers of [1, 2]) {
  void t.test(`${workers} workers`, async (t) => {
    const served = await startServe(t, {
      server: `workers: ${workers}`,
      more: 'admin_api: { enabled: true, listen: ops }\n',
    })
    const store = await openStore(`sqlite:${join(dirname(served.file), 'data', 'sluice.db')}`)
    t.teardown(() => store.close())
    const wish = { name: 'ops', scopes: ['config:read'], accountId: null, audit: () => [] }
    const { secret } = await createAdminToken(store, { ...wish, createdBy: 'command line' })
    const headers = { authorization: `Bearer ${secret}` }
    const onOps = await fetch(`http://127.0.0.1:${served.opsPort}/admin/v1/generations`, {
      headers,
    })
    t.equal(onOps.status, 200)
    t.match(await onOps.json(), { generation: 1 })
    const onData = await fetch(`http://127.0.0.1:${served.port}/admin/v1/generations`, { headers })
    t.equal(onData.status, 404)
    t.match(await onData.text(), /unknown_endpoint/)
  })
}
