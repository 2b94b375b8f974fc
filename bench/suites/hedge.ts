/**
 * Hedging against a bimodal provider: a few replies take 2 s to their first content, the others 30 ms. The
 * same load goes alternately to a route without and a route with `hedge`, and both distributions are drawn.
 */
import { once } from 'node:events'
import { Agent, request, type IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { startEmulator, type Emulator } from '../../src/emulator/server.js'
import { Children } from '../processes/children.js'
import { figure, ratios, type Chart, type Figure, type Pace, type SuiteResult } from '../report/figures.js'
import { startGateway, type RunningGateway } from '../processes/gateway.js'
import { tailChart } from '../report/tail-chart.js'

/** One reply in 67 is slow: 1.5 %. */
const SLOW_EVERY = 67
const SLOW_MS = 2000
const FAST_MS = 30
const AFTER_MS = 150
const EXTRA_SPEND = 0.02
const PER_SECOND = 100
const WARM_UP_SECONDS = 5
/** Usage is settled shortly after the end of a reply, cancelled ones included. */
const SETTLE_MS = 500

const ROUTES = ['plain', 'hedged'] as const
type Route = (typeof ROUTES)[number]

/** A bimodal provider. */
interface Provider {
  readonly emulator: Emulator
  /** Requests so far. */
  readonly received: number
}

/** One turn of one route. */
interface Turn {
  /** Time to first content of each request, in ascending order. */
  readonly firstMs: readonly number[]
  readonly usdEach: number
  /** Requests that the providers received beyond those of the clients, as a share of these. */
  readonly extraRequests: number
}

/** Rejects if a reply was not complete. */
export async function runHedge(pace: Pace): Promise<SuiteResult> {
  const seconds = pace.seconds ?? 20
  const children = new Children()
  const providers = [await startProvider(), await startProvider()]
  const agent = new Agent({ keepAlive: true })
  try {
    const upstreams = configText(providers)
    const gateway = await startGateway(children, null, { upstreamPort: 0, upstreams })
    const bench = new Bench(gateway, agent, providers)
    for (const route of ROUTES) await bench.turn(route, Math.min(WARM_UP_SECONDS, seconds))
    const turns: Record<Route, Turn[]> = { plain: [], hedged: [] }
    for (let round = 0; round < (pace.rounds ?? 5); round++) {
      for (const route of ROUTES) turns[route].push(await bench.turn(route, seconds))
    }
    return { figures: figuresOf(turns), remarks: [], chart: chartOf(turns) }
  } finally {
    agent.destroy()
    await Promise.all(providers.map(({ emulator }) => emulator.close()))
    await children.close()
  }
}

/** A provider that is slow at fixed positions, so that every turn has the same number of slow replies. */
async function startProvider(): Promise<Provider> {
  const emulator = await startEmulator({ ledger: 0 })
  const provider = { emulator, received: 0 }
  const isSlow = (): boolean => {
    provider.received += 1
    return provider.received % SLOW_EVERY === 0
  }
  emulator.script({ match: isSlow, fault: { kind: 'delay', ms: SLOW_MS, mode: 'first' } })
  emulator.script({ fault: { kind: 'delay', ms: FAST_MS, mode: 'first' } })
  return provider
}

function configText(providers: readonly Provider[]): string {
  const upstreams = providers.map(
    ({ emulator }, index) =>
      `  openai-${index}: { dialect: openai-chat, base_url: '${emulator.baseUrls.openai}', api_key: emulated }\n`,
  )
  const targets = providers.map((_, index) => `{ upstream: openai-${index}, model: gpt-4o-mini }`)
  const hedge = `hedge: { after_ms: ${AFTER_MS}, extra_spend: ${EXTRA_SPEND} }`
  return `upstreams:
${upstreams.join('')}routes:
  - { model: plain, targets: [ ${targets.join(', ')} ] }
  - { model: hedged, targets: [ ${targets.join(', ')} ], ${hedge} }
`
}

/** The clients of one gateway, and the counts of its providers and metrics. */
class Bench {
  private readonly gateway: RunningGateway
  private readonly agent: Agent
  private readonly providers: readonly Provider[]

  constructor(gateway: RunningGateway, agent: Agent, providers: readonly Provider[]) {
    this.gateway = gateway
    this.agent = agent
    this.providers = providers
  }

  /** Sends requests at fixed times, without waiting for earlier replies. */
  async turn(route: Route, seconds: number): Promise<Turn> {
    const receivedBefore = this.received()
    const spentBefore = await this.spentUsd()
    const requests: Promise<number>[] = []
    const from = performance.now()
    for (let index = 0; index < seconds * PER_SECOND; index++) {
      const due = from + (index * 1000) / PER_SECOND
      await sleep(Math.max(0, due - performance.now()))
      const firstMs = this.firstContent(route, due)
      // A failure is thrown below, when all have been sent.
      firstMs.catch(() => undefined)
      requests.push(firstMs)
    }
    const firstMs = (await Promise.all(requests)).sort((a, b) => a - b)
    await sleep(SETTLE_MS)
    return {
      firstMs,
      usdEach: ((await this.spentUsd()) - spentBefore) / firstMs.length,
      extraRequests: (this.received() - receivedBefore) / firstMs.length - 1,
    }
  }

  /**
   * Milliseconds from when the request was due to its first content. Rejects if the reply is not complete.
   */
  private async firstContent(model: Route, due: number): Promise<number> {
    const messages = [{ role: 'user', content: '[[words: 100]] What does the lighthouse see?' }]
    const sent = request({
      agent: this.agent,
      port: this.gateway.port,
      path: '/v1/chat/completions',
      method: 'POST',
      headers: {
        authorization: `Bearer ${this.gateway.secret}`,
        'content-type': 'application/json',
      },
    }).end(JSON.stringify({ model, stream: true, max_tokens: 400, messages }))
    const [reply] = (await once(sent, 'response')) as [IncomingMessage]
    let text = ''
    let firstMs: number | null = null
    for await (const chunk of reply.setEncoding('utf8')) {
      text += String(chunk)
      if (firstMs === null && /"content":"[^"]/.test(text)) firstMs = performance.now() - due
    }
    if (firstMs !== null && text.includes('[DONE]')) return firstMs
    throw new Error(`route ${model} answered ${reply.statusCode}: ${text.slice(0, 400)}`)
  }

  private received(): number {
    return this.providers.reduce((sum, { received }) => sum + received, 0)
  }

  private async spentUsd(): Promise<number> {
    const response = await fetch(`http://127.0.0.1:${this.gateway.opsPort}/metrics`)
    const series = (await response.text()).matchAll(/^sluice_cost_usd_total\{\S* (\S+)$/gm)
    return [...series].reduce((sum, [, usd]) => sum + Number(usd), 0)
  }
}

function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.floor(sorted.length * share)] ?? Number.NaN
}

function figuresOf(turns: Readonly<Record<Route, readonly Turn[]>>): Figure[] {
  const { plain, hedged } = turns
  const at = (share: number, of: readonly Turn[]): number[] =>
    of.map(({ firstMs }) => percentile(firstMs, share))
  const usd = (of: readonly Turn[]): number[] => of.map(({ usdEach }) => usdEach)
  const percent = (value: number): number => value * 100
  const spend = ratios(usd(hedged), usd(plain)).map((ratio) => percent(ratio - 1))
  const requests = hedged.map(({ extraRequests }) => percent(extraRequests))
  const faster = ratios(at(0.99, plain), at(0.99, hedged))
  return [
    ...ROUTES.flatMap((route) => [
      figure(`hedge.${route}.first_p50`, at(0.5, turns[route]), { unit: 'ms' }),
      figure(`hedge.${route}.first_p99`, at(0.99, turns[route]), { unit: 'ms' }),
    ]),
    figure('hedge.p99_ratio', faster, { unit: '× hedged', better: 'higher', goal: '≥ 5' }),
    figure('hedge.extra_spend', spend, { unit: '%', goal: '≤ 2' }),
    figure('hedge.extra_requests', requests, { unit: '%', goal: '≤ 2' }),
  ]
}

function chartOf(turns: Readonly<Record<Route, readonly Turn[]>>): Chart {
  const samples = (route: Route): number[] => turns[route].flatMap(({ firstMs }) => firstMs)
  const svg = tailChart('Share of the requests whose first content takes longer than …', [
    { name: 'without hedge', color: '#b3261e', samplesMs: samples('plain') },
    { name: `hedge after ${AFTER_MS} ms`, color: '#1a5fb4', samplesMs: samples('hedged') },
  ])
  return { file: 'charts/hedge.svg', svg }
}
