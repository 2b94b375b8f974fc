/**
 * 400 paced streams with one fragment every 20 ms: the CPU time of a fragment. Every fragment is a chunk, a
 * read and a write of its own; nginx runs in the same run.
 */
import type { ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import { numberOf, objectOf, stringOf, type JsonObject } from '../../src/base/json.js'
import { PATHS, question } from '../load/sample-traffic.js'
import { Children, freePorts } from '../processes/children.js'
import type { LoadRequest } from '../load/closed-loop.js'
import {
  cpuFigure,
  figure,
  medianOf,
  ratios,
  shown,
  type Figure,
  type Pace,
  type SuiteResult,
} from '../report/figures.js'
import { startGateway } from '../processes/gateway.js'
import { gatewayRequest, startNode } from './load.js'
import { CORES, cpuBetween, cpuTime, findProgram, missingPrograms } from '../processes/machine.js'
import { startProxy } from '../processes/nginx.js'

/** One process under test, and its request. */
interface Peer {
  readonly name: 'nginx' | 'bare' | 'translated' | 'same'
  readonly pid: number
  readonly request: LoadRequest
}

/** One round of one peer. */
export interface Round {
  readonly cpuMicrosecondsEach: number
  /** The part of it in helper threads. */
  readonly helperMicrosecondsEach: number
  /** Fragments per second that reached the clients, as a share of the pace. */
  readonly kept: number
  /** Fragments in one read of a client; above 1 they waited for each other. */
  readonly together: number
}

/** The number of streams and fragments, and the measured time. */
export interface Shape {
  readonly streams: number
  readonly fragments: number
  readonly seconds: number
}

export const EVERY_MS = 20
/** Time between the opening of the last stream and the measurement. */
const SETTLE_MS = 700
/** Streams open in waves of 20 per 20 ms; all must be open during the measurement. */
const OPEN_PER_SECOND = 1000
/** Time limit for a message from the clients, in addition to the length of the streams. */
const MESSAGE_LIMIT_MS = 20_000

/** Runs all programs, alternating. Rejects if a stream lost a fragment or its end. */
export async function runRelay(pace: Pace): Promise<SuiteResult> {
  const seconds = pace.seconds ?? 5
  const streams = pace.streams ?? 400
  const shape = shapeOf(streams, seconds)
  const children = new Children()
  try {
    const peers = await startPeers(children, shape.fragments)
    const rounds = new Map<Peer['name'], Round[]>(peers.map(({ name }) => [name, []]))
    const warmUp = { ...shape, streams: Math.min(streams, 100) }
    for (const peer of peers) await measure(children, { ...peer, pids: [peer.pid] }, warmUp)
    for (let round = 0; round < (pace.rounds ?? 5); round++) {
      for (const peer of peers) {
        const measured = { ...peer, pids: [peer.pid] }
        rounds.get(peer.name)?.push(await measure(children, measured, shape))
      }
    }
    return { figures: figuresOf(rounds), remarks: [...missingPrograms(), ...doubts(rounds)] }
  } finally {
    await children.close()
  }
}

/** Streams that are long enough to be all open for `seconds`. */
export function shapeOf(streams: number, seconds: number): Shape {
  const lengthMs = (streams / OPEN_PER_SECOND) * 1000 + SETTLE_MS + seconds * 1000 + 700
  return { streams, seconds, fragments: Math.ceil(lengthMs / EVERY_MS) }
}

async function startPeers(children: Children, fragments: number): Promise<Peer[]> {
  const [upstreamPort = 0, proxyPort = 0, barePort = 0] = await freePorts(3)
  const plan = { fragments, everyMs: EVERY_MS }
  await startNode(children, '../load/upstream-process.js', {
    core: CORES.rest,
    port: upstreamPort,
    settings: plan,
  })
  const body = question('anthropic', true)
  const direct = (port: number): LoadRequest => ({ port, path: PATHS.anthropic, headers: {}, body })
  const peers: Peer[] = []
  const nginx = findProgram('nginx')
  if (nginx !== null) {
    const { tested } = CORES
    const proxy = await startProxy(children, {
      nginx,
      core: tested,
      port: proxyPort,
      upstreamPort,
      buffering: 'off',
    })
    peers.push({ name: 'nginx', pid: proxy.pid, request: direct(proxyPort) })
  }
  const gateway = await startGateway(children, CORES.tested, { upstreamPort })
  const { pid } = gateway
  peers.push({ name: 'translated', pid, request: gatewayRequest(gateway, 'anthropic', true) })
  peers.push({ name: 'same', pid, request: gatewayRequest(gateway, 'openai', true) })
  const bare = await startNode(children, '../peers/bare.js', {
    core: CORES.tested,
    port: barePort,
    settings: {
      upstreamPort,
    },
  })
  peers.push({ name: 'bare', pid: bare, request: direct(barePort) })
  return peers
}

/**
 * One round: the CPU time of these processes for each fragment. Rejects if a stream lost a part or its end.
 */
export async function measure(
  children: Children,
  peer: { readonly name: string; readonly pids: readonly number[]; readonly request: LoadRequest },
  shape: Shape,
): Promise<Round> {
  const { streams, fragments, seconds } = shape
  const path = fileURLToPath(new URL('../load/paced-streams-process.js', import.meta.url))
  const settings = JSON.stringify({ ...peer.request, streams, fragments })
  const { process: clients } = children.start(CORES.rest, [process.execPath, path, settings], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const limitMs = fragments * EVERY_MS + MESSAGE_LIMIT_MS
  const done = message(clients, 'done', limitMs)
  const open = message(clients, 'open', limitMs)
  // A failure of the message that is not awaited is ignored; the other one reports it.
  for (const each of [done, open]) each.catch(() => undefined)
  // Streams that fail at once end the wait for all to open.
  await Promise.race([open, done])
  await sleep(SETTLE_MS)
  const [cpuBefore, before, from] = [cpuTime(peer.pids), await count(clients), now()]
  await sleep(seconds * 1000)
  const [cpuAfter, after, to] = [cpuTime(peer.pids), await count(clients), now()]
  const found = await done
  clients.disconnect()
  const [whole, fault] = [numberOf(found.whole), stringOf(found.firstFault)]
  if (whole !== streams) {
    throw new Error(`${peer.name} kept ${whole} of ${streams} streams whole; the first: ${fault}`)
  }
  const counted = after.fragments - before.fragments
  const cpu = cpuBetween(cpuBefore, cpuAfter)
  return {
    cpuMicrosecondsEach: cpu.all / counted,
    helperMicrosecondsEach: cpu.helpers / counted,
    kept: counted / (((to - from) / EVERY_MS) * streams),
    together: counted / (after.reads - before.reads),
  }
}

function now(): number {
  return performance.now()
}

/** The counts of the clients so far. */
async function count(clients: ChildProcess): Promise<{ fragments: number; reads: number }> {
  const answer = message(clients, 'count', MESSAGE_LIMIT_MS)
  clients.send('count')
  const { total, reads } = await answer
  return { fragments: numberOf(total) ?? Number.NaN, reads: numberOf(reads) ?? Number.NaN }
}

/** The next message of that type. Rejects if the process exits first or takes too long. */
function message(clients: ChildProcess, type: string, limitMs: number): Promise<JsonObject> {
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      clearTimeout(timer)
      clients.off('message', onMessage)
      clients.off('exit', onExit)
    }
    const onMessage = (value: unknown): void => {
      if (objectOf(value).type !== type) return
      settle()
      resolve(objectOf(value))
    }
    const onExit = (): void => {
      settle()
      reject(new Error(`the clients ended before '${type}'`))
    }
    const timer = setTimeout(() => {
      settle()
      reject(new Error(`the clients did not send '${type}' within ${limitMs} ms`))
    }, limitMs)
    clients.on('message', onMessage)
    clients.once('exit', onExit)
  })
}

function figuresOf(rounds: ReadonlyMap<Peer['name'], readonly Round[]>): Figure[] {
  const figures: Figure[] = []
  const cpu = (name: Peer['name']): number[] =>
    (rounds.get(name) ?? []).map((round) => round.cpuMicrosecondsEach)
  for (const [name, samples] of rounds) {
    figures.push(cpuFigure(`relay.${name}.cpu`, samples, { unit: 'µs/fragment' }))
    const kept = samples.map((round) => round.kept)
    figures.push(figure(`relay.${name}.kept`, kept, { unit: 'of the pace' }))
    const together = samples.map((round) => round.together)
    figures.push(figure(`relay.${name}.together`, together, { unit: 'a read' }))
  }
  for (const name of ['translated', 'same'] as const) {
    const goal = name === 'translated' ? { goal: '≤ 1.2' } : {}
    figures.push(
      figure(`relay.${name}.cpu_over_bare`, ratios(cpu(name), cpu('bare')), { unit: '× bare', ...goal }),
    )
  }
  if (!rounds.has('nginx')) return figures
  for (const name of ['translated', 'same', 'bare'] as const) {
    const costs = ratios(cpu(name), cpu('nginx'))
    const checked = name === 'bare' ? {} : { better: 'lower' as const }
    const goal = name === 'translated' ? { goal: '≤ 2.0' } : {}
    figures.push(figure(`relay.${name}.cpu_ratio`, costs, { unit: '× nginx', ...checked, ...goal }))
  }
  return figures
}

/** Late fragments arrive together and cost less than they should. */
function doubts(rounds: ReadonlyMap<Peer['name'], readonly Round[]>): string[] {
  const remarks: string[] = []
  for (const [name, samples] of rounds) {
    const kept = medianOf(samples.map((round) => round.kept))
    const together = medianOf(samples.map((round) => round.together))
    if (kept > 0.97 && kept < 1.03 && together < 1.1) continue
    remarks.push(
      `${name}: the clients saw ${Math.round(kept * 100)} % of the pace and ${shown(together)} ` +
        'fragments a read; the machine is too busy for that many streams.',
    )
  }
  return remarks
}
