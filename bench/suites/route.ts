/**
 * The cost of what a route adds to a request, without failures: whole replies through a route with one target
 * and an API key, alternating in the same process with a route that has targets, fallback and retries, with
 * one whose requests are signed for AWS, with one whose requests carry a token of Entra, and with one that
 * the cache answers; the last one also for streams.
 */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { ANSWER, MODELS } from '../load/sample-traffic.js'
import { Children, freePorts } from '../processes/children.js'
import { sendOnce, closedLoop, type LoadRequest, type Run } from '../load/closed-loop.js'
import { figure, ratios, type Figure, type Pace, type SuiteResult } from '../report/figures.js'
import { startGateway, type RunningGateway } from '../processes/gateway.js'
import { gatewayRequest, startNode, WARM_UP_SECONDS } from './load.js'
import { CORES, findProgram } from '../processes/machine.js'
import { startAnswers } from '../processes/nginx.js'

const ROUTES = ['one', 'full', 'signed', 'token', 'cached', 'stream', 'cached_stream'] as const
type Route = (typeof ROUTES)[number]

/** What a route may add to the CPU time of a request, in µs. */
const GOALS = { signed: '≤ 15', token: '≤ 5' } as const
const FULL_GOAL = '≤ 1.02'
const CACHED_GOAL = '≤ 0.5'
/** Fragments of a stream, which the provider sends at once. */
const FRAGMENTS = 50

/** Rejects if a request fails or a reply is not the provider's. */
export async function runRoute(pace: Pace): Promise<SuiteResult> {
  const seconds = pace.seconds ?? 4
  const children = new Children()
  const tokens = createServer((_, response) => response.end(managedToken()))
  try {
    const [upstreamPort = 0, streamPort = 0] = await freePorts(2)
    await startProvider(children, upstreamPort)
    const settings = { fragments: FRAGMENTS, everyMs: 0 }
    await startNode(children, '../load/upstream-process.js', {
      ...{ core: CORES.rest, port: streamPort, settings },
    })
    const upstreams = configText(upstreamPort, streamPort)
    const env = { IDENTITY_ENDPOINT: await listen(tokens), IDENTITY_HEADER: 'measured' }
    const gateway = await startGateway(children, CORES.tested, { upstreamPort, upstreams, env })
    const runs: Record<Route, Run[]> = {
      ...{ one: [], full: [], signed: [], token: [], cached: [], stream: [], cached_stream: [] },
    }
    const measure = (route: Route, length: number): Promise<Run> =>
      closedLoop(children, requestOf(gateway, route), { pids: gateway.pid, seconds: length })
    for (const route of ROUTES) {
      const { status, text } = await sendOnce(requestOf(gateway, route))
      if (status !== 200 || !text.includes(isStream(route) ? '[DONE]' : ANSWER)) {
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
    tokens.close()
    await children.close()
  }
}

/** A token as the managed identity of an Azure App Service returns it. */
function managedToken(): string {
  const expires = Math.floor(Date.now() / 1000) + 86_400
  return JSON.stringify({
    access_token: 'm'.repeat(1_400),
    expires_on: String(expires),
    resource: 'https://cognitiveservices.azure.com',
    token_type: 'Bearer',
  })
}

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port for tokens')
  return `http://127.0.0.1:${address.port}/token`
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

function isStream(route: Route): boolean {
  return route === 'stream' || route === 'cached_stream'
}

/** All routes of a form reach the same provider in the same request format and rename the model. */
function configText(port: number, streamPort: number): string {
  const chat = `dialect: openai-chat, base_url: 'http://127.0.0.1:${port}/v1'`
  const streams = `dialect: openai-chat, base_url: 'http://127.0.0.1:${streamPort}/v1'`
  const upstream = `${chat}, api_key: measured`
  const keys = `{ access_key_id: AKIAIOSFODNN7EXAMPLE, secret_access_key: measured }`
  const breaker = 'breaker: { failures: 5, error_rate: 0.5, window_seconds: 10 }'
  const model = MODELS.openai
  return `upstreams:
  plain: { ${upstream} }
  streams: { ${streams}, api_key: measured }
  first: { ${upstream}, ${breaker} }
  second: { ${upstream}, ${breaker} }
  third: { ${upstream}, ${breaker} }
  signed: { platform: bedrock, region: eu-west-1, ${chat}, auth: { aws: ${keys} } }
  token: { platform: azure, ${chat}, auth: { azure: default } }
routes:
  - { model: bench-signed, targets: [ { upstream: signed, model: ${model} } ] }
  - { model: bench-token, targets: [ { upstream: token, model: ${model} } ] }
  - { model: bench-cached, targets: [ { upstream: plain, model: ${model} } ], cache: {} }
  - { model: bench-cached_stream, targets: [ { upstream: streams, model: ${model} } ], cache: {} }
  - { model: bench-stream, targets: [ { upstream: streams, model: ${model} } ] }
  - { model: bench-one, targets: [ { upstream: plain, model: ${model} } ] }
  - model: bench-full
    targets: [ { upstream: first, model: ${model} }, { upstream: second, model: ${model} } ]
    fallback: [ { upstream: third, model: ${model} } ]
    retry: { attempts: 3, budget: 0.2 }
`
}

function requestOf(gateway: RunningGateway, route: Route): LoadRequest {
  const request = gatewayRequest(gateway, 'openai', isStream(route))
  return { ...request, body: request.body.replace(MODELS.openai, `bench-${route}`) }
}

function figuresOf(runs: Readonly<Record<Route, readonly Run[]>>): Figure[] {
  const cpu = (route: Route): number[] => runs[route].map((run) => run.cpuMicrosecondsEach)
  const added = (route: Route): number[] =>
    cpu(route).map((microseconds, round) => microseconds - (cpu('one')[round] ?? Number.NaN))
  const cost = ratios(cpu('full'), cpu('one'))
  return [
    ...ROUTES.map((route) => figure(`route.${route}.cpu`, cpu(route), { unit: 'µs/reply' })),
    figure('route.cpu_ratio', cost, { unit: '× one', better: 'lower', goal: FULL_GOAL }),
    figure('route.hit_ratio', ratios(cpu('cached'), cpu('one')), {
      ...{ unit: '× one', better: 'lower', goal: CACHED_GOAL },
    }),
    figure('route.hit_stream_ratio', ratios(cpu('cached_stream'), cpu('stream')), {
      ...{ unit: '× stream', better: 'lower', goal: CACHED_GOAL },
    }),
    ...(['signed', 'token'] as const).map((route) =>
      figure(`route.${route}.added`, added(route), { unit: 'µs/reply', goal: GOALS[route] }),
    ),
  ]
}
