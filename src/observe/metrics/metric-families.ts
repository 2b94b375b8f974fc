/** The metrics of a process as families of series, made from their definitions. */
import { DEFINITIONS, LABEL_METRICS, type MetricDefinition } from './metric-definitions.js'
import type { Definition } from './metric-types.js'
import type { Count, Family, Level, MetricSet } from './capped-registry.js'
import type { Distribution } from './histogram.js'

/** Further names are resolved on each call, so that a caller's mistake cannot exhaust memory. */
const MAX_CACHED = 1_024

/** Caches the results of `resolve` for a closed set of names. */
export function cached<T>(resolve: (name: string) => T): (name: string) => T {
  const values = new Map<string, T>()
  // Most callers use the same name repeatedly.
  let lastName: string | null = null
  let last: T
  return (name) => {
    if (name === lastName) return last
    const found = values.get(name)
    const value = found ?? resolve(name)
    if (found === undefined && values.size < MAX_CACHED) values.set(name, value)
    lastName = name
    last = value
    return value
  }
}

/** Metrics that are not families: `MetricSet` has the first one, `key-label-metrics.ts` the others. */
const OTHERS = ['seriesDropped', ...LABEL_METRICS] as const

type Definitions = Omit<typeof DEFINITIONS, (typeof OTHERS)[number]>
type MetricType = MetricDefinition['type']
type NameOf<Type extends MetricType> = {
  [Name in keyof Definitions]: Definitions[Name]['type'] extends Type ? Name : never
}[keyof Definitions]
type FamiliesOf<Type extends MetricType, Series> = Readonly<Record<NameOf<Type>, Family<Series>>>

/** All families of a process, by their names in `DEFINITIONS`. */
export type Families = FamiliesOf<'counter', Count> &
  FamiliesOf<'gauge', Level> &
  FamiliesOf<'histogram', Distribution>

export function register(set: MetricSet): Families {
  set.droppedSeries(DEFINITIONS.seriesDropped)
  const families = {
    ...familiesOf('counter', (definition) => set.counter(definition)),
    ...familiesOf('gauge', (definition) => set.gauge(definition)),
    ...familiesOf('histogram', (definition) => set.histogram(definition)),
  }
  startAtZero(families)
  families.startTime.child().set(Date.now() / 1000 - process.uptime())
  return families
}

function familiesOf<Type extends MetricType, Series>(
  type: Type,
  make: (definition: Definition) => Family<Series>,
): FamiliesOf<Type, Series> {
  const names = Object.keys(DEFINITIONS).filter((name) => isNameOf(type, name))
  const families: Partial<Record<NameOf<Type>, Family<Series>>> = {}
  for (const name of names) families[name] = make(DEFINITIONS[name])
  if (hasAll(families, names)) return families
  throw new Error(`Not all metrics of type ${type} have series`)
}

function isNameOf<Type extends MetricType>(type: Type, name: string): name is NameOf<Type> {
  const definitions: Readonly<Record<string, MetricDefinition>> = DEFINITIONS
  return definitions[name]?.type === type && !OTHERS.some((other) => other === name)
}

function hasAll<Name extends string, Value>(
  values: Partial<Record<Name, Value>>,
  names: readonly Name[],
): values is Record<Name, Value> {
  return names.every((name) => values[name] !== undefined)
}

/** Exports these series from the start; otherwise `rate()` would miss their first event. */
function startAtZero(families: Families): void {
  for (const kind of ['spooled', 'replayed', 'dropped', 'damaged']) families.usageRows.child(kind)
  for (const op of ['probe', 'find_key', 'admit', 'settle']) families.storeErrors.child(op)
  for (const reason of ['ended', 'silent']) families.workerRestarts.child(reason)
  families.logLinesLost.child()
  families.configReloads.child('ok')
  families.configReloads.child('refused')
  families.limitsLocal.child().set(0)
  families.overloadLevel.child().set(0)
  for (const resource of ['delay', 'heap', 'open_files', 'in_flight']) families.shed.child(resource)
}
