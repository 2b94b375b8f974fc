/**
 * Goal: masking a request holds at most four times the bytes of its body beside what the request holds
 * without a guardrail, the copies of the thread of the rules included; the budget of bodies counts all of it.
 * Method: gateways on this thread, their client and provider on another one. Between turns of the event loop
 * the garbage is collected, so that the measured heap and buffers are those in use; the search of the thread
 * is measured on this one. Every second day has one of the texts, the long suite all.
 */
import { once } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Worker } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { ruleSetOf } from '../../src/policy/rules/rule-set.js'
import { ruleSearches } from '../../src/policy/rule-searches.js'
import { verdictSteps } from '../../src/policy/whole-texts.js'
import { BodyMemory } from '../../src/gateway/body-memory.js'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { ofToday } from '../helpers/long-suite.js'
import type { Answered, Exchange } from './hostile-peers.js'

t.setTimeout(300_000)

const MOST = 4
const BODY_BYTES = 1_500_000
/** Between two measurements. */
const PAUSE_MS = 40
const PATTERN = 'sk_[a-z0-9]{6,}'
/** Texts in which the rules mask something: seldom, nearly everything, and in two bytes a letter. */
const TEXTS: readonly (readonly [name: string, text: string])[] = [
  ['few matches', `${'words of a prompt '.repeat(5_000)}sk_abcdefgh12 `],
  ['only matches', 'sk_abcdefgh12, sk_ABCdefghij12 '],
  ['two bytes a letter', 'слово sk_abcdefgh12 '],
]

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

function usedBytes(): number {
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/**
 * Measures until it ends: after each turn in which the count of the budget changed, so that no step is missed
 * however busy the machine is, and now and then besides.
 */
class MemoryWatch {
  mostBytes = 0
  private isOver = false

  constructor(budget: { readonly changes: number }) {
    let nextMs = 0
    let seen = budget.changes
    const turn = (): void => {
      if (performance.now() >= nextMs || budget.changes !== seen) {
        seen = budget.changes
        this.mostBytes = Math.max(this.mostBytes, usedBytes())
        nextMs = performance.now() + PAUSE_MS
      }
      if (!this.isOver) setImmediate(turn)
    }
    setImmediate(turn)
  }

  end(): number {
    this.isOver = true
    return this.mostBytes
  }
}

/** The most bytes that the budget counted at once, and how often the count changed. */
function watchBudget(t: Test): { mostBytes: number; changes: number } {
  const seen = { mostBytes: 0, changes: 0 }
  const own: unknown = Reflect.get(BodyMemory.prototype, 'count')
  if (typeof own !== 'function') throw new Error('no method count')
  t.teardown(() => Reflect.set(BodyMemory.prototype, 'count', own))
  BodyMemory.prototype.count = function (account, bytes) {
    Reflect.apply(own, this, [account, bytes])
    seen.mostBytes = Math.max(seen.mostBytes, this.heldBytes)
    seen.changes += 1
  }
  return seen
}

/** The most bytes that the search of the thread holds: its copy of the text, and what it makes of it. */
function searchBytes(text: string): number {
  const before = usedBytes()
  const copy = structuredClone(text)
  const steps = verdictSteps(ruleSetOf('own', [PATTERN]), [{ text: copy, isJson: false }], {
    action: 'mask',
    limit: 1_000,
  })
  for (let most = 0, nextMs = 0; ;) {
    const { done } = steps.next()
    if (done === true || performance.now() >= nextMs) {
      most = Math.max(most, usedBytes() - before)
      nextMs = performance.now() + PAUSE_MS
    }
    if (done === true) return most
  }
}

/** The bytes in use when the last search of the thread began. */
function watchSearch(t: Test): { usedBytes: number } {
  const seen = { usedBytes: 0 }
  const own = ruleSearches.run.bind(ruleSearches)
  t.teardown(() => (ruleSearches.run = own))
  ruleSearches.run = (...args) => {
    seen.usedBytes = usedBytes()
    return own(...args)
  }
  return seen
}

void t.test('a masked body', async (t) => {
  const worker = new Worker(new URL('./hostile-peers.js', import.meta.url))
  t.teardown(() => worker.terminate())
  const [{ port }] = (await once(worker, 'message')) as [{ port: number }]
  const upstreams = { anthropic: `http://127.0.0.1:${port}/v1` }
  const rule = `patterns: ['${PATTERN}'], action: mask, timeout_ms: 60000, apply_to: { all: true }`
  // The measurement delays the event loop.
  const server = 'overload: { enabled: false }'
  const plain = await startGateway(t, { upstreams, server })
  const masking = await startGateway(t, { upstreams, server, more: `guardrails:\n  own: { ${rule} }` })
  const ask = async ({ origin, secret }: TestGateway, text: string, bytes: number): Promise<void> => {
    const body = { model: 'claude-opus-5', max_tokens: 9, messages: [{ role: 'user', content: '(long)' }] }
    const units = (bytes * text.length) / Buffer.byteLength(text)
    const exchange: Exchange = { url: `${origin}/v1/messages`, secret, body, reply: 'small', text, units }
    worker.postMessage(exchange)
    const [{ status }] = (await once(worker, 'message')) as [Answered]
    t.equal(status, 200)
  }
  const budget = watchBudget(t)
  const search = watchSearch(t)
  /** The most bytes that a request holds, and how many of them the budget counts, in bodies. */
  const measured = async (gateway: TestGateway, text: string) => {
    // What the first request loads is not counted.
    await ask(gateway, text, 200_000)
    const before = usedBytes()
    budget.mostBytes = 0
    search.usedBytes = before
    const watch = new MemoryWatch(budget)
    await ask(gateway, text, BODY_BYTES)
    const here = watch.end() - before
    const inThread = searchBytes(text.repeat(Math.ceil(BODY_BYTES / Buffer.byteLength(text))))
    const most = gateway === plain ? here : Math.max(here, search.usedBytes - before + inThread)
    return { times: most / BODY_BYTES, counted: budget.mostBytes / BODY_BYTES }
  }
  for (const [name, text] of ofToday(TEXTS, 2 * TEXTS.length)) {
    // It is short, so that one run may miss its highest point.
    const runs = [await measured(plain, text), await measured(plain, text), await measured(plain, text)]
    const unmasked = { times: Math.max(...runs.map(({ times }) => times)) }
    const { times, counted } = await measured(masking, text)
    const figures = [unmasked.times, times, counted].map((each) => each.toFixed(2))
    t.comment(`${name}: ${figures.join(', ')}`)
    t.ok(times - unmasked.times <= MOST, `${name}: masking adds ${(times - unmasked.times).toFixed(2)}`)
    t.ok(times <= counted, `${name}: ${times.toFixed(2)} bodies, ${counted.toFixed(2)} counted`)
  }
})
