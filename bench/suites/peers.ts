/**
 * Other gateways alternating with this one, chat completions on both sides: CPU time of a whole reply, of a
 * fragment of a paced stream and of a request with a prompt of 1 MB. A gateway that is missing or fails is
 * reported.
 */
import { ANSWER, longQuestion, MARKER, MODELS, PATHS, question } from '../load/sample-traffic.js'
import { Children, freePorts } from '../processes/children.js'
import { sendOnce, closedLoop, type LoadRequest, type Run } from '../load/closed-loop.js'
import { cpuFigure, figure, ratios, type Figure, type Pace, type SuiteResult } from '../report/figures.js'
import { startGateway } from '../processes/gateway.js'
import { startNode, WARM_UP_SECONDS } from './load.js'
import { CORES, findProgram, missingPrograms, processTree } from '../processes/machine.js'
import { startAnswers, startProxy } from '../processes/nginx.js'
import { CRABLLM } from '../peers/crabllm.js'
import { LITELLM, LITELLM_RUST } from '../peers/litellm.js'
import { NOVEUM } from '../peers/noveum.js'
import { install, isInstalled, type PeerKind } from '../peers/peer.js'
import { PORTKEY } from '../peers/portkey.js'
import { TENSORZERO } from '../peers/tensorzero.js'
import { EVERY_MS, measure, shapeOf, type Shape } from './relay.js'
import { LONG_PROMPT_BYTES, LONG_PROMPT_CONNECTIONS } from './splice.js'
import { thisTree, treeOf, type Tree } from '../processes/builds.js'

const KINDS: readonly PeerKind[] = [CRABLLM, NOVEUM, TENSORZERO, PORTKEY, LITELLM, LITELLM_RUST]
/** The workloads. */
const WORKLOADS = ['whole', 'paced', 'long_prompt'] as const
type Workload = (typeof WORKLOADS)[number]
/** The busiest core is the peer's own; 100 streams are 5,000 fragments a second. */
const STREAMS = 100
const UNITS: Readonly<Record<Workload, string>> = {
  whole: 'µs/reply',
  paced: 'µs/fragment',
  long_prompt: 'µs/request',
}
const GOALS: Readonly<Record<Workload, string>> = {
  whole: '≤ 1.0',
  paced: '≤ 1.3',
  long_prompt: '≤ 1.3',
}
const IN_RUST = new Set([CRABLLM.name, NOVEUM.name, TENSORZERO.name])

/** One process, or several, under test. */
interface Peer {
  readonly name: string
  readonly isWarm: boolean
  readonly model: string
  /** The request without its body. */
  readonly to: Omit<LoadRequest, 'body'>
  readonly pids: readonly number[]
}

/** The CPU time of one unit. */
type Cost = Pick<Run, 'cpuMicrosecondsEach' | 'helperMicrosecondsEach'>

/** One workload's costs, by peer. */
type Samples = Map<string, Cost[]>

/** Rejects if nginx is missing, or if this gateway itself fails. Failures of peers are remarks. */
export async function runPeers(pace: Pace): Promise<SuiteResult> {
  const remarks = missingPrograms()
  const kinds = KINDS.filter(({ name }) => pace.only?.includes(name) ?? true)
  if (pace.install) for (const kind of kinds) if (!isInstalled(kind)) install(kind)
  for (const { name, version } of kinds.filter((kind) => !isInstalled(kind))) {
    remarks.push(`${name} ${version} is not installed; '--install' installs it. Not measured.`)
  }
  const trees = [thisTree(), ...(pace.commit === null ? [] : [treeOf(pace.commit)])]
  const figures: Figure[] = []
  for (const workload of WORKLOADS) {
    const children = new Children()
    try {
      const fragments = shapeOf(pace.streams ?? STREAMS, pace.seconds ?? 4).fragments
      const starter = new Starter(children, await startUpstream(children, workload, fragments))
      const peers = [await starter.nginx(workload), ...(await starter.gateways(trees))]
      peers.push(...(await starter.others(kinds.filter(isInstalled), remarks)))
      const samples = await alternate(children, workload, { peers, pace, remarks })
      figures.push(...figuresOf(workload, samples))
    } finally {
      await children.close()
    }
  }
  return { figures, remarks }
}

/** nginx for whole replies; a paced process for streams. */
async function startUpstream(children: Children, workload: Workload, fragments: number): Promise<number> {
  const [port = 0] = await freePorts(1)
  if (workload === 'paced') {
    await startNode(children, '../load/upstream-process.js', {
      core: CORES.rest,
      port,
      settings: {
        fragments,
        everyMs: EVERY_MS,
      },
    })
  } else {
    await startAnswers(children, { nginx: nginxProgram(), core: CORES.rest, port })
  }
  return port
}

function nginxProgram(): string {
  const nginx = findProgram('nginx')
  if (nginx === null) throw new Error('peers needs nginx (Debian package nginx-light)')
  return nginx
}

/** Starts the peers of one workload. */
class Starter {
  private readonly children: Children
  private readonly upstreamPort: number

  constructor(children: Children, upstreamPort: number) {
    this.children = children
    this.upstreamPort = upstreamPort
  }

  async nginx(workload: Workload): Promise<Peer> {
    const { children, upstreamPort } = this
    const [port = 0] = await freePorts(1)
    const buffering = workload === 'paced' ? 'off' : 'on'
    const core = CORES.tested
    const { pid } = await startProxy(children, {
      nginx: nginxProgram(),
      core,
      port,
      upstreamPort,
      buffering,
    })
    const to = { port, path: PATHS.openai, headers: {} }
    return { name: 'nginx', isWarm: true, model: MODELS.openai, to, pids: [pid] }
  }

  async gateways(trees: readonly Tree[]): Promise<Peer[]> {
    const peers: Peer[] = []
    for (const tree of trees) {
      const { children, upstreamPort } = this
      const gateway = await startGateway(children, CORES.tested, { upstreamPort, tree })
      const headers = { authorization: `Bearer ${gateway.secret}` }
      const to = { port: gateway.port, path: PATHS.openai, headers }
      const { name } = tree
      peers.push({ name, isWarm: false, model: MODELS.openai, to, pids: gateway.pids() })
    }
    return peers
  }

  /** The gateways that start; a remark for each that does not. */
  async others(kinds: readonly PeerKind[], remarks: string[]): Promise<Peer[]> {
    const peers: Peer[] = []
    for (const kind of kinds) {
      const [free = 0] = await freePorts(1)
      const { children, upstreamPort } = this
      try {
        const place = { children, core: CORES.tested, port: free, upstreamPort }
        const { started, port = free, path, model, headers } = await kind.start(place)
        const pids = processTree(started.pid)
        peers.push({ name: kind.name, isWarm: false, model, to: { port, path, headers }, pids })
      } catch (error) {
        remarks.push(`${kind.name} ${kind.version} did not start: ${messageOf(error)}`)
      }
    }
    return peers
  }
}

/** Rounds of every gateway in turn. One that fails is omitted from then on, with a remark. */
async function alternate(
  children: Children,
  workload: Workload,
  { peers, pace, remarks }: { peers: readonly Peer[]; pace: Pace; remarks: string[] },
): Promise<Samples> {
  const seconds = pace.seconds ?? 4
  const samples: Samples = new Map()
  const load = { children, workload, shape: shapeOf(pace.streams ?? STREAMS, seconds) }
  const failed = new Set<string>()
  const attempt = async (peer: Peer, run: () => Promise<void>): Promise<void> => {
    if (failed.has(peer.name)) return
    try {
      await run()
    } catch (error) {
      if (peer.name === 'sluice') throw error
      failed.add(peer.name)
      samples.delete(peer.name)
      remarks.push(`${peer.name} failed at ${workload}: ${messageOf(error)}`)
    }
  }
  for (const peer of peers) {
    await attempt(peer, async () => {
      await check(peer, workload)
      if (peer.isWarm) return
      // The length of paced streams is fixed, so these are measured several times instead.
      const rounds = workload === 'paced' ? 3 : 1
      const warmUp = Math.min(WARM_UP_SECONDS, 7 * seconds)
      for (let round = 0; round < rounds; round++) await sample(load, peer, warmUp)
    })
  }
  for (let round = 0; round < (pace.rounds ?? 3); round++) {
    for (const peer of peers) {
      await attempt(peer, async () => {
        const cost = await sample(load, peer, seconds)
        samples.set(peer.name, [...(samples.get(peer.name) ?? []), cost])
      })
    }
  }
  return samples
}

function requestOf({ to, model }: Peer, workload: Workload): LoadRequest {
  const body =
    workload === 'long_prompt'
      ? longQuestion('ascii', LONG_PROMPT_BYTES)
      : question('openai', workload === 'paced')
  return { ...to, body: body.replace(`"${MODELS.openai}"`, () => JSON.stringify(model)) }
}

async function check(peer: Peer, workload: Workload): Promise<void> {
  const { status, text } = await sendOnce(requestOf(peer, workload))
  const isWhole = workload === 'paced' ? text.includes(MARKER) : text.includes(ANSWER)
  if (status === 200 && isWhole) return
  throw new Error(`answered ${status} without the whole text: ${text.slice(0, 300)}`)
}

/** The settings of all gateways of a workload. */
interface Load {
  readonly children: Children
  readonly workload: Workload
  /** Of paced streams. */
  readonly shape: Shape
}

/** The CPU time of all processes of the peer for each reply, fragment or request. */
async function sample(load: Load, peer: Peer, seconds: number): Promise<Cost> {
  const { children, workload, shape } = load
  const request = requestOf(peer, workload)
  const { name, pids } = peer
  if (workload === 'paced') {
    return measure(children, { name, pids, request }, shape)
  }
  const connections = workload === 'long_prompt' ? LONG_PROMPT_CONNECTIONS : 32
  return closedLoop(children, request, { pids, seconds, connections })
}

function figuresOf(workload: Workload, samples: Samples): Figure[] {
  const figures: Figure[] = []
  const allOf = (costs: readonly Cost[]): number[] => costs.map((cost) => cost.cpuMicrosecondsEach)
  const ours = allOf(samples.get('sluice') ?? [])
  for (const [name, costs] of samples) {
    figures.push(cpuFigure(`peers.${workload}.${name}.cpu`, costs, { unit: UNITS[workload] }))
    if (name === 'sluice') continue
    const goal = IN_RUST.has(name) ? { goal: GOALS[workload] } : {}
    const shares = ratios(ours, allOf(costs))
    figures.push(figure(`peers.${workload}.cpu_over_${name}`, shares, { unit: `× ${name}`, ...goal }))
  }
  return figures
}

function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  return text.replaceAll(/\s+/g, ' ').slice(0, 300)
}
