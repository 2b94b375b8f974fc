/**
 * Goal: every Lua file of the Redis store is part of a script. Every script compiles on a real server, which
 * computes the same hash.
 * Method: each `loadScript` call in the source is repeated, and its result is given to `SCRIPT LOAD`.
 */
import { readdirSync } from 'node:fs'
import { Redis } from 'ioredis'
import t from 'tap'
import { loadScript } from '../../../src/store/redis/connection/script.js'
import { filesBelow } from '../../architecture/source-tree.js'
import { redisMissing, startRedis } from '../../helpers/redis.js'

const FOLDER = 'src/store/redis/scripts'
const missing = redisMissing()
const options = missing === false ? {} : { skip: missing }

/** The arguments of each `loadScript` call. */
const calls = filesBelow('src/store/redis', '.ts').flatMap(({ text }) =>
  Array.from(text.matchAll(/loadScript\(([^)]*)\)/g), ([, args = '']) =>
    Array.from(args.matchAll(/'([^']+)'/g), ([, name = '']) => name),
  ).filter((names) => names.length > 0),
)

void t.test('every Lua file is used', (t) => {
  const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.lua'))
    .map((file) => file.slice(0, -'.lua'.length))
  t.strictSame(files.sort(), Array.from(new Set(calls.flat())).sort())
  t.ok(files.length > 20, 'they are found')
  t.end()
})

void t.test('every script compiles and has the hash that Redis gives it', options, async (t) => {
  const server = await startRedis(t)
  const client = new Redis(server.port, '127.0.0.1')
  t.teardown(() => client.disconnect())
  for (const names of calls) {
    const { lua, sha } = loadScript(...names)
    t.equal(await client.script('LOAD', lua), sha, names.at(-1) ?? '')
  }
})

void t.test('a file that does not exist is an error', (t) => {
  t.throws(() => loadScript('limits/none'), { code: 'ENOENT' })
  t.end()
})
