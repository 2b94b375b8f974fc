/**
 * Ordinary requests beside hostile ones, sent to the real program with two workers: a phase without hostile
 * requests, each class alone, all classes together, and a wait until memory is released.
 */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { isObject, stringOf } from '../../src/base/json.js'
import { freePorts, listening, type Children } from '../processes/children.js'
import { startGateway, type RunningGateway } from '../processes/gateway.js'
import { residentBytes } from '../processes/machine.js'
import type { Tree } from '../processes/builds.js'
import type { AttackSettings, ClassReport } from './attack.js'
import { OrdinaryLoad, type Ordinary } from './ordinary.js'
import { TurnMeter } from './turn-meter.js'

/** Duration and number of connections. */
export interface HostilePlan {
  readonly tree: Tree
  readonly classes: readonly string[]
  /** Ordinary requests alone: the reference. */
  readonly quietSeconds: number
  /** Each class alone; 0 leaves that phase out. */
  readonly soloSeconds: number
  /** All classes at once. */
  readonly mixedSeconds: number
  readonly connections: number
  readonly ordinaryPerSecond: number
  /** The longest wait until memory is released. */
  readonly recoverySeconds: number
}

/** One phase. */
export interface Phase {
  readonly ordinary: Ordinary
  /** Processor time of the longest iteration of the event loop in any process (`TurnMeter`). */
  readonly loopMs: number
  /** Workers that ended during the phase. */
  readonly workersLost: number
  readonly residentMegabytes: number
}

/** A phase with hostile requests. */
export interface HostilePhase extends Phase {
  readonly classes: readonly ClassReport[]
}

export interface HostileResult {
  readonly quiet: Phase
  readonly solo: ReadonlyMap<string, HostilePhase>
  readonly mixed: HostilePhase
  readonly peakMegabytes: number
  /** After the wait, or when memory is within a fifth of the first phase. */
  readonly afterMegabytes: number
  readonly workersBefore: readonly number[]
  readonly workersAfter: readonly number[]
}

/** The address of hostile clients; ordinary ones come from 127.0.0.1. */
const HOSTILE_ADDRESS = '127.0.0.66'
const WORKERS = 2
const WARM_UP_SECONDS = 3
const SAMPLE_MS = 250
/** A fifth more than before. */
const RECOVERED = 1.2
const MEBIBYTE = 2 ** 20

/** Runs the plan. Rejects if the gateway does not start or the hostile clients fail. */
export async function runPlan(children: Children, plan: HostilePlan): Promise<HostileResult> {
  const ordinaryUpstream = await startEmulator(children, plan.tree)
  const hostileUpstream = await startEmulator(children, plan.tree)
  const replyUpstream = await startReplies(children)
  const meter = new TurnMeter(join(children.folder, 'turns'))
  const gateway = await startGateway(children, null, {
    env: meter.env,
    upstreamPort: ordinaryUpstream,
    tree: plan.tree,
    workers: WORKERS,
    upstreams: upstreams(ordinaryUpstream, hostileUpstream, replyUpstream),
  })
  const load = new OrdinaryLoad(gateway.port, gateway.secret, plan.ordinaryPerSecond)
  const memory = new Memory(gateway)
  try {
    return await new Run(children, plan, { gateway, load, memory, meter }).all()
  } finally {
    memory.end()
    await load.end()
  }
}

/**
 * Two emulators, so that a hostile body that is forwarded costs the upstream of ordinary requests nothing.
 */
async function startEmulator(children: Children, { main }: Tree): Promise<number> {
  const [port = 0] = await freePorts(1)
  const command = [process.execPath, main, 'emulate', '--any-model', '--port', String(port)]
  await listening(port, children.start(null, command, { stdio: 'ignore' }))
  return port
}

async function startReplies(children: Children): Promise<number> {
  const [port = 0] = await freePorts(1)
  const path = fileURLToPath(new URL('reply-upstream.js', import.meta.url))
  const command = [process.execPath, path, String(port)]
  await listening(port, children.start(null, command, { stdio: 'ignore' }))
  return port
}

function upstreams(ordinary: number, hostile: number, replies: number): string {
  const origin = `http://127.0.0.1:${hostile}`
  return `upstreams:
  ordinary: { dialect: openai-chat, base_url: 'http://127.0.0.1:${ordinary}/v1', api_key: emulated }
  replies: { dialect: openai-chat, base_url: 'http://127.0.0.1:${replies}/v1', api_key: emulated }
  openai: { dialect: openai-chat, base_url: '${origin}/v1', api_key: emulated }
  anthropic: { dialect: anthropic, base_url: '${origin}/v1', api_key: emulated }
  google: { dialect: gemini, base_url: '${origin}/v1beta', api_key: emulated }
routes:
  - { model: gpt-4o-mini, upstream: ordinary }
  - { prefix: costly-, upstream: replies }
  - { prefix: gpt-, upstream: openai }
  - { prefix: claude-, upstream: anthropic }
  - { prefix: gemini-, upstream: google }
`
}

/** The gateway and what is measured of it. */
interface Measured {
  readonly gateway: RunningGateway
  readonly load: OrdinaryLoad
  readonly memory: Memory
  readonly meter: TurnMeter
}

class Run {
  private readonly children: Children
  private readonly plan: HostilePlan
  private readonly gateway: RunningGateway
  private readonly load: OrdinaryLoad
  private readonly memory: Memory
  private readonly meter: TurnMeter

  constructor(children: Children, plan: HostilePlan, { gateway, load, memory, meter }: Measured) {
    this.children = children
    this.plan = plan
    this.gateway = gateway
    this.load = load
    this.memory = memory
    this.meter = meter
  }

  async all(): Promise<HostileResult> {
    const { plan, gateway } = this
    await sleep(WARM_UP_SECONDS * 1000)
    const quiet = await this.phase(() => sleep(plan.quietSeconds * 1000))
    const workersBefore = workersOf(gateway)
    const solo = new Map<string, HostilePhase>()
    for (const name of plan.soloSeconds > 0 ? plan.classes : []) {
      solo.set(name, await this.attacked([name], plan.soloSeconds, 1))
    }
    const mixed = await this.attacked(plan.classes, plan.mixedSeconds, plan.connections)
    const afterMegabytes = await this.recovered(quiet.residentMegabytes * RECOVERED)
    const workersAfter = workersOf(gateway)
    const { peakMegabytes } = this.memory
    return { quiet, solo, mixed, peakMegabytes, afterMegabytes, workersBefore, workersAfter }
  }

  private async attacked(
    classes: readonly string[],
    seconds: number,
    connections: number,
  ): Promise<HostilePhase> {
    let reports: readonly ClassReport[] = []
    const phase = await this.phase(async () => {
      const { port, secret } = this.gateway
      const target = { port, secret, from: HOSTILE_ADDRESS }
      reports = await attack(this.children, { ...target, classes, seconds, connections })
    })
    return { ...phase, classes: reports }
  }

  private async phase(during: () => Promise<unknown>): Promise<Phase> {
    const { gateway, load, memory, meter } = this
    const before = workersOf(gateway)
    await load.take()
    meter.take()
    await during()
    const ordinary = await load.take()
    const loopMs = meter.take()
    const after = new Set(workersOf(gateway))
    const workersLost = before.filter((pid) => !after.has(pid)).length
    return { ordinary, loopMs, workersLost, residentMegabytes: memory.read() }
  }

  /** Ordinary requests continue, since garbage is collected only under load. */
  private async recovered(goalMegabytes: number): Promise<number> {
    const until = performance.now() + this.plan.recoverySeconds * 1000
    while (performance.now() < until && this.memory.read() > goalMegabytes) await sleep(SAMPLE_MS)
    return this.memory.read()
  }
}

/** Without the primary: a process that serves is a worker, or the only process. */
function workersOf(gateway: RunningGateway): number[] {
  const [, ...workers] = gateway.pids()
  return workers
}

/** Watches the resident memory of all processes of the gateway. */
class Memory {
  peakMegabytes = 0
  private last = 0
  private readonly gateway: RunningGateway
  private readonly timer: NodeJS.Timeout

  constructor(gateway: RunningGateway) {
    this.gateway = gateway
    this.timer = setInterval(() => this.read(), SAMPLE_MS)
  }

  read(): number {
    try {
      this.last = residentBytes(this.gateway.pids()) / MEBIBYTE
      this.peakMegabytes = Math.max(this.peakMegabytes, this.last)
    } catch {
      // A worker exited during the read; the phase reports it.
    }
    return this.last
  }

  end(): void {
    clearInterval(this.timer)
  }
}

async function attack(children: Children, settings: AttackSettings): Promise<ClassReport[]> {
  const path = fileURLToPath(new URL('attack.js', import.meta.url))
  const command = [process.execPath, path, JSON.stringify(settings)]
  const { process: child } = children.start(null, command, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const reports: ClassReport[] = []
  child.on('message', (message) => {
    if (Array.isArray(message)) reports.push(...message.filter(isReport))
  })
  await once(child, 'exit')
  if (reports.length > 0) return reports
  throw new Error(`the hostile clients ended with ${child.exitCode ?? child.signalCode}`)
}

function isReport(value: unknown): value is ClassReport {
  return isObject(value) && stringOf(value.name) !== undefined
}
