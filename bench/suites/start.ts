/**
 * Start-up time and idle memory of `sluice serve` with one worker, on all cores: this build, alternating with
 * an older one.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Children, freePorts } from '../processes/children.js'
import { figure, ratios, type Figure, type Pace, type SuiteResult } from '../report/figures.js'
import { startGateway } from '../processes/gateway.js'
import { residentBytes } from '../processes/machine.js'
import { thisTree, treeOf, type Tree } from '../processes/builds.js'

interface Sample {
  readonly readyMs: number
  readonly idleMegabytes: number
}

/** Idle time before memory is read, so that garbage of the start has been collected. */
const IDLE_SECONDS = 10

/** `--seconds` is how long each gateway idles before its memory is read. */
export async function runStart(pace: Pace): Promise<SuiteResult> {
  const trees = [thisTree(), ...(pace.commit === null ? [] : [treeOf(pace.commit)])]
  const samples = new Map<Tree, Sample[]>(trees.map((tree) => [tree, []]))
  for (let round = 0; round < (pace.rounds ?? 5); round++) {
    for (const tree of trees) {
      samples.get(tree)?.push(await measure(tree, pace.seconds ?? IDLE_SECONDS))
    }
  }
  return { figures: figuresOf(samples), remarks: [] }
}

async function measure(tree: Tree, seconds: number): Promise<Sample> {
  const children = new Children()
  try {
    const [upstreamPort = 0] = await freePorts(1)
    const gateway = await startGateway(children, null, { upstreamPort, tree })
    await sleep(seconds * 1000)
    const idleMegabytes = residentBytes(gateway.pids()) / 2 ** 20
    return { readyMs: gateway.readyMs, idleMegabytes }
  } finally {
    await children.close()
  }
}

function figuresOf(samples: ReadonlyMap<Tree, readonly Sample[]>): Figure[] {
  const figures: Figure[] = []
  const [ours = []] = samples.values()
  for (const [tree, theirs] of samples) {
    const isOurs = theirs === ours
    for (const [name, unit, goal, of] of [
      ['ready', 'ms', '≤ 600', (each: Sample) => each.readyMs],
      ['idle', 'MB', '≤ 150', (each: Sample) => each.idleMegabytes],
    ] as const) {
      const at = `start.${tree.name}.${name}`
      figures.push(figure(at, theirs.map(of), { unit, ...(isOurs ? { goal } : {}) }))
      if (isOurs) continue
      const shares = ratios(ours.map(of), theirs.map(of))
      figures.push(figure(`start.${name}_ratio`, shares, { unit: `× ${tree.name}`, better: 'lower' }))
    }
  }
  return figures
}
