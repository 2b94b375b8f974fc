/**
 * Goal: only the gateway's user can read its files, with any umask and any earlier permissions.
 * Method: the real program and a command with umask 0, on no data and on data that every user may read; a
 * spool that keeps ledger entries while its Redis is stopped.
 */
import { chmodSync, lstatSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { redisMissing, startRedis } from '../helpers/redis.js'
import { startServe, until, type Served } from './program.js'

/** Everything below a folder, and the folder, with its permissions. */
function modesOf(folder: string): [path: string, mode: number, isFolder: boolean][] {
  const entries = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name))
  return [folder, ...entries].map((path) => {
    const stat = lstatSync(path)
    return [path, stat.mode & 0o777, stat.isDirectory()]
  })
}

function notPrivate(folder: string): string[] {
  return modesOf(folder)
    .filter(([, mode, isFolder]) => mode !== (isFolder ? 0o700 : 0o600))
    .map(([path, mode]) => `${path} ${mode.toString(8)}`)
}

/** Sets the umask of processes that are started from now on. */
process.umask(0)

/** Waits until the ledger entry of a reply is in the store. */
async function used(served: Served): Promise<void> {
  const response = await served.chat()
  t.equal(response.status, 200)
  await response.text()
}

void t.test('files of the store are private, also files that others could read before', async (t) => {
  const served = await startServe(t, { server: 'workers: 1, drain_ms: 1000' })
  await used(served)
  const data = join(served.file, '..', 'data')
  t.ok(modesOf(data).length > 3)
  t.same(notPrivate(data), [])
  served.program.child.kill('SIGTERM')
  await served.program.ended

  for (const [path, , isFolder] of modesOf(data)) chmodSync(path, isFolder ? 0o755 : 0o644)
  const foreign = join(data, 'notes.txt')
  writeFileSync(foreign, 'x')
  chmodSync(foreign, 0o644)
  const again = served.again()
  await until(() => again.out().includes('"sluice serves"'))
  const open = notPrivate(data).map((line) => line.slice(data.length + 1))
  t.same(open, ['755', 'notes.txt 644'], 'only folders that may have other uses')
  t.match(again.out(), 'run chmod 700 to keep other users out')
})

const missing = redisMissing()
void t.test('files of the spool are private', missing === false ? {} : { skip: missing }, async (t) => {
  const redis = await startRedis(t)
  const served = await startServe(t, { server: 'workers: 1, drain_ms: 1000', store: redis.url() })
  await used(served)
  await redis.kill()
  const spool = join(served.file, '..', 'spool')
  await until(async () => {
    await (await served.chat()).text()
    return (await served.ops('/readyz')).text.includes('rows spooled')
  })
  t.ok(modesOf(spool).length > 2, 'a segment and a lock')
  t.same(notPrivate(spool), [])
})
