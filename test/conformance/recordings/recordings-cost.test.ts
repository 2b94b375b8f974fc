/**
 * Goal: no recorded reply, and no case of a bug report, is charged less than its vendor bills for it.
 * Method: a gateway over an upstream that answers the recorded bytes, to clients of the same and of another
 * format. The cost in the ledger is compared with a bill that is computed from the raw bytes and the rows of
 * `config/models.yaml` by the rules of each vendor's price page, without code of the product. Models outside
 * the catalogue have prices of this test. Skipped without recordings.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { objectOf, stringOf } from '../../../src/base/json.js'
import { casesFolder, skipWithoutFixtures } from '../../helpers/fixtures.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { rowsOf } from '../../helpers/ledger.js'
import { ofToday } from '../../helpers/long-suite.js'
import { startRawUpstream, type RawUpstream } from '../../helpers/raw-upstream.js'
import { billOf, modelOf, OTHER_PRICES, priceOf } from './bill.js'
import { cases, type Case, type Format } from './recorded.js'

/** Replies whose cost the gateway does not know, which the ledger shows as such: never as less. */
const UNKNOWN: readonly (readonly [reply: RegExp, reason: string])[] = [
  [/audio/i, 'tokens of sound, for a model without a price of sound'],
  [/youtube/i, 'tokens of the sound of a video, for a model without a price of sound'],
  [/service_tier/, 'a service tier for which the catalogue has no factor'],
  [/gemini_skips_dynamic_e2e/, 'the tier `provisioned`, which OpenRouter reports'],
  [/image_generation/, 'pictures of a tool, which have another price'],
]

const DIALECTS: Readonly<Record<Format, string>> = {
  openai: 'openai-chat',
  responses: 'openai-responses',
  anthropic: 'anthropic',
  gemini: 'gemini',
}

const good = [...ofToday(cases().filter(({ recording }) => recording.status === 200)), ...reported()]
t.setTimeout(240_000)
const upstream = await startRawUpstream(t, () => ({ type: 'text/plain', chunks: [] }))
const gateway = await startGateway(t)
install(gateway, upstream)

/** The replies of upstreams in the cases of bug reports. */
function reported(): Case[] {
  const root = casesFolder() ?? ''
  const files = root === '' ? [] : readdirSync(root, { recursive: true, encoding: 'utf8' })
  return files
    .filter((file) => /^\d+\w?-[^/]+\/upstream\.(?:json|sse)$/.test(file))
    .map((file) => {
      const { model, status = 200 } = objectOf(
        JSON.parse(readFileSync(join(root, dirname(file), 'case.json'), 'utf8')),
      )
      const response_body = readFileSync(join(root, file), 'utf8')
      const recording = {
        ...{ name: file, provider: 'cases', api: '', url: '', request_body: null, response_body_form: 'raw' },
        ...{ request_headers: {}, response_headers: {}, status: Number(status), response_body },
        ...{ stream: file.endsWith('.sse'), model: stringOf(model) },
      }
      return { format: formatOf(response_body), label: `cases/${file}`, recording }
    })
    .filter(({ recording }) => recording.status === 200)
}

function formatOf(body: string): Format {
  if (body.includes('"candidates"')) return 'gemini'
  if (/"type"\s*:\s*"message(?:_start)?"/.test(body))
    return body.includes('"output"') ? 'responses' : 'anthropic'
  return /"(?:object"\s*:\s*"response"|type"\s*:\s*"response\.)/.test(body) ? 'responses' : 'openai'
}

/** An upstream for each format, with prices for the models that the catalogue does not have. */
function install(gateway: TestGateway, { origin }: RawUpstream): void {
  const names = Object.keys(DIALECTS) as Format[]
  const rates = JSON.stringify(OTHER_PRICES)
  const upstreams = names.map((name) => {
    const models = good.filter(({ format }) => format === name).map(modelOf)
    const others = [...new Set(models)].filter((model) => priceOf(model) === OTHER_PRICES)
    const prices = others.map((model) => `${JSON.stringify(model)}: ${rates}`)
    const settings = `dialect: ${DIALECTS[name]}, api_key: k, base_url: "${origin}"`
    return `  u-${name}: { ${settings}, prices: { ${prices.join(', ')} } }\n`
  })
  const routes = names.map((name) => `  - { prefix: ${name}/, strip: ${name}/, upstream: u-${name} }\n`)
  gateway.add(upstreams.join(''), routes.join(''))
}

/** A request of a client, by its format. */
const REQUESTS: Readonly<Record<Format, (model: string, stream: boolean) => [path: string, body: object]>> = {
  openai: (model, stream) => ['/v1/chat/completions', { model, stream, messages: [HELLO] }],
  responses: (model, stream) => ['/v1/responses', { model, stream, input: 'Hello' }],
  anthropic: (model, stream) => ['/v1/messages', { model, stream, max_tokens: 9, messages: [HELLO] }],
  gemini: (model, stream) => [
    `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    { contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] },
  ],
}
const HELLO = { role: 'user', content: 'Hello' }

/** Has the recording answered to a client of the format. Returns the id of the request. */
async function replay(it: Case, client: Format): Promise<string | null> {
  const { stream, response_body: body } = it.recording
  const type = stream && !body.startsWith('[') ? 'text/event-stream' : 'application/json'
  upstream.answer = () => ({ type, chunks: [body] })
  const [path, sent] = REQUESTS[client](`${it.format}/${it.recording.model ?? modelOf(it)}`, stream)
  const response = await fetch(gateway.origin + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(sent),
  })
  await response.arrayBuffer().catch(() => undefined)
  return response.headers.get('x-request-id')
}

void t.test('every recording and case', skipWithoutFixtures(), async (t) => {
  const asked = new Map<string, Case>()
  for (const it of good) {
    const other = it.format === 'openai' ? 'anthropic' : 'openai'
    for (const client of [it.format, other] as const) {
      const id = await replay(it, client)
      if (id !== null) asked.set(id, it)
    }
  }
  let compared = 0
  for (const { requestId, ingress, costNanoUsd, usage } of await rowsOf(gateway)) {
    const it = asked.get(requestId)
    const bill = it === undefined ? null : billOf(it)
    if (it === undefined || bill === null) continue
    const name = `${it.label} for ${String(ingress)}`
    compared += 1
    if (costNanoUsd === null) {
      if (!UNKNOWN.some(([reply]) => reply.test(it.label))) t.fail(`${name}: no cost`, { usage, bill })
    } else if (costNanoUsd < bill) t.fail(`${name}: charged ${costNanoUsd} of ${bill}`, { usage })
  }
  t.ok(compared > good.length, `${String(compared)} bills`)
  t.end()
})
