/**
 * Another process that opens a store of an earlier version and kills itself (SIGKILL) after some steps: with
 * SQLite statements of the migration, with Redis replies to commands that write. It prints the number of
 * steps if it comes to the end before.
 */
import { writeSync } from 'node:fs'
import { Redis, type Command } from 'ioredis'
import { connect, type Connection, type Statement } from '../../../src/store/sqlite/driver.js'
import { migrate } from '../../../src/store/sqlite/migrate.js'
import { openStore } from '../../../src/store/open-store.js'

const [url = '', limit = ''] = process.argv.slice(2)
const lastStep = limit === '' ? Infinity : Number(limit)
let steps = 0

/** Ends the process if it has made the last step. */
function step(): void {
  if (steps === lastStep) process.kill(process.pid, 'SIGKILL')
  steps += 1
}

/** The statements of a script; those of a trigger end with `END;`. */
function statementsOf(sql: string): string[] {
  const lines = sql.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('--'))
  const statements: string[] = []
  let open: string[] = []
  for (const line of lines) {
    open.push(line)
    const isTrigger = open[0]?.startsWith('CREATE TRIGGER') === true
    if (!line.endsWith(isTrigger ? 'END;' : ';')) continue
    statements.push(open.join('\n'))
    open = []
  }
  return open.length === 0 ? statements : [...statements, open.join('\n')]
}

function counted(db: Connection): Connection {
  return {
    exec(sql) {
      for (const statement of statementsOf(sql)) {
        step()
        db.exec(statement)
      }
    },
    prepare(sql) {
      const statement = db.prepare(sql)
      const run: Statement['run'] = (...values) => {
        step()
        return statement.run(...values)
      }
      return {
        run,
        get: (...values) => statement.get(...values),
        all: (...values) => statement.all(...values),
        iterate: (...values) => statement.iterate(...values),
      }
    },
    close: () => db.close(),
  }
}

const WRITES = new Set(['eval', 'evalsha', 'set', 'del', 'hset', 'sadd', 'zadd', 'zrem'])

/** Counts the replies to commands that write, of all connections of this process. */
function countReplies(): void {
  const prototype = Redis.prototype as Redis
  const send = Reflect.get<Redis, 'sendCommand'>(prototype, 'sendCommand')
  prototype.sendCommand = function (this: Redis, command: Command, stream) {
    if (WRITES.has(command.name.toLowerCase())) void command.promise.then(step, step)
    return send.call(this, command, stream)
  }
}

if (url.startsWith('sqlite:')) {
  const db = connect(url.slice('sqlite:'.length))
  await migrate(counted(db), undefined)
  step()
  db.close()
} else {
  countReplies()
  await (await openStore(url)).close()
}
writeSync(1, `${steps}\n`)
process.exit(0)
