/**
 * The bare engine as the ledger's yardstick: in one transaction the same reads and writes, of the same
 * sizes and at the same places, that so many admissions and settlements come to, and nothing decided or
 * added up: what is counted later, many rows at a time, is left out. What the log saves up is spread evenly.
 * Takes its orders as arguments and answers with one line of JSON.
 */
import { open } from 'lmdb'
import type { LedgerLoad } from './ledger-load.js'

const KEYS = 10_000
const WARM_MS = 500
const SUBJECT = Buffer.alloc(80)
/** Of the log: a reservation and its subject, and a subject and whose reservation has ended. */
const [ADMITTED, SETTLED] = [650, 200]
/** Records of the log that have not been dropped yet. */
const LOGGED = 500
/** Requests for each subject that is put into its table. */
const PER_SUBJECT = 2
const ROW = 'x'.repeat(290)
const TIME = 'mi8q2k0ab'

const [path = '', atOnce = '1', seconds = '1'] = process.argv.slice(2)
const root = open<Buffer, string>({
  path,
  noSubdir: false,
  encoding: 'binary',
  overlappingSync: false,
  noSync: true,
  eventTurnBatching: false,
  mapSize: 16 * 1024 ** 3,
  maxDbs: 16,
})
const bytes = (name: string) => root.openDB<Buffer, string>(name, { encoding: 'binary' })
const texts = (name: string) => root.openDB<string, string>(name, { encoding: 'string' })
const subjects = bytes('subjects')
const log = root.openDB<Buffer, number>('log', { encoding: 'binary' })
const [rows, byAccount] = [texts('rows'), texts('by-account')]
let made = 0
let logged = 0

function quietly(commit: Promise<unknown>): void {
  commit.catch(() => undefined)
}

function namesOf(at: number) {
  const key = String((at * 7_919) % KEYS).padStart(20, '0')
  const account = `acc_${key.slice(-3).padStart(20, '0')}`
  const id = `019aa1b2-c3d4-${1e20 + at}`
  return {
    account,
    id,
    subject: `24:${account}:key:key_${key}`,
  }
}

function settle(at: number): void {
  const { account, id, subject } = namesOf(at)
  quietly(rows.put(TIME + id, ROW))
  const place = `${account} ${TIME}${id}`
  byAccount.doesExist(place)
  quietly(byAccount.put(place, ''))
  if (at % PER_SUBJECT === 0) quietly(subjects.put(subject, SUBJECT))
}

function turn(): void {
  const half = Math.max(1, Number(atOnce) / 2)
  log.get(0)
  log.get(logged + 1)
  for (let at = 0; at < half; at += 1) settle(made + at)
  made += half
  logged += 1
  quietly(log.put(logged, Buffer.alloc(half * (ADMITTED + SETTLED))))
  if (logged > LOGGED) quietly(log.remove(logged - LOGGED))
}

async function until(endMs: number): Promise<void> {
  while (performance.now() < endMs) await root.transaction(turn)
}

await until(performance.now() + WARM_MS)
made = 0
const beganMs = performance.now()
const before = process.cpuUsage()
await until(beganMs + Number(seconds) * 1000)
const { user, system } = process.cpuUsage(before)
const result: LedgerLoad = {
  operations: made * 2,
  seconds: (performance.now() - beganMs) / 1000,
  cpuMicroseconds: user + system,
  admitMs: { p50: Number.NaN, p99: Number.NaN },
  loopMs: Number.NaN,
}
await root.close()
process.stdout.write(`${JSON.stringify(result)}\n`)
