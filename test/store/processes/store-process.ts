/**
 * Another process of the same store. It runs the orders that it receives over IPC. With the id of an account
 * as second argument it creates and revokes keys, and reports each acknowledgement, until it is killed; with
 * `full` as third, until the disk is full.
 */
import { editAccount, endKey, putAccount, putKey } from '../../helpers/store-changes.js'
import { writeSync } from 'node:fs'
import { openStore } from '../../../src/store/open-store.js'
import { aKey, anEntry } from '../contract/sample-records.js'
import type { Account, ApiKey } from '../../../src/accounts/account.js'
import type { SignInTokenKind } from '../../../src/store/sign-in-tokens.js'
import { allKeys } from '../../helpers/lists.js'

export type Order =
  | { op: 'createAccount'; account: Account }
  | { op: 'createKey'; key: ApiKey; maxKeys: number | null }
  | { op: 'revokeKey'; accountId: string; keyId: string }
  | { op: 'changeAccount'; accountId: string; edit: Partial<Account> }
  | { op: 'put'; name: string; text: string; expiresAtMs: number; existing?: 'kept' }
  | { op: 'get'; names: string[] }
  | { op: 'takePass'; kind: SignInTokenKind; id: string }
  | { op: 'close' }

const [url = '', accountId, until = 'killed'] = process.argv.slice(2)
const store = await openStore(url)

if (accountId === undefined) {
  process.on('message', ({ id, order }: { id: number; order: Order }) => {
    void obey(order).then(
      (answer) => process.send?.({ id, answer }),
      (error: unknown) => process.send?.({ id, error: String(error) }),
    )
  })
  process.send?.({ ready: true })
} else if (until === 'killed') {
  await writeUntilKilled(accountId)
} else {
  await writeUntilFull(accountId)
}

async function obey(order: Order): Promise<unknown> {
  switch (order.op) {
    case 'createAccount':
      return putAccount(store, order.account)
    case 'createKey':
      return putKey(store, order.key, order.maxKeys)
    case 'revokeKey':
      return endKey(store, { accountId: order.accountId, id: order.keyId }, 1)
    case 'changeAccount':
      return editAccount(store, order.accountId, order.edit)
    case 'takePass':
      return store.signInTokens.take(order.kind, order.id, 0)
    case 'put': {
      const item = {
        name: order.name,
        value: Buffer.from(order.text),
        expiresAtMs: order.expiresAtMs,
      }
      return store.cache.put(item, { entries: 1_000, bytes: 1_000_000 }, 0, order.existing)
    }
    case 'get': {
      const found = await store.cache.get(order.names, 0)
      return found.map((item) => (item === null ? null : Buffer.from(item.value).toString()))
    }
    case 'close':
      await store.close()
      process.disconnect()
      return undefined
  }
}

/** Writes a line, unbuffered, when the store has acknowledged. */
async function writeUntilKilled(owner: string): Promise<never> {
  for (let round = 0; ; round += 1) {
    const key = aKey(owner, { id: `key_${process.pid}_${round}` })
    await putKey(store, key, null, [anEntry(owner, { action: 'key.create', target: key.id })])
    writeSync(1, `created ${key.digest}\n`)
    if (round % 2 === 1) {
      writeSync(1, `revoking ${key.digest}\n`)
      await endKey(store, { accountId: owner, id: key.id }, 1, [
        anEntry(owner, { action: 'key.revoke', target: key.id }),
      ])
      writeSync(1, `revoked ${key.digest}\n`)
    }
  }
}

/** Continues until three writes in a row fail, and lists the keys. */
async function writeUntilFull(owner: string): Promise<void> {
  for (let failures = 0; failures < 3;) {
    const key = aKey(owner)
    try {
      await putKey(store, key, null)
      writeSync(1, `created ${key.digest}\n`)
    } catch (error) {
      failures += 1
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : null
      writeSync(1, `failed ${String(error)} ${cause?.message ?? ''}\n`)
    }
  }
  writeSync(1, `listed ${(await allKeys(store, owner)).length}\n`)
  await store.close()
}
