/**
 * Counters by the values of keys' labels that the configuration names (`metrics.labels`). The first values of
 * a label have series of their own; the rest counts as `other`.
 *
 * The workers of a gateway must agree on the first values, so a worker queries the primary for a value that
 * it sees for the first time, and exports what it has counted for it when the answer is there.
 */
import { DEFINITIONS, LABEL_METRICS, type LabelMetric } from './metric-definitions.js'
import type { Collected, Sample } from './metric-types.js'

/** A label that has series. */
export interface LabelSetting {
  /** The label of keys: `cost-center`. */
  readonly name: string
  /** The label of the series: `cost_center`. */
  readonly series: string
  /** Number of values with series of their own. */
  readonly values: number
}

/** A value that a process sees for the first time. */
export interface LabelQuestion {
  readonly label: string
  readonly value: string
  readonly most: number
}

/** The values of a label that have series; with `isFull` there will be no others. */
interface LabelAnswer {
  readonly values: readonly string[]
  readonly isFull: boolean
}

/** The value of all others. */
const OTHER = 'other'
/** Values that wait for an answer; further ones count as `other`. */
const MAX_WAITING = 1_000
/**
 * Series of a label over all metrics, per value: one for each upstream and cause, for the cost, and for each
 * kind of limit. The series of a value beyond them count as `other`.
 */
const SERIES_PER_VALUE = 40

/** The first values of each label, in the process that decides for all. */
export class FirstValues {
  private readonly labels = new Map<string, Set<string>>()

  /** The values of the label, with this one if there was room. */
  admit({ label, value, most }: LabelQuestion): LabelAnswer {
    let values = this.labels.get(label)
    if (values === undefined) this.labels.set(label, (values = new Set()))
    if (values.size < most && value !== OTHER) values.add(value)
    return { values: [...values], isFull: values.size >= most }
  }

  /** The answer to a worker's message; null if the message is something else. */
  answer(message: unknown): LabelAnswer | null {
    return isQuestion(message) ? this.admit(message.firstValue) : null
  }
}

/** A worker's message to the primary. */
export interface LabelMessage {
  readonly firstValue: LabelQuestion
}

function isQuestion(message: unknown): message is LabelMessage {
  if (typeof message !== 'object' || message === null || !('firstValue' in message)) return false
  const { firstValue } = message
  return (
    typeof firstValue === 'object' &&
    firstValue !== null &&
    'label' in firstValue &&
    typeof firstValue.label === 'string' &&
    'value' in firstValue &&
    typeof firstValue.value === 'string' &&
    'most' in firstValue &&
    typeof firstValue.most === 'number'
  )
}

/** Whether a message is the primary's answer. */
function isAnswer(message: unknown): message is LabelAnswer {
  return (
    typeof message === 'object' &&
    message !== null &&
    'values' in message &&
    Array.isArray(message.values) &&
    'isFull' in message
  )
}

/** One series. */
interface Count {
  readonly labels: Sample['labels']
  value: number
}

/** What was counted for a value, by metric and its other label values, which are from closed sets. */
type Counts = Map<LabelMetric, Map<string, Count>>

/** A label of this process. */
interface LabelState {
  setting: LabelSetting
  readonly shown: Map<string, Counts>
  /** Values that wait for an answer. */
  readonly waiting: Map<string, { counts: Counts; isSent: boolean }>
  readonly other: Counts
  /** Unknown values are `other` without a question. */
  isFull: boolean
  series: number
}

/** The counters of one process. */
export class LabelMetrics {
  private readonly labels = new Map<string, LabelState>()
  private query: (question: LabelQuestion) => unknown

  constructor() {
    const own = new FirstValues()
    this.query = (question) => own.admit(question)
  }

  /** Sends questions to another process from now on; `query` may return a promise. */
  queryWith(query: (question: LabelQuestion) => unknown): void {
    this.query = query
  }

  /** Adds to a counter for each label of the settings that the key has. */
  count(
    settings: readonly LabelSetting[],
    keyLabels: Readonly<Record<string, string>>,
    { metric, labels, amount = 1 }: { metric: LabelMetric; labels: string[]; amount?: number },
  ): void {
    for (const setting of settings) {
      const value = keyLabels[setting.name]
      if (value === undefined || !(amount > 0)) continue
      const state = this.stateOf(setting)
      add(state, { value, counts: this.countsOf(state, value) }, { metric, values: labels, amount })
    }
  }

  /** The metrics in the form that `Registry.registerMetric` accepts. */
  metrics(): LabelCounter[] {
    return LABEL_METRICS.map((metric) => new LabelCounter(metric, () => this.labels.values()))
  }

  private stateOf(setting: LabelSetting): LabelState {
    const known = this.labels.get(setting.name)
    if (known !== undefined) {
      // After a reload with another number of values, questions are sent again.
      if (known.setting.values !== setting.values) known.isFull = false
      known.setting = setting
      return known
    }
    const empty = { shown: new Map(), waiting: new Map(), other: new Map(), series: 0 }
    const state = { ...empty, setting, isFull: false }
    this.labels.set(setting.name, state)
    return state
  }

  private countsOf(state: LabelState, value: string): Counts {
    const shown = state.shown.get(value)
    if (shown !== undefined) return shown
    if (state.isFull || value === OTHER) return state.other
    const waiting = state.waiting.get(value) ?? { counts: new Map(), isSent: false }
    if (!state.waiting.has(value)) {
      if (state.waiting.size >= MAX_WAITING) return state.other
      state.waiting.set(value, waiting)
    }
    if (!waiting.isSent) {
      waiting.isSent = true
      const { name: label, values: most } = state.setting
      const answer = this.query({ label, value, most })
      if (answer instanceof Promise) {
        void answer.then((answered: unknown) => settle(state, value, answered))
      } else settle(state, value, answer)
    }
    return state.shown.get(value) ?? state.waiting.get(value)?.counts ?? state.other
  }
}

/**
 * Moves what was counted for the value to its series, or to `other`; without an answer the next use repeats
 * the question.
 */
function settle(state: LabelState, value: string, answer: unknown): void {
  const waiting = state.waiting.get(value)
  if (!isAnswer(answer)) {
    if (waiting !== undefined) waiting.isSent = false
    return
  }
  for (const name of answer.values) if (!state.shown.has(name)) state.shown.set(name, new Map())
  state.isFull = answer.isFull
  for (const [name, { counts }] of state.waiting) {
    const known = state.shown.get(name)
    if (known === undefined && name !== value && !answer.isFull) continue
    state.waiting.delete(name)
    const into = known === undefined ? { value: OTHER, counts: state.other } : { value: name, counts: known }
    merge(state, into, counts)
  }
}

function merge(
  state: LabelState,
  into: { readonly value: string; readonly counts: Counts },
  counts: Counts,
): void {
  for (const [metric, series] of counts) {
    for (const { labels, value } of series.values()) {
      const values = othersOf(metric).map((name) => String(labels[name]))
      add(state, into, { metric, values, amount: value })
    }
  }
}

function add(
  state: LabelState,
  { value, counts }: { readonly value: string; readonly counts: Counts },
  counted: { metric: LabelMetric; values: readonly string[]; amount: number },
): void {
  const { metric, values, amount } = counted
  let series = counts.get(metric)
  if (series === undefined) {
    series = new Map<string, Count>()
    counts.set(metric, series)
  }
  const key = values.length === 1 ? (values[0] ?? '') : values.join('\0')
  const existing = series.get(key)
  if (existing !== undefined) {
    existing.value += amount
    return
  }
  const isWaiting = counts !== state.other && !state.shown.has(value)
  const isCapped = state.series >= (state.setting.values + 1) * SERIES_PER_VALUE
  if (isCapped && !isWaiting && counts !== state.other) {
    add(state, { value: OTHER, counts: state.other }, counted)
    return
  }
  const labels = Object.fromEntries(othersOf(metric).map((name, at) => [name, values[at] ?? '']))
  if (!isWaiting) state.series += 1
  series.set(key, { labels, value: amount })
}

/** The labels of a metric besides `label` and `value`. */
function othersOf(metric: LabelMetric): readonly string[] {
  return DEFINITIONS[metric].labels.slice(2)
}

/** One counter over all labels, in the form that `Registry.registerMetric` accepts. */
export class LabelCounter {
  readonly name: string
  readonly help: string
  readonly type = 'counter'
  readonly aggregator = 'sum'
  private readonly metric: LabelMetric
  private readonly labels: () => Iterable<LabelState>

  constructor(metric: LabelMetric, labels: () => Iterable<LabelState>) {
    const { name, help } = DEFINITIONS[metric]
    this.name = name
    this.help = help
    this.metric = metric
    this.labels = labels
  }

  get(): Promise<Collected> {
    const values: Sample[] = []
    for (const { setting, shown, other } of this.labels()) {
      const { name: label, series } = setting
      const collect = (value: string, counts: Counts): void => {
        for (const each of counts.get(this.metric)?.values() ?? []) {
          values.push({
            labels: { label, value, [series]: value, ...each.labels },
            value: each.value,
          })
        }
      }
      for (const [value, counts] of shown) collect(value, counts)
      collect(OTHER, other)
    }
    const { name, help, type, aggregator } = this
    return Promise.resolve({ name, help, type, aggregator, values })
  }

  /** Sets every counter to zero. */
  reset(): void {
    for (const { shown, other } of this.labels()) {
      for (const counts of [...shown.values(), other]) counts.delete(this.metric)
    }
  }
}
