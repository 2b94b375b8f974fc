/** A process that takes the writers' lock of a ledger's file, says so, and keeps it for a while. */
import { open } from 'lmdb'
import { writeSync } from 'node:fs'

const [path = '', ms = '0'] = process.argv.slice(2)
const root = open({ path, noSubdir: false, noSync: true, overlappingSync: false })
root.transactionSync(() => {
  writeSync(1, 'held\n')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(ms))
})
await root.close()
