/** Writes a store as text that can be reviewed, and makes a store of such a text. */
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { Redis } from 'ioredis'
import * as z from 'zod'
import { connect, numberIn, textIn } from '../../../src/store/sqlite/driver.js'
import type { RedisServer } from '../../helpers/redis.js'

/** A database of SQLite as statements: tables, rows, then indexes, triggers and views. */
export function dumpSqlite(path: string): string {
  const db = connect(path)
  try {
    const pragma = (name: string): string => {
      const row = db.prepare(`PRAGMA ${name}`).get() ?? {}
      return `PRAGMA ${name} = ${numberIn(row, name)};`
    }
    const schema = (types: string): readonly { name: string; sql: string }[] =>
      db
        .prepare(
          `SELECT name, sql FROM sqlite_schema WHERE type IN (${types})
            AND name NOT LIKE 'sqlite_%' AND sql IS NOT NULL ORDER BY rowid`,
        )
        .all()
        .map((row) => ({ name: textIn(row, 'name'), sql: `${textIn(row, 'sql')};` }))
    const rowsOf = (table: string): string[] => {
      const columns = db
        .prepare('SELECT name FROM pragma_table_info(?)')
        .all(table)
        .map((row) => textIn(row, 'name'))
      const quoted = columns.map((name) => `quote("${name}")`).join(" || ', ' || ")
      return db
        .prepare(`SELECT ${quoted} AS "values" FROM "${table}"`)
        .all()
        .map((row) => `INSERT INTO ${table} VALUES (${textIn(row, 'values')});`)
    }
    const tables = schema("'table'")
    const counters = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'").get()
    const names = tables.map(({ name }) => name)
    return [
      ...['application_id', 'user_version'].map(pragma),
      ...tables.map(({ sql }) => sql),
      ...names.flatMap(rowsOf),
      ...(counters === undefined ? [] : rowsOf('sqlite_sequence')),
      ...schema("'index', 'trigger', 'view'").map(({ sql }) => sql),
      '',
    ].join('\n')
  } finally {
    db.close()
  }
}

/** Creates the database, in a folder of its own. */
export function restoreSqlite(path: string, dump: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const db = connect(path)
  try {
    db.exec(`BEGIN;\n${dump}\nCOMMIT`)
  } finally {
    db.close()
  }
}

/** The commands that make one key of Redis; its type is that of the first command. */
const Record = z.strictObject({
  key: z.string(),
  /** Milliseconds until it expires, or -1. */
  ttl: z.number(),
  commands: z.array(z.array(z.string())),
})
type Record = z.infer<typeof Record>

/** A database of Redis: for each key, by name, one line of JSON with the commands that make it. */
export async function dumpRedis(server: RedisServer): Promise<string> {
  const client = new Redis(server.url())
  try {
    const records: string[] = []
    for (const key of (await client.keys('*')).sort()) {
      const record = { key, ttl: await client.pttl(key), commands: await commandsFor(client, key) }
      records.push(JSON.stringify(record satisfies Record))
    }
    return `${records.join('\n')}\n`
  } finally {
    client.disconnect()
  }
}

async function commandsFor(client: Redis, key: string): Promise<string[][]> {
  const type = await client.type(key)
  if (type === 'string') return [['set', key, textOf(await client.getBuffer(key), key)]]
  if (type === 'list') return [['rpush', key, ...(await client.lrange(key, 0, -1))]]
  if (type === 'set') return [['sadd', key, ...(await client.smembers(key)).sort()]]
  if (type === 'hash') {
    const fields = Object.entries(await client.hgetall(key)).sort(([a], [b]) => (a < b ? -1 : 1))
    return [['hset', key, ...fields.flat()]]
  }
  if (type === 'zset') {
    const members = await client.zrange(key, '0', '-1', 'WITHSCORES')
    const pairs = members.flatMap((member, at) => (at % 2 === 0 ? [members[at + 1] ?? '', member] : []))
    return [['zadd', key, ...pairs]]
  }
  if (type === 'stream') {
    const entries = await client.xrange(key, '-', '+')
    return entries.map(([id, fields]) => ['xadd', key, id, ...fields])
  }
  throw new Error(`${key} has the type ${type}, which the dump does not write`)
}

/** Throws if the bytes are not a text, which the dump cannot keep. */
function textOf(bytes: Buffer | null, key: string): string {
  const text = bytes?.toString() ?? ''
  if (bytes !== null && !Buffer.from(text).equals(bytes)) throw new Error(`${key} is not a text`)
  return text
}

/** Fills an empty database. Keys that expire have the rest of their time from now on. */
export async function restoreRedis(server: RedisServer, dump: string): Promise<void> {
  const client = new Redis(server.url())
  try {
    for (const line of dump.trim().split('\n')) {
      const { key, ttl, commands } = Record.parse(JSON.parse(line))
      for (const [command = '', ...args] of commands) await client.call(command, ...args)
      if (ttl > 0) await client.pexpire(key, ttl)
    }
  } finally {
    client.disconnect()
  }
}
