/**
 * Closed-loop load: whole replies, also 1,000 a second, and streams sent at once; the gateway against nginx
 * and the minimal proxy in the same run.
 * The process under test has a core for itself; wrk and the provider share the other one.
 */
import { fileURLToPath } from 'node:url'
import { ANSWER, MARKER, PATHS, question, type Shape } from '../load/sample-traffic.js'
import { Children, freePorts, listening } from '../processes/children.js'
import { sendOnce, closedLoop, type LoadRequest, type Run } from '../load/closed-loop.js'
import { cpuFigure, figure, ratios, type Figure, type Pace, type SuiteResult } from '../report/figures.js'
import { startGateway, type RunningGateway } from '../processes/gateway.js'
import { CORES, findProgram, missingPrograms } from '../processes/machine.js'
import { startAnswers, startProxy } from '../processes/nginx.js'

/** One process under test, and its request. */
interface Peer {
  readonly name: 'nginx' | 'bare' | 'translated' | 'same'
  readonly pid: number
  readonly request: LoadRequest
}

/** The load: whole replies, the same at a fixed rate, or streams whose fragments arrive at once. */
type Kind = 'whole' | 'steady' | 'burst'

/** Whole replies a second of `steady`: a tenth of what a process reaches. */
const STEADY_PER_SECOND = 1000

const FRAGMENTS = 50
/**
 * Time until V8 has compiled the gateway's code: about 20 s, with a burst of compilation after 12 to 17 s.
 */
export const WARM_UP_SECONDS = 28
const GOALS: Readonly<Record<string, string>> = {
  'whole.replies': '≥ 0.33',
  'whole.cpu': '≤ 3.0',
  'burst.replies': '≥ 0.20',
  'burst.cpu': '≤ 5.0',
}
/** The CPU time of a translated reply, as a multiple of the minimal proxy's. */
const OVER_BARE: Readonly<Record<Kind, string>> = { whole: '≤ 1.9', steady: '≤ 1.6', burst: '≤ 1.7' }

/** Runs all kinds. Rejects if a request fails or a reply is not the provider's. */
export async function runLoad(pace: Pace): Promise<SuiteResult> {
  const seconds = pace.seconds ?? 4
  const rounds = pace.rounds ?? 5
  const figures: Figure[] = []
  const remarks = missingPrograms()
  for (const kind of ['whole', 'steady', 'burst'] as const) {
    const children = new Children()
    try {
      const { peers, gateway } = await startPeers(children, kind)
      for (const peer of peers) await checkAnswer(peer, kind)
      figures.push(...(await warmUp(children, peers, { kind, seconds })))
      const runs = await runRounds(children, peers, { kind, gateway, rounds, seconds })
      figures.push(...figuresOf(kind, runs))
      remarks.push(...doubts(kind, runs))
    } finally {
      await children.close()
    }
  }
  return { figures, remarks }
}

async function startPeers(
  children: Children,
  kind: Kind,
): Promise<{ peers: Peer[]; gateway: RunningGateway }> {
  const [upstreamPort = 0, proxyPort = 0, barePort = 0] = await freePorts(3)
  const nginx = findProgram('nginx')
  if (nginx !== null && kind !== 'burst') {
    await startAnswers(children, { nginx, core: CORES.rest, port: upstreamPort })
  } else {
    await startNode(children, '../load/upstream-process.js', {
      core: CORES.rest,
      port: upstreamPort,
      settings: {
        fragments: FRAGMENTS,
        everyMs: 0,
      },
    })
  }
  const stream = kind === 'burst'
  const direct = (port: number): LoadRequest => ({
    port,
    path: PATHS.anthropic,
    headers: {},
    body: question('anthropic', stream),
  })
  const peers: Peer[] = []
  if (nginx !== null) {
    const buffering = stream ? 'off' : 'on'
    const { pid } = await startProxy(children, {
      nginx,
      core: CORES.tested,
      port: proxyPort,
      upstreamPort,
      buffering,
    })
    peers.push({ name: 'nginx', pid, request: direct(proxyPort) })
  }
  const gateway = await startGateway(children, CORES.tested, { upstreamPort })
  const { pid } = gateway
  peers.push({ name: 'translated', pid, request: gatewayRequest(gateway, 'anthropic', stream) })
  peers.push({ name: 'same', pid, request: gatewayRequest(gateway, 'openai', stream) })
  const bare = await startNode(children, '../peers/bare.js', {
    core: CORES.tested,
    port: barePort,
    settings: {
      upstreamPort,
    },
  })
  peers.push({ name: 'bare', pid: bare, request: direct(barePort) })
  return { peers, gateway }
}

/** The core, port and settings of a process of the benchmark. */
export interface NodeSettings {
  readonly core: number
  readonly port: number
  /** Further settings of the process. */
  readonly settings: Readonly<Record<string, number>>
}

/** Starts a process of the benchmark and waits until it listens. */
export async function startNode(
  children: Children,
  file: string,
  { core, port, settings }: NodeSettings,
): Promise<number> {
  const path = fileURLToPath(new URL(file, import.meta.url))
  const command = [process.execPath, path, JSON.stringify({ port, ...settings })]
  const started = children.start(core, command, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  await listening(port, started)
  return started.pid
}

/** A client's request to the gateway for an upstream of that shape. */
export function gatewayRequest(gateway: RunningGateway, shape: Shape, stream: boolean): LoadRequest {
  return {
    port: gateway.port,
    path: '/v1/chat/completions',
    headers: { authorization: `Bearer ${gateway.secret}` },
    body: question(shape, stream),
  }
}

/** Each program must return the provider's text before it is measured. */
async function checkAnswer(peer: Peer, kind: Kind): Promise<void> {
  const { status, text } = await sendOnce(peer.request)
  const found = kind !== 'burst' ? text.includes(ANSWER) : text.split(MARKER).length - 1 === FRAGMENTS
  if (status === 200 && found) return
  throw new Error(`${peer.name} answered ${status} without the whole text: ${text.slice(0, 400)}`)
}

/** The cost of new Node processes. */
async function warmUp(
  children: Children,
  peers: readonly Peer[],
  { kind, seconds }: { kind: Kind; seconds: number },
): Promise<Figure[]> {
  const figures: Figure[] = []
  for (const { name, request, pid } of peers) {
    const rate = rateOf(kind)
    const cold = await closedLoop(children, request, { pids: pid, seconds, ...rate })
    if (name === 'nginx') continue
    // `same` uses the process that `translated` has warmed up.
    if (name !== 'same') {
      figures.push(figure(`load.${kind}.${name}.cold_cpu`, [cold.cpuMicrosecondsEach], { unit: 'µs/reply' }))
    }
    const warmUp = Math.max(1, WARM_UP_SECONDS - seconds)
    await closedLoop(children, request, { pids: pid, seconds: warmUp, ...rate })
  }
  return figures
}

/** The rate of a kind, if it is fixed. */
function rateOf(kind: Kind): { readonly perSecond?: number } {
  return kind === 'steady' ? { perSecond: STEADY_PER_SECOND } : {}
}

async function runRounds(
  children: Children,
  peers: readonly Peer[],
  {
    kind,
    gateway,
    rounds,
    seconds,
  }: { kind: Kind; gateway: RunningGateway; rounds: number; seconds: number },
): Promise<Map<Peer['name'], Run[]>> {
  const runs = new Map<Peer['name'], Run[]>(peers.map(({ name }) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    for (const { name, request, pid } of peers) {
      gateway.takeLogLines()
      const run = await closedLoop(children, request, { pids: pid, seconds, ...rateOf(kind) })
      runs.get(name)?.push(run)
      const lines = gateway.takeLogLines()
      if (pid === gateway.pid && lines < run.replies * 0.95) {
        throw new Error(`the gateway wrote ${lines} log lines for ${run.replies} replies`)
      }
    }
  }
  return runs
}

function figuresOf(kind: Kind, runs: ReadonlyMap<Peer['name'], readonly Run[]>): Figure[] {
  const figures: Figure[] = []
  const rate = (name: Peer['name']): number[] => (runs.get(name) ?? []).map((run) => run.repliesPerSecond)
  const cpu = (name: Peer['name']): number[] => (runs.get(name) ?? []).map((run) => run.cpuMicrosecondsEach)
  for (const [name, samples] of runs) {
    const at = `load.${kind}.${name}`
    figures.push(figure(`${at}.replies`, rate(name), { unit: 'replies/s' }))
    figures.push(cpuFigure(`${at}.cpu`, samples, { unit: 'µs/reply' }))
    const share = samples.map((run) => run.busy)
    figures.push(figure(`${at}.busy`, share, { unit: 'of a core' }))
    const tail = samples.map((run) => run.p99Ms)
    figures.push(figure(`${at}.p99`, tail, { unit: 'ms' }))
  }
  for (const name of ['translated', 'same'] as const) {
    const goal = name === 'translated' ? { goal: OVER_BARE[kind] } : {}
    const costs = ratios(cpu(name), cpu('bare'))
    figures.push(figure(`load.${kind}.${name}.cpu_over_bare`, costs, { unit: '× bare', ...goal }))
  }
  // At a fixed rate all programs send as much, and nothing is checked.
  if (!runs.has('nginx') || kind === 'steady') return figures
  for (const name of ['translated', 'same', 'bare'] as const) {
    const at = `load.${kind}.${name}`
    const replies = ratios(rate(name), rate('nginx'))
    figures.push(
      figure(`${at}.replies_ratio`, replies, {
        unit: '× nginx',
        ...checkedRatio(kind, name, 'replies'),
      }),
    )
    const costs = ratios(cpu(name), cpu('nginx'))
    figures.push(figure(`${at}.cpu_ratio`, costs, { unit: '× nginx', ...checkedRatio(kind, name, 'cpu') }))
  }
  return figures
}

/** The ratios that are compared with the baseline and the goal. */
function checkedRatio(
  kind: Kind,
  name: Peer['name'],
  what: 'replies' | 'cpu',
): Pick<Figure, 'better' | 'goal'> {
  if (name === 'bare') return {}
  const better = what === 'replies' ? 'higher' : 'lower'
  const goal = name === 'translated' ? GOALS[`${kind}.${what}`] : undefined
  return goal === undefined ? { better } : { better, goal }
}

/**
 * A program that did not saturate its core was limited by the other core: its cost is more reliable than its
 * rate.
 */
function doubts(kind: Kind, runs: ReadonlyMap<Peer['name'], readonly Run[]>): string[] {
  const remarks: string[] = []
  if (kind === 'steady') return remarks
  for (const [name, samples] of runs) {
    const { median } = figure(
      '',
      samples.map((run) => run.busy),
      { unit: '' },
    )
    if (median >= 0.9) continue
    const share = Math.round(median * 100)
    remarks.push(
      `${kind}: ${name} used ${share} % of its core, so the other core or the machine's ` +
        'other work held it back; compare its cpu, not its replies/s.',
    )
  }
  return remarks
}
