/**
 * Goal: the ledger agrees with the upstream (G21): it records every token of a complete reply, the
 * longest reply of a truncated one, and each request once. A killed process loses no entry of a reply
 * that a client received (G13).
 * Method: the real program under a mix of replies, clients that disconnect and upstream faults, compared with
 * the emulator's ledger; then workers killed with SIGKILL under load. `SLUICE_ACCOUNTING=100000` and
 * `SLUICE_KILLS=200` set the number of each; the defaults are small.
 */
import { request } from 'node:http'
import t, { type Test } from 'tap'
import { sluiceHere } from '../../cli/session.js'
import { startServe, until, type Served } from '../program.js'

const REQUESTS = Number(process.env.SLUICE_ACCOUNTING ?? 100)
const KILLS = Number(process.env.SLUICE_KILLS ?? 2)
/** Concurrent clients. */
const CLIENTS = 16

type Manner = 'stream' | 'whole' | 'leaves' | 'cut'

/** The result of a client. */
interface Seen {
  readonly tag: string
  readonly manner: Manner
  readonly id: string | null
  readonly text: string
  /** The client received the whole reply. */
  readonly isComplete: boolean
}

interface Row {
  readonly request_id: string
  readonly source: string
  readonly outcome: string
  readonly input_tokens: number | null
  readonly output_tokens: number | null
}

/** Sends a request; a client that leaves disconnects after a part of the reply. Never rejects. */
function ask(served: Served, tag: string, manner: Manner): Promise<Seen> {
  const stream = manner !== 'whole'
  const fault = manner === 'cut' ? '[[fault: cut event=40 mode=eof]]' : ''
  const pace = manner === 'leaves' ? '[[pace: 2]]' : ''
  const content = `Say ${tag}. [[words: 80]] ${fault} ${pace}`
  const model = tag.endsWith('0') ? 'claude-sonnet-4-5' : 'gpt-4o'
  const body = JSON.stringify({ model, stream, messages: [{ role: 'user', content }] })
  return new Promise((resolve) => {
    let text = ''
    let id: string | null = null
    const over = (isWhole: boolean): void => {
      const isComplete = isWhole && (stream ? text.includes('[DONE]') : text.includes('"usage"'))
      resolve({ tag, manner, id, text, isComplete })
    }
    const req = request(
      {
        port: served.port,
        path: '/v1/chat/completions',
        method: 'POST',
        headers: {
          authorization: `Bearer ${served.secret}`,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          connection: 'close',
        },
      },
      (res) => {
        id = String(res.headers['x-request-id'] ?? '')
        res.on('data', (chunk: Buffer) => {
          text += chunk.toString()
          if (manner === 'leaves' && text.length > 3000) req.destroy()
        })
        res.on('end', () => over(res.complete))
        res.on('error', () => over(false))
      },
    )
    req.on('error', () => over(false))
    // A connection to a worker that is killed before it accepts may hang without a reply.
    req.setTimeout(10_000, () => req.destroy())
    req.end(body)
  })
}

const MANNERS: readonly Manner[] = [
  ...Array<Manner>(4).fill('stream'),
  ...Array<Manner>(4).fill('whole'),
  'leaves',
  'cut',
]

async function load(served: Served, prefix: string, count: number): Promise<Seen[]> {
  const seen: Seen[] = []
  let next = 0
  const client = async (): Promise<void> => {
    while (next < count) {
      const index = next
      next += 1
      const manner = MANNERS[index % MANNERS.length] ?? 'whole'
      seen.push(await ask(served, `${prefix}-${index}${Math.floor(index / 10) % 10}`, manner))
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  return seen
}

/** The entries of `sluice usage export`. */
async function exported(t: Test, served: Served): Promise<Row[]> {
  const command = ['usage', 'export', '--config', served.file, '--format', 'jsonl']
  const { status, out, err } = await sluiceHere(command)
  t.equal(status, 0, err)
  return out
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Row)
}

const LONG = { timeout: 30_000 + REQUESTS * 20 + KILLS * 20_000 }
t.setTimeout(LONG.timeout * 2)

void t.test(`${REQUESTS} requests: the ledger agrees with the upstream`, LONG, async (t) => {
  const served = await startServe(t)
  const seen = await load(served, 'tag', REQUESTS)
  const counted = new Map<string, { input: number; output: number }>()
  for (const { body, counted: counts } of served.emulator.ledger) {
    const tag = /Say (tag-\d+)\./.exec(JSON.stringify(body))?.[1]
    if (tag !== undefined && counts !== undefined) counted.set(tag, counts)
  }
  const rows = new Map<string, Row>()
  await until(async () => {
    rows.clear()
    const all = await exported(t, served)
    for (const row of all) rows.set(row.request_id, row)
    t.equal(all.length, rows.size, 'no entry twice')
    return rows.size >= REQUESTS
  })
  t.equal(rows.size, REQUESTS, 'one entry for each request')
  let differing = 0
  let far = 0
  let complete = 0
  for (const each of seen) {
    const row = rows.get(each.id ?? '')
    const counts = counted.get(each.tag)
    if (row === undefined || counts === undefined) {
      t.fail(`no row of ${each.tag} (${each.manner})`)
    } else if (each.isComplete) {
      complete += 1
      const isSame = row.input_tokens === counts.input && row.output_tokens === counts.output
      if (!isSame || row.source !== 'reported') differing += 1
    } else {
      // The longest reply of the model, which the upstream may have generated. The usage itself, if it was
      // received before the client's disconnect was noticed.
      const isCharged = (row.output_tokens ?? 0) >= counts.output && (row.input_tokens ?? 0) >= counts.input
      const isExact = row.input_tokens === counts.input && row.output_tokens === counts.output
      if (!(isCharged && row.source === 'assumed') && !(isExact && row.source === 'reported')) {
        far += 1
        t.comment(`${each.tag} (${each.manner}): ${JSON.stringify(row)}, ${JSON.stringify(counts)}`)
      }
    }
  }
  t.ok(complete >= REQUESTS * 0.7, `${complete} complete`)
  t.equal(differing, 0, 'complete replies: every token')
  t.equal(far, 0, 'truncated replies: at least the tokens that were generated')
})

void t.test(`${KILLS} kills: every reply that a client received has its ledger entry`, LONG, async (t) => {
  const served = await startServe(t, { server: 'workers: 2, drain_ms: 500' })
  const seen: Seen[] = []
  for (let kill = 0; kill < KILLS; kill += 1) {
    const running = load(served, `kill${kill}`, 60)
    await new Promise((resolve) => setTimeout(resolve, 40 + ((kill * 37) % 150)))
    const workers = served.program.workers()
    const victim = workers[kill % workers.length]
    if (victim !== undefined) process.kill(victim, 'SIGKILL')
    seen.push(...(await running))
    // The delay before a restart grows with each crash.
    if (kill + 1 < KILLS) await until(() => served.program.workers().length > 1, 60_000)
  }
  const all = await exported(t, served)
  const ids = new Set(all.map(({ request_id: id }) => id))
  t.equal(ids.size, all.length, 'no entry twice')
  const held = seen.filter(({ isComplete }) => isComplete)
  const missing = held.filter(({ id }) => !ids.has(id ?? ''))
  t.ok(held.length > KILLS * 20, `${held.length} complete replies`)
  t.same(
    missing.map(({ tag, manner }) => `${tag} ${manner}`),
    [],
    'each request has its entry',
  )
  const lost = new Set(all.filter(({ outcome }) => outcome === 'lost').map((row) => row.request_id))
  t.same(
    held.filter(({ id }) => lost.has(id ?? '')),
    [],
    'no request is recorded as lost',
  )
})
