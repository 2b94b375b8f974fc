/**
 * The bare engine as the ledger's yardstick: in one transaction the same reads and writes, of the same
 * sizes and at the same places, that so many admissions and settlements come to, and nothing decided or
 * added up: what is counted later, many rows at a time, is left out. What the log saves up is spread evenly.
 */
import { open } from 'lmdb'
import { obey, type LedgerLoad, type LedgerOrder } from './ledger-orders.js'

const KEYS = 10_000
const BEFORE_MS = 500
const SUBJECT = Buffer.alloc(80)
/** Of the log: a reservation and its subject, and a subject and whose reservation has ended. */
const [ADMITTED, SETTLED] = [650, 200]
/** Records of the log that have not been dropped yet. */
const LOGGED = 500
/** Requests for each subject that is put into its table. */
const PER_SUBJECT = 2
const ROW = 'x'.repeat(290)
const TIME = 'mi8q2k0ab'

const [atOnce = '1'] = process.argv.slice(2)
let made = 0
let logged = 0

function opened(path: string) {
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
  return {
    root,
    subjects: bytes('subjects'),
    log: root.openDB<Buffer, number>('log', { encoding: 'binary' }),
    rows: texts('rows'),
    byAccount: texts('by-account'),
  }
}

type Tables = ReturnType<typeof opened>

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

function settle({ rows, byAccount, subjects }: Tables, at: number): void {
  const { account, id, subject } = namesOf(at)
  quietly(rows.put(TIME + id, ROW))
  const place = `${account} ${TIME}${id}`
  byAccount.doesExist(place)
  quietly(byAccount.put(place, ''))
  if (at % PER_SUBJECT === 0) quietly(subjects.put(subject, SUBJECT))
}

function turn(tables: Tables): void {
  const { log } = tables
  const half = Math.max(1, Number(atOnce) / 2)
  log.get(0)
  log.get(logged + 1)
  for (let at = 0; at < half; at += 1) settle(tables, made + at)
  made += half
  logged += 1
  quietly(log.put(logged, Buffer.alloc(half * (ADMITTED + SETTLED))))
  if (logged > LOGGED) quietly(log.remove(logged - LOGGED))
}

async function until(tables: Tables, endMs: number): Promise<void> {
  while (performance.now() < endMs) await tables.root.transaction(() => turn(tables))
}

async function run({ url, seconds }: LedgerOrder): Promise<LedgerLoad> {
  const tables = opened(url)
  logged = 0
  await until(tables, performance.now() + BEFORE_MS)
  made = 0
  const beganMs = performance.now()
  const before = process.cpuUsage()
  await until(tables, beganMs + seconds * 1000)
  const { user, system } = process.cpuUsage(before)
  const load: LedgerLoad = {
    operations: made * 2,
    seconds: (performance.now() - beganMs) / 1000,
    cpuMicroseconds: user + system,
    admitMs: { p50: Number.NaN, p99: Number.NaN },
    loopMs: Number.NaN,
  }
  await tables.root.close()
  return load
}

obey(run)
