/** Stores replies of the cache until it is killed: `node killed-cache-writer.js STORE SECRET`. */
import { CacheEntry, ReplyMemory } from '../../src/policy/cache-in-memory.js'
import { SharedReplies } from '../../src/policy/cache-in-store.js'
import { openStore } from '../../src/store/open-store.js'

const [, , url = '', secret = ''] = process.argv
const store = await openStore(url)
const replies = new SharedReplies({ store, secret }, new ReplyMemory(() => undefined), () => ({
  store: true,
  maxBytes: 64 * 1024 * 1024,
}))
const owner = { accountId: 'a', keyId: 'k', model: 'm', route: 'r' }
for (let at = 0; ; at += 1) {
  const key = `key ${at % 20}`
  const text = JSON.stringify({ events: [], at, text: `${at} `.repeat(20_000) })
  const storedAtMs = Date.now()
  const times = { storedAtMs, expiresAtMs: storedAtMs + 3_600_000 }
  await replies.put(key, new CacheEntry(owner, Buffer.from(text), times), text)
  process.stdout.write(`${at}\n`)
}
