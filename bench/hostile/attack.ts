/**
 * The hostile clients, a process of their own: `node attack.js '{"port":…}'`. So many at a time, each with one class
 * after the other; tells the process that started it what came of each class.
 */
import { CLASSES } from './classes.js'
import type { Target } from './wire.js'

/** What the process is started with. */
export interface AttackSettings extends Target {
  readonly classes: readonly string[]
  readonly connections: number
  readonly seconds: number
}

/** What came of one class. */
export interface ClassReport {
  readonly name: string
  shots: number
  /** How often each word came. */
  readonly words: Record<string, number>
  /** The longest shot, from its first byte to its end. */
  worstMs: number
}

async function run(settings: AttackSettings): Promise<ClassReport[]> {
  const reports = settings.classes.map((name): ClassReport => ({
    name,
    shots: 0,
    words: {},
    worstMs: 0,
  }))
  const until = performance.now() + settings.seconds * 1000
  let next = 0
  const client = async (): Promise<void> => {
    while (performance.now() < until) {
      const report = reports[next++ % reports.length]
      if (report === undefined) return
      await shoot(settings, report)
    }
  }
  await Promise.all(Array.from({ length: settings.connections }, client))
  return reports
}

async function shoot(target: Target, report: ClassReport): Promise<void> {
  const shot = CLASSES.get(report.name)
  if (shot === undefined) throw new Error(`there is no class '${report.name}'`)
  const from = performance.now()
  const word = await shot(target, report.shots++)
  report.worstMs = Math.max(report.worstMs, performance.now() - from)
  report.words[word] = (report.words[word] ?? 0) + 1
}

process.once('disconnect', () => process.exit(0))
const given = JSON.parse(process.argv[2] ?? '{}') as AttackSettings
process.send?.(await run(given))
process.disconnect()
