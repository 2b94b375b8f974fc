/**
 * Prompts of 1 MB, chat completions on both sides: CPU time of a request compared with nginx, the minimal
 * proxy `bare` and an older commit. The gateway changes at most a few bytes of such a body, so this is the
 * cost of receiving and checking it.
 */
import { ANSWER, longQuestion, MODELS, PATHS, type Script } from '../load/sample-traffic.js'
import { Children, freePorts } from '../processes/children.js'
import { sendOnce, closedLoop, type LoadRequest, type Run } from '../load/closed-loop.js'
import {
  cpuFigure,
  figure,
  medianOf,
  ratios,
  type Figure,
  type Pace,
  type SuiteResult,
} from '../report/figures.js'
import { startGateway } from '../processes/gateway.js'
import { startNode } from './load.js'
import { CORES, findProgram, missingPrograms } from '../processes/machine.js'
import { startAnswers, startProxy } from '../processes/nginx.js'
import { thisTree, treeOf } from '../processes/builds.js'

/** A process under test. */
interface Peer {
  readonly name: string
  readonly pids: readonly number[]
  readonly port: number
  readonly headers: Readonly<Record<string, string>>
}

export const LONG_PROMPT_BYTES = 1_000_000
/** Enough to keep a core busy; 32 bodies of 1 MB at once would measure the memory as well. */
export const LONG_PROMPT_CONNECTIONS = 4
const WARM_UP_SECONDS = 12

/** Rejects if nginx is missing: it is the upstream as well. */
export async function runSplice(pace: Pace): Promise<SuiteResult> {
  const seconds = pace.seconds ?? 4
  const figures: Figure[] = []
  const children = new Children()
  try {
    const peers = await startPeers(children, pace.commit)
    for (const script of ['ascii', 'unicode'] as const) {
      const runs = new Map<string, Run[]>(peers.map(({ name }) => [name, []]))
      for (const peer of peers) {
        await check(peer, script)
        if (peer.name === 'nginx') continue
        await load(children, peer, { script, seconds: Math.min(WARM_UP_SECONDS, 3 * seconds) })
      }
      for (let round = 0; round < (pace.rounds ?? 5); round++) {
        for (const peer of peers) {
          runs.get(peer.name)?.push(await load(children, peer, { script, seconds }))
        }
      }
      figures.push(...figuresOf(script, runs))
    }
    return { figures, remarks: missingPrograms() }
  } finally {
    await children.close()
  }
}

async function startPeers(children: Children, commit: string | null): Promise<Peer[]> {
  const nginx = findProgram('nginx')
  if (nginx === null) throw new Error('splice needs nginx (Debian package nginx-light)')
  const [upstreamPort = 0, proxyPort = 0, barePort = 0] = await freePorts(3)
  await startAnswers(children, { nginx, core: CORES.rest, port: upstreamPort })
  const proxy = await startProxy(children, {
    nginx,
    core: CORES.tested,
    port: proxyPort,
    upstreamPort,
    buffering: 'on',
  })
  const peers: Peer[] = [{ name: 'nginx', pids: [proxy.pid], port: proxyPort, headers: {} }]
  const bare = await startNode(children, '../peers/bare.js', {
    core: CORES.tested,
    port: barePort,
    settings: { upstreamPort },
  })
  peers.push({ name: 'bare', pids: [bare], port: barePort, headers: {} })
  for (const tree of [thisTree(), ...(commit === null ? [] : [treeOf(commit)])]) {
    const gateway = await startGateway(children, CORES.tested, { upstreamPort, tree })
    peers.push({
      name: tree.name,
      pids: gateway.pids(),
      port: gateway.port,
      headers: { authorization: `Bearer ${gateway.secret}` },
    })
  }
  return peers
}

function requestOf({ port, headers }: Peer, script: Script): LoadRequest {
  return { port, headers, path: PATHS.openai, body: longQuestion(script, LONG_PROMPT_BYTES) }
}

function load(
  children: Children,
  peer: Peer,
  { script, seconds }: { script: Script; seconds: number },
): Promise<Run> {
  const { pids } = peer
  const connections = LONG_PROMPT_CONNECTIONS
  return closedLoop(children, requestOf(peer, script), { pids, seconds, connections })
}

async function check(peer: Peer, script: Script): Promise<void> {
  const { status, text } = await sendOnce(requestOf(peer, script))
  if (status === 200 && text.includes(ANSWER)) return
  throw new Error(`${peer.name} answered ${status} (model ${MODELS.openai}): ${text.slice(0, 400)}`)
}

function figuresOf(script: Script, runs: ReadonlyMap<string, readonly Run[]>): Figure[] {
  const figures: Figure[] = []
  const cpu = (name: string): number[] => (runs.get(name) ?? []).map((run) => run.cpuMicrosecondsEach / 1000)
  const rate = (name: string): number[] => (runs.get(name) ?? []).map((run) => run.repliesPerSecond)
  for (const name of runs.keys()) {
    const at = `splice.${script}.${name}`
    figures.push(cpuFigure(`${at}.cpu`, runs.get(name) ?? [], { unit: 'ms/request', perUnit: 1000 }))
    figures.push(figure(`${at}.replies`, rate(name), { unit: 'replies/s' }))
    if (name === 'nginx') {
      const replies = ratios(rate('sluice'), rate(name))
      const goal = { better: 'higher', goal: '≥ 0.3' } as const
      figures.push(figure(`splice.${script}.replies_ratio`, replies, { unit: '× nginx', ...goal }))
    }
    if (name === 'sluice') continue
    const costs = ratios(cpu('sluice'), cpu(name))
    // Only the ratio to nginx is in the baseline: that to a commit needs one to compare with.
    const checked =
      name === 'nginx' ? ({ better: 'lower' } as const) : { goal: name === 'bare' ? '≤ 2.0' : '≤ 0.5' }
    if (!Number.isFinite(medianOf(costs))) continue
    figures.push(figure(`splice.${script}.cpu_over_${name}`, costs, { unit: `× ${name}`, ...checked }))
  }
  return figures
}
