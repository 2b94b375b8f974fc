/** Holds the writers' lock of the SQLite file `argv[2]` for `argv[3]` ms. */
import { connect } from '../../../src/store/sqlite/driver.js'

const [path = '', heldMs = '0'] = process.argv.slice(2)
const db = connect(path)
db.exec('BEGIN IMMEDIATE')
process.stdout.write('held\n')
setTimeout(() => {
  db.exec('COMMIT')
  db.close()
}, Number(heldMs))
