/**
 * The cost of targets, fallback and retries without failures: whole replies through a route with one target,
 * alternating with a route that has all of them, in the same process.
 */
import { ANSWER, MODELS } from '../load/sample-traffic.js'
import { Children, freePorts } from '../processes/children.js'
import { sendOnce, closedLoop, type LoadRequest, type Run } from '../load/closed-loop.js'
import { figure, ratios, type Figure, type Pace, type SuiteResult } from '../report/figures.js'
import { startGateway, type RunningGateway } from '../processes/gateway.js'
import { gatewayRequest, startNode, WARM_UP_SECONDS } from './load.js'
import { CORES, findProgram } from '../processes/machine.js'
import { startAnswers } from '../processes/nginx.js'

const ROUTES = ['one', 'full'] as const
type Route = (typeof ROUTES)[number]

const GOAL = '≤ 1.02'

/** Rejects if a request fails or a reply is not the provider's. */
export async function runRoute(pace: Pace): Promise<SuiteResult> {
  const seconds = pace.seconds ?? 4
  const children = new Children()
  try {
    const [upstreamPort = 0] = await freePorts(1)
    await startProvider(children, upstreamPort)
    const upstreams = configText(upstreamPort)
    const gateway = await startGateway(children, CORES.tested, { upstreamPort, upstreams })
    const runs: Record<Route, Run[]> = { one: [], full: [] }
    const measure = (route: Route, length: number): Promise<Run> =>
      closedLoop(children, requestOf(gateway, route), { pids: gateway.pid, seconds: length })
    for (const route of ROUTES) {
      const { status, text } = await sendOnce(requestOf(gateway, route))
      if (status !== 200 || !text.includes(ANSWER)) {
        throw new Error(`route ${route} answered ${status}: ${text.slice(0, 400)}`)
      }
    }
    const warmUp = Math.min(WARM_UP_SECONDS, seconds * 7) / ROUTES.length
    for (const route of ROUTES) await measure(route, Math.ceil(warmUp))
    for (let round = 0; round < (pace.rounds ?? 7); round++) {
      // Each route goes first in every second round, so that a drift of the machine affects both.
      const turns = round % 2 === 0 ? ROUTES : ROUTES.toReversed()
      for (const route of turns) runs[route].push(await measure(route, seconds))
    }
    return { figures: figuresOf(runs), remarks: [] }
  } finally {
    await children.close()
  }
}

async function startProvider(children: Children, port: number): Promise<void> {
  const nginx = findProgram('nginx')
  if (nginx === null) {
    await startNode(children, '../load/upstream-process.js', {
      core: CORES.rest,
      port,
      settings: {
        fragments: 1,
        everyMs: 0,
      },
    })
  } else {
    await startAnswers(children, { nginx, core: CORES.rest, port })
  }
}

/** Both routes reach the same provider in the same request format; both rename the model. */
function configText(port: number): string {
  const upstream = `dialect: openai-chat, base_url: 'http://127.0.0.1:${port}/v1', api_key: measured`
  const breaker = 'breaker: { failures: 5, error_rate: 0.5, window_seconds: 10 }'
  const model = MODELS.openai
  return `upstreams:
  plain: { ${upstream} }
  first: { ${upstream}, ${breaker} }
  second: { ${upstream}, ${breaker} }
  third: { ${upstream}, ${breaker} }
routes:
  - { model: bench-one, targets: [ { upstream: plain, model: ${model} } ] }
  - model: bench-full
    targets: [ { upstream: first, model: ${model} }, { upstream: second, model: ${model} } ]
    fallback: [ { upstream: third, model: ${model} } ]
    retry: { attempts: 3, budget: 0.2 }
`
}

function requestOf(gateway: RunningGateway, route: Route): LoadRequest {
  const request = gatewayRequest(gateway, 'openai', false)
  return { ...request, body: request.body.replace(MODELS.openai, `bench-${route}`) }
}

function figuresOf(runs: Readonly<Record<Route, readonly Run[]>>): Figure[] {
  const cpu = (route: Route): number[] => runs[route].map((run) => run.cpuMicrosecondsEach)
  const cost = ratios(cpu('full'), cpu('one'))
  return [
    ...ROUTES.map((route) => figure(`route.${route}.cpu`, cpu(route), { unit: 'µs/reply' })),
    figure('route.cpu_ratio', cost, { unit: '× one', better: 'lower', goal: GOAL }),
  ]
}
