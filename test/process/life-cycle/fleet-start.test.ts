/**
 * Goal: two gateways that start at the same time on one empty store, under load, accept no request that is
 * then cut, and every request that they have served is in the ledger.
 * Method: the built program twice, each third day with two workers each, on a real Redis; clients connect
 * all the time, and the first account and its key are made while the gateways start.
 */
import { writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { freePort } from '../../helpers/free-port.js'
import { ofToday } from '../../helpers/long-suite.js'
import { rowsOf } from '../../helpers/ledger.js'
import { redisMissing, startRedis } from '../../helpers/redis.js'
import { fileText, makeKey, prepare, run, until } from '../program.js'

t.setTimeout(300_000)

/** Served requests of each gateway before the end. */
const SERVED = 30
/** Clients of each gateway; each waits for its reply. */
const CLIENTS = 6

const WORKERS = 'workers: 2, drain_ms: 5000'
const ALONE = 'workers: 1, drain_ms: 5000'

/** What a client saw: a complete reply, or an error after the connection was accepted. */
type Seen = { readonly status: number; readonly id: string } | { readonly cut: string }

/** A chat on a new connection; null if the connection is refused. */
function chat(port: number, secret: string): Promise<Seen | null> {
  const body = JSON.stringify({ model: 'gpt-5.4-mini', messages: [{ role: 'user', content: 'Hi.' }] })
  const headers = {
    authorization: `Bearer ${secret}`,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  }
  const options = { port, host: '127.0.0.1', method: 'POST', path: '/v1/chat/completions', headers }
  return new Promise((resolve) => {
    const failed = (error: NodeJS.ErrnoException): void => {
      resolve(error.code === 'ECONNREFUSED' ? null : { cut: `${error.code ?? ''} ${error.message}` })
    }
    const req = request({ ...options, agent: false }, (res) => {
      res.on('error', failed)
      res.on('end', () => {
        const { statusCode: status = 0, complete } = res
        const id = String(res.headers['x-request-id'])
        resolve(complete ? { status, id } : { cut: `status ${status}, cut` })
      })
      res.resume()
    })
    req.on('error', failed).end(body)
  })
}

void t.test('a fleet starts on an empty store under load', { skip: redisMissing() }, async (t) => {
  const redis = await startRedis(t)
  const [server = WORKERS] = ofToday([WORKERS, ALONE, ALONE], 3)
  const { emulator, folder } = await prepare(t)
  const ports = [await freePort(), await freePort()]
  const files = ports.map((_port, at) => join(folder, `gateway-${at}.yaml`))
  for (const [at, file] of files.entries()) {
    writeFileSync(file, fileText(emulator, { server, port: ports[at] ?? 0, store: redis.url() }))
  }
  const load = { secret: 'sk_unknown', isOver: false }
  const seen = ports.map((): Seen[] => [])
  const client = async (at: number): Promise<void> => {
    while (!load.isOver) {
      const one = await chat(ports[at] ?? 0, load.secret)
      if (one === null) await new Promise((resolve) => setTimeout(resolve, 2))
      else seen[at]?.push(one)
    }
  }
  const clients = ports.flatMap((_port, at) => Array.from({ length: CLIENTS }, () => client(at)))
  const programs = files.map((file) => run(t, ['serve', '--config', file]))
  load.secret = await makeKey(redis.url())
  const servedBy = (at: number): number =>
    (seen[at] ?? []).filter((one) => 'status' in one && one.status === 200).length
  await until(() => {
    const ended = programs.find(({ child }) => child.exitCode !== null)
    if (ended !== undefined) throw new Error(`it exited: ${ended.err()}`)
    return ports.every((_port, at) => servedBy(at) >= SERVED)
  }, 120_000)
  load.isOver = true
  await Promise.all(clients)
  for (const { child } of programs) child.kill('SIGTERM')
  t.strictSame(await Promise.all(programs.map(({ ended }) => ended)), [0, 0], 'both end properly')
  const all = seen.flat()
  t.strictSame(
    all.filter((one) => 'cut' in one),
    [],
    'no request was accepted and cut',
  )
  const replies = all.flatMap((one) => ('status' in one ? [one] : []))
  const statuses = new Set(replies.map(({ status }) => status))
  t.strictSame(
    [...statuses].filter((status) => status !== 200 && status !== 401),
    [],
  )
  const served = replies.filter(({ status }) => status === 200).map(({ id }) => id)
  const rows = await rowsOf({ configFile: files[0] ?? '' })
  const inLedger = new Set(rows.map(({ requestId }) => requestId))
  t.strictSame(
    served.filter((id) => !inLedger.has(id)),
    [],
    'each is in the ledger',
  )
  t.equal(rows.length, served.length, 'once')
})
