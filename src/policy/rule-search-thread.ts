/** The thread of `rule-searches.ts`: searches take turns in it, so that none waits for a long one. */
import { parentPort } from 'node:worker_threads'
import { Lru } from '../base/lru.js'
import type { Steps } from '../base/steps.js'
import { TextTooLarge, type Verdict } from './verdict.js'
import type { RuleSearch, SearchMessage, SearchResult } from './rule-searches.js'
import { ruleSetOf, type RuleSet } from './rules/rule-set.js'
import { boundedSteps, verdictSteps } from './whole-texts.js'

/** Between messages; short, because a client that has left is noticed then. */
const TURN_MS = 10
/** Guardrails whose programs are kept, of this generation and former ones. */
const MAX_SETS = 64

interface Job {
  readonly id: number
  readonly search: RuleSearch
  readonly steps: Steps<Verdict>
}

const jobs: Job[] = []
const sets = new Lru<RuleSet>(MAX_SETS)
/** A client that has left ends its search by a message. */
const NEVER = new AbortController().signal

parentPort?.on('message', ({ id, search }: SearchMessage) => {
  if (search === null) {
    const at = jobs.findIndex((job) => job.id === id)
    if (at >= 0) jobs.splice(at, 1)
    return
  }
  const { name, patterns, parts, timeoutMs } = search
  const steps = boundedSteps(verdictSteps(setOf(name, patterns), parts, search), { leftMs: timeoutMs }, NEVER)
  if (jobs.push({ id, search, steps }) === 1) setImmediate(turn)
})

function setOf(name: string, patterns: readonly string[]): RuleSet {
  const key = JSON.stringify([name, patterns])
  const known = sets.get(key)
  if (known !== undefined) return known
  const rules = ruleSetOf(name, patterns)
  sets.set(key, rules)
  return rules
}

function turn(): void {
  const job = jobs.shift()
  if (job !== undefined && !isFinished(job)) jobs.push(job)
  if (jobs.length > 0) setImmediate(turn)
}

/** Runs a search for one turn; posts its verdict at its end. */
function isFinished({ id, search, steps }: Job): boolean {
  try {
    for (const untilMs = performance.now() + TURN_MS; performance.now() < untilMs;) {
      const { done, value } = steps.next()
      if (done !== true) continue
      post(id, search, value)
      return true
    }
    return false
  } catch (error) {
    const verdict = failureOf(error)
    parentPort?.postMessage({ id, verdict, indexes: [] } satisfies SearchResult)
    return true
  }
}

function failureOf(error: unknown): SearchResult['verdict'] {
  if (error instanceof TextTooLarge) return { kind: 'too large' }
  return { kind: 'failed', reason: error instanceof Error ? error.message : String(error) }
}

function post(id: number, { parts }: RuleSearch, verdict: Verdict): void {
  if (verdict.kind !== 'mask') {
    parentPort?.postMessage({ id, verdict, indexes: [] } satisfies SearchResult)
    return
  }
  const indexes = [...parts.keys()].filter((index) => verdict.texts[index] !== parts[index]?.text)
  const texts = indexes.map((index) => verdict.texts[index] ?? '')
  parentPort?.postMessage({ id, verdict: { kind: 'mask', texts }, indexes } satisfies SearchResult)
}
