/**
 * Goal (G11): reloads under load, three of ten with a fault, fail no request and truncate no stream; a valid
 * file is in force within a second; no reply is made from a mixture of two files; memory does not grow.
 * Method: the real program with two workers, requests on persistent and new connections, open streams, and a
 * file that moves a model between two upstreams. `SLUICE_RELOADS=1000 SLUICE_STREAMS=500 SLUICE_RATE=200` is
 * the full measurement.
 */
import { readFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import t from 'tap'
import { fileText, startServe, until, type Served } from '../program.js'
import { tally, Traffic, type Outcome } from '../traffic.js'

const RELOADS = Number(process.env['SLUICE_RELOADS'] ?? '20')
const STREAMS = Number(process.env['SLUICE_STREAMS'] ?? '40')
const RATE = Number(process.env['SLUICE_RATE'] ?? '60')
/** Fewer reloads say nothing about memory: heaps are still growing to their working size. */
const MEMORY_FROM = 500
const MAX_GROWTH_MIB = 10
const IN_FORCE_MS = RELOADS >= MEMORY_FROM ? 1000 : 5000
const WORDS = 24
const PACE_MS = 250
t.setTimeout(120_000 + RELOADS * 3000)

/** One reload. */
interface Edit {
  readonly atMs: number
  /** Time until `/config` has the file, and its generation. */
  readonly tookMs: number
  readonly generation: number
  readonly upstream: string
}

interface Config {
  readonly generation: number
  readonly last_error: readonly string[] | null
}

const FAULTS: readonly ((text: string, at: number) => [string, RegExp])[] = [
  (text, at) => [`${text}unheard_of_${at}: 1\n`, new RegExp(`gateway\\.yaml:\\d+:1.*unheard_of_${at}`)],
  (text, at) => [`${text}limits: [ { scope: ${at} } ]\n`, /gateway\.yaml:\d+:\d+: limits\[0\]\.scope/],
  (text, at) => [`${text.slice(0, text.indexOf('routes:'))}routes: [ # ${at}`, /gateway\.yaml:\d+:\d+/],
]

/** The file of a reload: a model that is served by one of two upstreams in turn. */
function textOf(served: Served, at: number): { text: string; upstream: string } {
  const upstream = at % 2 === 0 ? 'openai' : 'second'
  const text = fileText(served.emulator)
    .replace(
      'upstreams:\n',
      `upstreams:\n  second: { dialect: openai, base_url: ${served.emulator.baseUrls.openai}, api_key: sk-${at} }\n`,
    )
    .replace('{ prefix: gpt-, upstream: openai }', `{ prefix: gpt-, upstream: ${upstream} } # ${at}`)
  return { text, upstream }
}

async function configOf(served: Served): Promise<Config> {
  return JSON.parse((await served.ops('/config')).text) as Config
}

/** Resident memory of primary and workers, MiB. */
function memoryOf({ program }: Served): number {
  const kib = [program.pid, ...program.workers()].map((pid) => {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0)
  })
  return kib.reduce((sum, each) => sum + each, 0) / 1024
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

void t.test('G11, I-133: reloads under load fail no request and mix no files', async (t) => {
  const served = await startServe(t)
  const { port, secret } = served
  const words = (): number => WORDS
  const load = { port, secret, perSecond: RATE, streams: STREAMS, words, paceMs: PACE_MS }
  const traffic = new Traffic(load)
  t.teardown(() => traffic.stop())
  await until(() => traffic.open > STREAMS * 0.8, 60_000)
  const edits: Edit[] = [{ atMs: 0, tookMs: 0, generation: 1, upstream: 'openai' }]
  const memory: number[] = []
  let refused = 0
  for (let at = 1; at <= RELOADS; at += 1) {
    const { text, upstream } = textOf(served, at)
    const { generation } = await configOf(served)
    if (at % 10 === 2 || at % 10 === 5 || at % 10 === 8) {
      const [bad, expected] = FAULTS[at % FAULTS.length]?.(text, at) ?? ['', /never/]
      served.write(bad)
      await until(async () => expected.test(String((await configOf(served)).last_error)))
      t.equal((await configOf(served)).generation, generation, 'the previous file stays in force')
      refused += 1
    } else {
      const atMs = performance.now()
      served.write(text)
      await until(async () => (await configOf(served)).generation > generation)
      edits.push({ atMs, tookMs: performance.now() - atMs, generation: generation + 1, upstream })
    }
    memory.push(memoryOf(served))
  }
  await traffic.stop()
  const all = [...traffic.requests, ...traffic.streams]
  t.same(Object.keys(tally(traffic.requests)), ['200 complete'], 'no request fails')
  t.same(Object.keys(tally(traffic.streams)), ['200 complete'], 'no stream is truncated')
  t.same(torn(all, edits), [], 'each reply is from the upstream of its generation')
  t.same(late(all, edits), [], `a valid file is in force within ${IN_FORCE_MS} ms`)
  const metrics = (await served.ops('/metrics')).text
  t.match(metrics, `sluice_config_reloads_total{result="refused"} ${refused}\n`)
  t.match(metrics, `sluice_config_generation ${edits.length}\n`)
  const quarter = Math.ceil(memory.length / 4)
  const growthMib = median(memory.slice(-quarter)) - median(memory.slice(quarter, quarter * 2))
  if (RELOADS >= MEMORY_FROM) t.ok(growthMib <= MAX_GROWTH_MIB, `${growthMib.toFixed(1)} MiB`)
  const took = edits.slice(1).map(({ tookMs }) => tookMs)
  t.comment(
    `FIGURES ${RELOADS} reloads (${refused} refused), ${STREAMS} streams, ${RATE}/s (load ${loadavg()[0]?.toFixed()}): ` +
      `requests ${JSON.stringify(tally(traffic.requests))}, streams ${JSON.stringify(tally(traffic.streams))}, ` +
      `in force after ${median(took).toFixed()} ms, at most ${Math.max(...took).toFixed()} ms, ` +
      `memory ${median(memory.slice(quarter, quarter * 2)).toFixed()} MiB, ${growthMib.toFixed(1)} MiB more at the end`,
  )
})

/** Replies whose upstream is not that of their generation. */
function torn(outcomes: readonly Outcome[], edits: readonly Edit[]): Outcome[] {
  const upstreams = new Map(edits.map(({ generation, upstream }) => [generation, upstream]))
  return outcomes.filter(({ generation, upstream }) => upstreams.get(generation) !== upstream)
}

/** Requests that were sent a second after a file was written, and served by an older generation. */
function late(outcomes: readonly Outcome[], edits: readonly Edit[]): Outcome[] {
  return outcomes.filter(({ sentMs, generation }) => {
    const due = edits.findLast(({ atMs }) => atMs + IN_FORCE_MS < sentMs)
    return due !== undefined && generation < due.generation
  })
}
