/**
 * Another process at the same store, for the tests: it does what it is told over IPC, or, with an
 * account's id as second argument, makes and revokes keys as fast as it can and reports each one
 * that was acknowledged, until it is killed.
 */
import { writeSync } from 'node:fs'
import { openStore } from '../../src/store/open.js'
import { aKey } from './records.js'
import type { Account, ApiKey, PlanName } from '../../src/accounts/account.js'

export type Order =
  | { op: 'createAccount'; account: Account }
  | { op: 'createKey'; key: ApiKey; maxKeys: number | null }
  | { op: 'revokeKey'; accountId: string; keyId: string }
  | { op: 'setPlan'; accountId: string; plan: PlanName }
  | { op: 'close' }

const [url = '', accountId] = process.argv.slice(2)
const store = await openStore(url)

if (accountId === undefined) {
  process.on('message', ({ id, order }: { id: number; order: Order }) => {
    void obey(order).then(
      (answer) => process.send?.({ id, answer }),
      (error: unknown) => process.send?.({ id, error: String(error) }),
    )
  })
  process.send?.({ ready: true })
} else {
  await writeUntilKilled(accountId)
}

async function obey(order: Order): Promise<unknown> {
  switch (order.op) {
    case 'createAccount':
      return store.createAccount(order.account)
    case 'createKey':
      return store.createKey(order.key, order.maxKeys)
    case 'revokeKey':
      return store.revokeKey(order.accountId, order.keyId, 1)
    case 'setPlan':
      return store.setPlan(order.accountId, order.plan)
    case 'close':
      await store.close()
      process.disconnect()
      return undefined
  }
}

/** A line is written, past every buffer of ours, only once the store has acknowledged. */
async function writeUntilKilled(owner: string): Promise<never> {
  for (let round = 0; ; round += 1) {
    const key = aKey(owner, { id: `key_${process.pid}_${round}` })
    await store.createKey(key, null)
    writeSync(1, `created ${key.digest}\n`)
    if (round % 2 === 1) {
      writeSync(1, `revoking ${key.digest}\n`)
      await store.revokeKey(owner, key.id, 1)
      writeSync(1, `revoked ${key.digest}\n`)
    }
  }
}
