/**
 * Goal: the metrics of a gateway with many upstreams have a series for every failure, state and limit.
 * Method: 8, 32, 128 and 500 upstreams that refuse connections, one of these numbers each day, at all
 * endpoints in turn; then a limit that refuses every request; the sums of the metrics are compared
 * with the ledger.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'
import { ofToday } from '../helpers/long-suite.js'

/** Endpoints of the data plane, and the members of a request besides its model. */
const ENDPOINTS: readonly (readonly [string, object])[] = [
  ['/chat/completions', { messages: [{ role: 'user', content: 'Hi' }] }],
  ['/responses', { input: 'Hi', stream: true }],
  ['/messages', { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 10 }],
  ['/completions', { prompt: 'Hi', stream: true }],
  ['/embeddings', { input: 'Hi' }],
  ['/images/generations', { prompt: 'Hi' }],
  ['/audio/speech', { input: 'Hi', voice: 'alloy' }],
  ['/moderations', { input: 'Hi' }],
  ['/rerank', { query: 'Hi', documents: ['Ho'] }],
]

const LIMIT = '\nlimits: [{ scope: key, requests_per_minute: 1 }]\n'

/** Adds upstreams without a server, each with a route, and waits until they are in force. */
function addDownUpstreams(gateway: TestGateway, count: number): void {
  const names = Array.from({ length: count }, (_, at) => `down-${String(at)}`)
  const upstreams = names.map(
    (name) =>
      `  ${name}: { dialect: openai-chat, base_url: 'http://127.0.0.1:1/v1', api_key: k, operations: { rerank: vllm, images: openai, speech: openai, moderations: openai }, breaker: { failures: 1 } }`,
  )
  const routes = names.map((name) => `  - { prefix: '${name}/', upstream: ${name}, retry: { attempts: 1 } }`)
  const text = readFileSync(gateway.configFile, 'utf8').replace(
    '\nroutes:\n',
    `\n${upstreams.join('\n')}\nroutes:\n${routes.join('\n')}\n`,
  )
  writeFileSync(gateway.configFile, text)
  gateway.reload()
}

/** Status and outcome of all requests, with their numbers. */
type Totals = Record<string, number>

async function linesOf(gateway: TestGateway, name: string): Promise<string[]> {
  const text = await gateway.metrics.text()
  return text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
}

function valueOf(line: string): number {
  return Number(line.slice(line.lastIndexOf(' ') + 1))
}

function count(totals: Totals, name: string, times: number): void {
  totals[name] = (totals[name] ?? 0) + times
}

async function counted(gateway: TestGateway): Promise<Totals> {
  const totals: Totals = {}
  for (const line of await linesOf(gateway, 'sluice_requests_total')) {
    const [, upstream, status, outcome] =
      /upstream="([^"]*)",status="([^"]*)",outcome="([^"]*)"/.exec(line) ?? []
    count(totals, `${String(upstream)} ${String(status)} ${String(outcome)}`, valueOf(line))
  }
  return totals
}

async function recorded(gateway: TestGateway): Promise<Totals> {
  const totals: Totals = {}
  for (const { upstream, status, outcome } of await rowsOf(gateway)) {
    count(totals, `${upstream ?? 'none'} ${String(status)} ${outcome}`, 1)
  }
  return totals
}

const SIZES = [8, 32, 128, 500]

for (const upstreams of ofToday(SIZES, SIZES.length)) {
  void t.test(`${String(upstreams)} upstreams that are down: the metrics equal the ledger`, async (t) => {
    const gateway = await startGateway(t)
    addDownUpstreams(gateway, upstreams)
    const ask = async (at: number): Promise<number> => {
      const [path = '', members = {}] = ENDPOINTS[at % ENDPOINTS.length] ?? []
      const reply = await fetch(`${gateway.baseUrl}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: `down-${String(at)}/m`, ...members }),
      })
      await reply.text()
      return reply.status
    }
    for (let at = 0; at < upstreams; at += 1) t.equal(await ask(at), 502, `refused connection ${at}`)
    t.strictSame(await counted(gateway), await recorded(gateway))
    t.strictSame((await linesOf(gateway, 'sluice_series_dropped_total')).map(valueOf), [0])
    const breakers = await linesOf(gateway, 'sluice_breaker_state')
    const open = breakers.filter((line) => line.includes('"down-') && valueOf(line) === 2)
    t.equal(open.length, upstreams, 'every open breaker has a series')
    const attempts = await linesOf(gateway, 'sluice_attempts_total')
    const failed = attempts.filter((line) => line.includes('"down-') && valueOf(line) === 1)
    t.equal(failed.length, upstreams, 'and every failed attempt')

    writeFileSync(gateway.configFile, readFileSync(gateway.configFile, 'utf8') + LIMIT)
    gateway.reload()
    await ask(0)
    for (let at = 0; at < upstreams; at += 1) t.equal(await ask(at), 429, `limited ${at}`)
    t.strictSame(await counted(gateway), await recorded(gateway))
    const [limited = ''] = await linesOf(gateway, 'sluice_limit_rejections_total')
    t.equal(valueOf(limited), upstreams)
    t.strictSame((await linesOf(gateway, 'sluice_series_dropped_total')).map(valueOf), [0])
  })
}
