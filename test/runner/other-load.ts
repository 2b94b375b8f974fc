/**
 * The machine's load by other work than this run: the load average has the run's own processes, too, and a
 * run that keeps the cores busy must not excuse its own failures. Only Linux has the figures of processes;
 * elsewhere the whole load counts as the run's, so that nothing is excused.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { loadavg } from 'node:os'

const PROCESSES = '/proc'
/** How often Linux looks at what waits for a core, and the weight of what it saw a minute before. */
const LOOK_MS = 5_000
const KEPT = Math.exp(-LOOK_MS / 60_000)
/** Of `proc(5)`: runs or waits for a core, and waits for a disk. Both count in the load average. */
const BUSY = ['R', 'D']

interface Stat {
  readonly state: string
  readonly parent: number
  readonly startedAt: string
}

/** Undefined if the process has ended. */
function statOf(path: string): Stat | undefined {
  try {
    const line = readFileSync(path, 'latin1')
    const fields = line.slice(line.lastIndexOf(')') + 2).split(' ')
    return { state: fields[0] ?? '', parent: Number(fields[1]), startedAt: fields[19] ?? '' }
  } catch {
    return undefined
  }
}

function numbersIn(folder: string): number[] {
  try {
    return readdirSync(folder)
      .map(Number)
      .filter((each) => each > 0)
  } catch {
    return []
  }
}

/** The processes that descend from one, also those whose parent has ended since the last look. */
export class Descendants {
  private readonly root: number
  /** When each started, because numbers are used again. */
  private known = new Map<number, string>()

  constructor(root: number) {
    this.root = root
  }

  /** Looks at all processes; returns how many threads of the descendants run or wait for a core. */
  busyThreads(): number {
    const stats = new Map<number, Stat>()
    for (const pid of numbersIn(PROCESSES)) {
      const stat = statOf(`${PROCESSES}/${String(pid)}/stat`)
      if (stat !== undefined) stats.set(pid, stat)
    }
    const isOurs = new Map<number, boolean>([[this.root, true]])
    const found = new Map<number, string>()
    for (const [pid, { startedAt }] of stats) {
      if (this.decide(pid, stats, isOurs) && pid !== this.root) found.set(pid, startedAt)
    }
    this.known = found
    return [...found.keys()].flatMap(threadStates).filter((state) => BUSY.includes(state)).length
  }

  private decide(pid: number, stats: ReadonlyMap<number, Stat>, isOurs: Map<number, boolean>): boolean {
    const decided = isOurs.get(pid)
    const stat = stats.get(pid)
    if (decided !== undefined || stat === undefined) return decided ?? false
    const answer = this.known.get(pid) === stat.startedAt || this.decide(stat.parent, stats, isOurs)
    isOurs.set(pid, answer)
    return answer
  }
}

function threadStates(pid: number): string[] {
  const folder = `${PROCESSES}/${String(pid)}/task`
  return numbersIn(folder).map((thread) => statOf(`${folder}/${String(thread)}/stat`)?.state ?? '')
}

/** Follows the load until the process ends: the run's part is averaged as Linux averages the whole. */
export class OtherLoad {
  private readonly machineLoad: () => number
  private own = 0

  /** `machineLoad` is the load average of a minute. */
  constructor(machineLoad = () => loadavg()[0] ?? 0) {
    this.machineLoad = machineLoad
  }

  /** Looks at the processes of this run every five seconds. */
  follow(): void {
    if (!existsSync(PROCESSES)) {
      this.own = Infinity
      return
    }
    const run = new Descendants(process.pid)
    setInterval(() => {
      this.look(run.busyThreads())
    }, LOOK_MS).unref()
  }

  /** Counts a look at which this number of threads of the run was busy. */
  look(busyThreads: number): void {
    this.own = this.own * KEPT + busyThreads * (1 - KEPT)
  }

  /** The load of the last minute without the run's own. */
  now(): number {
    return Math.max(0, this.machineLoad() - this.own)
  }
}
