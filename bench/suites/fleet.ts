/**
 * A year of a fleet in three minutes: under a steady load through HAProxy, Redis goes away, processes are
 * killed, and everything that operators do happens once. Reports for each row the requests that failed and
 * the ledger entries that differ from the replies.
 */
import { connect } from 'node:tls'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LedgerEntry } from '../../src/ledger/entry.js'
import { openStore } from '../../src/store/open-store.js'
import { Load, type Answer } from '../../test/outage/load.js'
import { askDirectly, startFleet, until, type Fleet, type Gateway } from '../fleet/fleet.js'
import { Children } from '../processes/children.js'
import { findProgram } from '../processes/machine.js'
import { figure, type Figure, type Pace, type SuiteResult } from '../report/figures.js'

const AWAY_SECONDS = 10
const RELOADS = 50
/** Between two reloads of one gateway. */
const RELOAD_MS = 120
/** Requests a second of each client: new connections, kept ones, and keys that are rarely used. */
const RATES = { app: 25, kept: 15, rare: 5 }
/** Keys that one worker of each gateway has served. */
const RARE_KEYS = 12
/** A request counts as in flight if it was sent at most this long after the process was gone. */
const AFTER_KILL_MS = 100
/** From the last change of a row to the next row. */
const SETTLE_MS = 1_500
/** How long entries may take to arrive in the ledger. */
const DELIVERY_MS = 30_000

/** The keys of the load; `app` changes when it is rotated. */
interface Keys {
  app: string
  readonly kept: string
  readonly rare: readonly string[]
}

interface Stage {
  readonly fleet: Fleet
  readonly keys: Keys
  readonly awayMs: number
}

/** From the signal until the process was gone: a busy machine closes its connections late. */
interface Kill {
  readonly fromMs: number
  readonly toMs: number
}

async function timed(kill: () => Promise<void>): Promise<Kill> {
  const fromMs = performance.now()
  await kill()
  return { fromMs, toMs: performance.now() }
}

/** One row of the table. */
interface Row {
  readonly name: string
  /** Requests that were in flight when a process was killed may fail. */
  readonly kills?: true
  /** Returns the kills. */
  run(stage: Stage): Promise<readonly Kill[]>
}

/** Runs an operation on each gateway, in sequence. */
async function onEach(
  { fleet }: Stage,
  operation: (gateway: Gateway) => Promise<void>,
): Promise<readonly Kill[]> {
  for (const gateway of fleet.gateways) await operation(gateway)
  return []
}

const ROWS: readonly Row[] = [
  {
    name: 'redis_away',
    async run({ fleet, awayMs }) {
      await fleet.redis.kill()
      await sleep(awayMs)
      await fleet.redis.start()
      await sleep(2_000)
      return []
    },
  },
  {
    name: 'worker_killed',
    kills: true,
    async run({ fleet }) {
      const kills: Kill[] = []
      for (const gateway of fleet.gateways) {
        kills.push(await timed(() => gateway.killWorker()))
        await gateway.ready()
        await sleep(SETTLE_MS)
      }
      return kills
    },
  },
  {
    name: 'gateway_killed',
    kills: true,
    async run({ fleet }) {
      const [first] = fleet.gateways
      if (first === undefined) throw new Error('no gateway')
      const kill = await timed(() => first.kill())
      await sleep(3_000)
      await first.start()
      return [kill]
    },
  },
  {
    name: 'gateways_restarted',
    run: (stage) =>
      onEach(stage, async (gateway) => {
        await gateway.stop()
        await gateway.start()
        // Two checks of HAProxy.
        await sleep(3_000)
      }),
  },
  {
    name: 'rolling_restart',
    run: (stage) => onEach(stage, (gateway) => gateway.restartWorkers()),
  },
  {
    name: 'provider_swapped',
    async run(stage) {
      const { fleet } = stage
      const [, other] = fleet.emulators
      if (other === undefined) throw new Error('no second provider')
      fleet.swapTo(other)
      await onEach(stage, (gateway) => gateway.reload('# swapped\n'))
      await until(() => other.ledger.length > 0)
      return []
    },
  },
  {
    name: 'reloads',
    async run({ fleet }) {
      const before = await Promise.all(fleet.gateways.map((gateway) => gateway.generation()))
      for (let at = 0; at < RELOADS; at += 1) {
        const more = `on_loss: ${at % 2 === 0 ? 'reject' : 'report'}\n# ${at}\n`
        for (const gateway of fleet.gateways) gateway.write(more)
        await sleep(RELOAD_MS)
      }
      await onEach({ fleet } as Stage, (gateway) => gateway.reload('# the last one\n'))
      const after = await Promise.all(fleet.gateways.map((gateway) => gateway.generation()))
      if (after.some((generation, at) => generation <= (before[at] ?? 0))) throw new Error('no reload')
      return []
    },
  },
  {
    name: 'certificates_rotated',
    async run(stage) {
      const pair = stage.fleet.certificate('second')
      return onEach(stage, async (gateway) => {
        gateway.writeCertificate(pair)
        await until(async () => (await subjectOf(gateway)) === 'second')
      })
    },
  },
  {
    name: 'keys_rotated',
    async run(stage) {
      const { fleet, keys } = stage
      await onEach(stage, async (gateway) => {
        gateway.writeSecret('provider-key-2')
        await gateway.reload('# with the second key of the provider\n')
      })
      keys.app = await fleet.createKey('app-2')
      await sleep(1_000)
      await fleet.revokeKey('app')
      return []
    },
  },
  {
    name: 'logs_rotated',
    run: (stage) =>
      onEach(stage, async (gateway) => {
        await gateway.rotateLog()
      }),
  },
]

/** `--seconds` is the time without Redis, `--only` picks rows. */
export async function runFleet(pace: Pace): Promise<SuiteResult> {
  const rows = ROWS.filter(({ name }) => pace.only?.includes(name) ?? true)
  if (rows.length === 0) throw new TypeError(`--only takes ${ROWS.map(({ name }) => name).join(', ')}`)
  for (const name of ['redis-server', 'haproxy'] as const) {
    if (findProgram(name) === null) throw new Error(`${name} is missing: apt-get install ${name}`)
  }
  const children = new Children()
  let close = (): Promise<void> => Promise.resolve()
  try {
    const fleet = await startFleet(children)
    close = () => fleet.close()
    const rare: string[] = []
    for (let at = 0; at < RARE_KEYS; at += 1) rare.push(await fleet.createKey(`rare-${at}`))
    const [app, kept] = [await fleet.createKey('app'), await fleet.createKey('kept')]
    const keys = { app, kept, rare }
    return await runRows(rows, { fleet, keys, awayMs: (pace.seconds ?? AWAY_SECONDS) * 1_000 })
  } finally {
    await close()
    await children.close()
  }
}

async function runRows(rows: readonly Row[], stage: Stage): Promise<SuiteResult> {
  const { fleet, keys } = stage
  let turn = 0
  const load = new Load(fleet.port, [
    { name: 'app', secret: () => keys.app, perSecond: RATES.app },
    { name: 'kept', secret: () => keys.kept, perSecond: RATES.kept, keeps: true },
    {
      name: 'rare',
      secret: () => keys.rare[(turn += 1) % keys.rare.length] ?? '',
      perSecond: RATES.rare,
    },
  ])
  const figures: Figure[] = []
  const remarks: string[] = []
  try {
    await warmUp(stage)
    for (const row of rows) {
      const fromMs = performance.now()
      const kills = await row.run(stage)
      await sleep(SETTLE_MS)
      const answers = await answersOf(load, fromMs)
      const failed = answers.filter(({ status, isWhole }) => status !== 200 || !isWhole)
      const flying = row.kills === true ? failed.filter((answer) => wasInFlight(answer, kills)) : []
      const lost = failed.filter((answer) => !flying.includes(answer))
      // A request younger than half a second at the kill of its process may have no entry yet.
      const complete = answers.filter((answer) => !flying.includes(answer))
      const differing = await differencesOf(fleet, complete)
      const beside = flying.length > 0 ? `, ${flying.length} more in flight` : ''
      const failures = { unit: `of ${answers.length}${beside}`, goal: '0' }
      const entries = { unit: 'entries', goal: '0' }
      figures.push(figure(`fleet.${row.name}.failed`, [lost.length], failures))
      figures.push(figure(`fleet.${row.name}.ledger_differs`, [differing.length], entries))
      remarks.push(...countOf([...lost.map(described), ...differing]).map((text) => `${row.name}: ${text}`))
    }
  } finally {
    await load.stop()
  }
  const failures = figures.flatMap(({ name, median, unit }) =>
    median > 0 ? [`${name} is ${median} ${unit}, not 0`] : [],
  )
  return { figures, remarks, failures }
}

/** Every worker serves the keys of the clients; one worker of each gateway has served each rare key. */
async function warmUp({ fleet, keys }: Stage): Promise<void> {
  for (const gateway of fleet.gateways) {
    for (const secret of keys.rare) await askDirectly(gateway, secret)
    for (let at = 0; at < 20; at += 1) {
      for (const secret of [keys.app, keys.kept]) await askDirectly(gateway, secret)
    }
  }
  await sleep(2_000)
}

/** The answers of all requests that were sent since then, when the last of them has arrived. */
async function answersOf(load: Load, fromMs: number): Promise<Answer[]> {
  const toMs = performance.now()
  await sleep(1_000)
  return ['app', 'kept', 'rare'].flatMap((client) => load.between(fromMs, toMs, client))
}

function wasInFlight({ sentMs, ms }: Answer, kills: readonly Kill[]): boolean {
  return kills.some(({ fromMs, toMs }) => sentMs <= toMs + AFTER_KILL_MS && sentMs + ms >= fromMs)
}

function described({ client, status, isWhole, text }: Answer): string {
  const end = isWhole ? '' : ', cut'
  return `${client}: ${status}${end} ${/"kind":"(\w+)"/.exec(text)?.[1] ?? ''}`
}

function countOf(texts: readonly string[]): string[] {
  const counts = new Map<string, number>()
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1)
  return [...counts].map(([text, count]) => `${count} × ${text}`)
}

/** A text for each reply without its entry, with another status, or with other tokens than the provider's. */
async function differencesOf(fleet: Fleet, answers: readonly Answer[]): Promise<string[]> {
  const replies = answers.filter(({ id, status }) => id !== '' && status !== 0)
  const store = await openStore(`${fleet.redis.url}?timeout_ms=5000`)
  try {
    const rows = new Map<string, LedgerEntry>()
    const endMs = performance.now() + DELIVERY_MS
    for (;;) {
      rows.clear()
      for await (const batch of store.ledger.export(0)) {
        for (const row of batch) rows.set(row.requestId, row)
      }
      if (replies.every(({ id }) => rows.has(id)) || performance.now() > endMs) break
      await sleep(500)
    }
    const counted = new Map<string, { input: number; output: number }>()
    for (const { body, counted: counts } of fleet.emulators.flatMap(({ ledger }) => ledger)) {
      const tag = /Say (tag-\d+)\./.exec(JSON.stringify(body))?.[1]
      if (tag !== undefined && counts !== undefined) counted.set(tag, counts)
    }
    return replies.flatMap((reply) => difference(reply, rows.get(reply.id), counted.get(reply.tag)))
  } finally {
    await store.close()
  }
}

function difference(
  { status, isWhole }: Answer,
  row: LedgerEntry | undefined,
  counts: { input: number; output: number } | undefined,
): string[] {
  if (row === undefined) return [`a reply with status ${status} has no entry`]
  if (!isWhole) return []
  if (row.status !== status) return [`a reply with status ${status} has an entry with ${row.status}`]
  if (status !== 200) return []
  const isSame = row.usage.input === counts?.input && row.usage.output === counts?.output
  return isSame ? [] : ['an entry has other tokens than the provider counted']
}

/** The common name of the certificate of a new connection. */
function subjectOf({ port }: Gateway): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN))
      socket.destroy()
    })
    socket.once('error', reject)
  })
}
