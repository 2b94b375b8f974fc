/** Writes to a ledger and exits during the writes: by `exit`, or by an uncaught error. */
import { openStore } from '../../../src/store/open-store.js'
import { aRow } from '../ledger/sample-entries.js'

const [url = '', how = 'exit'] = process.argv.slice(2)
const store = await openStore(url)
await store.ledger.settle(aRow())
const endsMs = performance.now() + 50 + Math.random() * 50
while (performance.now() < endsMs) {
  for (let at = 0; at < 16; at += 1) store.ledger.settle(aRow()).catch(() => undefined)
  await new Promise((resolve) => setImmediate(resolve))
}
setImmediate(() => {
  if (how === 'exit') process.exit(3)
  throw new Error('uncaught')
})
