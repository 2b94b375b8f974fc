/**
 * The bare engine as the ledger's yardstick: in one transaction the same reads and writes, of the same
 * sizes and at the same places, that so many admissions and settlements come to, and nothing decided or
 * added up: what is counted later, many rows at a time, is left out.
 * Takes its orders as arguments and answers with one line of JSON.
 */
import { open } from 'lmdb'
import type { LedgerLoad } from './ledger-load.js'

const KEYS = 10_000
const WARM_MS = 500
const SUBJECT = Buffer.alloc(80)
const RESERVATION = 'x'.repeat(480)
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
const [reservations, rows] = [texts('open'), texts('rows')]
const byAccount = texts('by-account')
let made = 0

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

function admit(at: number): void {
  const { id, subject } = namesOf(at)
  reservations.doesExist(id)
  rows.doesExist(TIME + id)
  subjects.get(subject)
  quietly(subjects.put(subject, SUBJECT))
  quietly(reservations.put(id, RESERVATION))
}

function settle(at: number): void {
  const { account, id, subject } = namesOf(at)
  rows.doesExist(TIME + id)
  reservations.get(id)
  subjects.get(subject)
  quietly(subjects.put(subject, SUBJECT))
  quietly(reservations.remove(id))
  quietly(rows.put(TIME + id, ROW))
  const place = `${account} ${TIME}${id}`
  byAccount.doesExist(place)
  quietly(byAccount.put(place, ''))
}

function turn(): void {
  const half = Math.max(1, Number(atOnce) / 2)
  for (let at = 0; at < half; at += 1) admit(made + at)
  for (let at = 0; at < half; at += 1) settle(made + at)
  made += half
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
