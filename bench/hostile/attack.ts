/**
 * The process of the hostile clients: `node attack.js '{"port":…}'`. Each connection runs the classes in
 * sequence; the results of each class are sent to the parent process.
 */
import { CLASSES } from './hostile-requests.js'
import type { Target } from './hostile-connection.js'

/** The settings of the process. */
export interface AttackSettings extends Target {
  readonly classes: readonly string[]
  readonly connections: number
  readonly seconds: number
}

/** The results of one class. */
export interface ClassReport {
  readonly name: string
  shots: number
  /** The number of each result. */
  readonly words: Record<string, number>
  /** The longest request, from its first byte to its end. */
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
