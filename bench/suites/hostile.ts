/**
 * 200 ordinary requests a second beside 8 hostile connections: no ordinary request fails, p99 stays within
 * twice that of the first phase, no worker exits and memory is released. Reports the class that breaks a
 * requirement.
 */
import { Children } from '../processes/children.js'
import { figure, shown, type Figure, type Pace, type SuiteResult } from '../report/figures.js'
import { CLASSES } from '../hostile/hostile-requests.js'
import { runPlan, type HostilePhase, type HostileResult, type Phase } from '../hostile/run.js'
import { thisTree, treeOf } from '../processes/builds.js'

const SECONDS = 60
const CONNECTIONS = 8
const ORDINARY_PER_SECOND = 200
/** Limit of the processor time of one iteration of the event loop. */
const MAX_LOOP_MS = 50
const MAX_P99_RATIO = 2
const MAX_MEMORY_RATIO = 1.2

/**
 * `--seconds` is the length of the mixed phase, `--only` picks classes, `--commit` runs an older commit
 * instead.
 */
export async function runHostile(pace: Pace): Promise<SuiteResult> {
  const seconds = pace.seconds ?? SECONDS
  const classes = [...CLASSES.keys()].filter((name) => pace.only?.includes(name) ?? true)
  if (classes.length === 0) throw new TypeError(`--only takes ${[...CLASSES.keys()].join(', ')}`)
  const children = new Children()
  try {
    const result = await runPlan(children, {
      tree: pace.commit === null ? thisTree() : treeOf(pace.commit),
      classes,
      quietSeconds: Math.min(10, Math.max(3, seconds / 6)),
      soloSeconds: seconds >= 20 ? 3 : 1,
      mixedSeconds: seconds,
      connections: CONNECTIONS,
      ordinaryPerSecond: ORDINARY_PER_SECOND,
      recoverySeconds: 60,
    })
    return { figures: figuresOf(result), remarks: remarksOf(result), failures: breaches(result) }
  } finally {
    await children.close()
  }
}

function one(
  name: string,
  value: number,
  { unit, goal }: { unit: string; goal?: string | undefined },
): Figure {
  return figure(`hostile.${name}`, [value], { unit, ...(goal === undefined ? {} : { goal }) })
}

function figuresOf({ quiet, solo, mixed, peakMegabytes, afterMegabytes }: HostileResult): Figure[] {
  const ratio = mixed.ordinary.p99Ms / quiet.ordinary.p99Ms
  const figures = [
    one('quiet.p99', quiet.ordinary.p99Ms, { unit: 'ms' }),
    one('mixed.p99', mixed.ordinary.p99Ms, { unit: 'ms' }),
    one('mixed.p99_ratio', ratio, { unit: '× quiet', goal: `≤ ${MAX_P99_RATIO}` }),
    one('mixed.failed', mixed.ordinary.failed, { unit: `of ${mixed.ordinary.sent}`, goal: '0' }),
    one('workers_lost', lost([...solo.values(), mixed]), { unit: 'workers', goal: '0' }),
    one('memory.before', quiet.residentMegabytes, { unit: 'MB' }),
    one('memory.peak', peakMegabytes, { unit: 'MB' }),
    one('memory.after', afterMegabytes, { unit: 'MB' }),
    one('memory.after_ratio', afterMegabytes / quiet.residentMegabytes, {
      unit: '× before',
      goal: `≤ ${MAX_MEMORY_RATIO}`,
    }),
  ]
  figures.push(one('quiet.loop', quiet.loopMs, { unit: 'ms' }))
  for (const [name, { loopMs }] of solo) {
    figures.push(one(`${name}.loop`, loopMs, { unit: 'ms', goal: `≤ ${MAX_LOOP_MS}` }))
  }
  figures.push(one('mixed.loop', mixed.loopMs, { unit: 'ms', goal: `≤ ${MAX_LOOP_MS}` }))
  return figures
}

function lost(phases: readonly Phase[]): number {
  return phases.reduce((sum, { workersLost }) => sum + workersLost, 0)
}

/** One line for each class alone, one for each of the mixed phase, and failures. */
function remarksOf({ quiet, solo, mixed, workersBefore, workersAfter }: HostileResult): string[] {
  const remarks: string[] = []
  for (const [name, phase] of solo) {
    remarks.push(`${isBad(phase) ? 'BREAKS' : 'holds '} ${name}: ${describePhase(phase)}`)
  }
  remarks.push(
    `without hostile requests: p99 ${shown(quiet.ordinary.p99Ms)} ms; mixed: ${describePhase(mixed)}`,
  )
  for (const { name, shots, words, worstMs } of mixed.classes) {
    remarks.push(`mixed ${name}: ${shots} shots, ${countsOf(words)}; worst ${shown(worstMs)} ms`)
  }
  for (const fault of new Set([...solo.values(), mixed].flatMap((each) => each.ordinary.failures))) {
    remarks.push(`ordinary request failed: ${fault}`)
  }
  remarks.push(`workers ${workersBefore.join(', ')} before, ${workersAfter.join(', ')} after`)
  return remarks
}

function isBad(phase: HostilePhase): boolean {
  const { ordinary, loopMs, workersLost } = phase
  const hole = phase.classes.some(({ words }) => Object.keys(words).some((word) => word.startsWith('!')))
  return hole || ordinary.failed > 0 || workersLost > 0 || loopMs > MAX_LOOP_MS
}

function describePhase({ ordinary, loopMs, workersLost, residentMegabytes, classes }: HostilePhase): string {
  const [report] = classes
  const shots = classes.length === 1 && report !== undefined ? `${countsOf(report.words)}; ` : ''
  const worst = Math.max(...classes.map(({ worstMs }) => worstMs))
  return (
    `${shots}slowest shot ${shown(worst)} ms; event loop ${shown(loopMs)} ms; ordinary: ` +
    `${ordinary.failed} of ${ordinary.sent} failed, p99 ${shown(ordinary.p99Ms)} ms, worst ` +
    `${shown(ordinary.worstMs)} ms; workers lost ${workersLost}; ${shown(residentMegabytes)} MB`
  )
}

function countsOf(words: Readonly<Record<string, number>>): string {
  return Object.entries(words)
    .map(([word, count]) => `${word} ×${count}`)
    .join(', ')
}

/** Failed requirements. */
function breaches(result: HostileResult): string[] {
  const { quiet, solo, mixed, afterMegabytes } = result
  const found: string[] = []
  const phases = [...[...solo].map(([name, phase]) => ({ name, phase })), { name: 'mixed', phase: mixed }]
  for (const { name, phase } of phases) {
    const { ordinary, workersLost } = phase
    if (ordinary.failed > 0) found.push(`${name}: ${ordinary.failed} ordinary requests failed`)
    if (workersLost > 0) found.push(`${name}: ${workersLost} workers ended`)
    for (const { words } of phase.classes) {
      for (const word of Object.keys(words)) if (word.startsWith('!')) found.push(`${name}: ${word}`)
    }
  }
  const ratio = mixed.ordinary.p99Ms / quiet.ordinary.p99Ms
  // Negated, so that NaN is a failure.
  if (!(ratio <= MAX_P99_RATIO)) found.push(`mixed: p99 is ${shown(ratio)} × that of the quiet phase`)
  const memory = afterMegabytes / quiet.residentMegabytes
  if (!(memory <= MAX_MEMORY_RATIO)) found.push(`memory stays at ${shown(memory)} × of before`)
  return found
}
