/**
 * Goal: a target's `defaults` are the members of a request that the client left out, in every format; the
 * client's own values win.
 * Method: requests of each client format through aliases to an emulated upstream of each format.
 */
import t from 'tap'
import { isObject, type JsonObject } from '../../../src/base/json.js'
import { changed, problemsOf } from '../../config/sample.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'

const DEFAULTS = 'temperature: 0.25, max_tokens: 77'

const TARGETS = {
  chat: 'upstream: openai, model: gpt-4.1-mini',
  responses: 'upstream: responses, model: gpt-4.1-mini',
  claude: 'upstream: anthropic, model: claude-haiku-4-5',
  gemini: 'upstream: google, model: gemini-2.5-flash',
} as const

/** OpenAI's Responses, which a target of OpenAI may use, has no stop texts. */
const STOPS: ReadonlySet<string> = new Set(['claude', 'gemini'])

const ROUTES = Object.entries(TARGETS)
  .map(([name, target]) => {
    const stop = STOPS.has(name) ? ', stop: [END]' : ''
    return `  - { model: as-${name}, targets: [{ ${target}, defaults: { ${DEFAULTS}${stop} } }] }`
  })
  .join('\n')

const EFFORT = `
  - { model: thinker, targets: [{ upstream: openai, model: gpt-5-mini, defaults: { reasoning_effort: high } }] }
  - { model: late, targets: [{ upstream: broken }], fallback: [{ upstream: openai, model: gpt-4.1-mini, defaults: { seed: 5 } }] }
  - { model: plain, targets: [{ upstream: openai, model: gpt-4.1-mini }] }`

/** The path and the body of a request for the model, with further members. */
const CLIENTS = {
  chat: (model: string, own: JsonObject = {}): readonly [string, JsonObject] => {
    const messages: JsonObject[] = [{ role: 'user', content: 'Hi' }]
    return ['/v1/chat/completions', { model, messages, ...own }]
  },
  responses: (model: string, own: JsonObject = {}): readonly [string, JsonObject] => {
    return ['/v1/responses', { model, input: 'Hi', metadata: { a: 'b' }, ...own }]
  },
  claude: (model: string, own: JsonObject = {}): readonly [string, JsonObject] => {
    const messages: JsonObject[] = [{ role: 'user', content: 'Hi' }]
    return ['/v1/messages', { model, messages, max_tokens: 77, ...own }]
  },
  gemini: (model: string, own: JsonObject = {}): readonly [string, JsonObject] => {
    const contents: JsonObject[] = [{ role: 'user', parts: [{ text: 'Hi' }] }]
    const body = { contents, generationConfig: { topP: 0.5, ...own } }
    return [`/v1beta/models/${model}:generateContent`, body]
  },
}

async function sent(
  { origin, secret, emulator }: TestGateway,
  [path, body]: readonly [string, JsonObject],
): Promise<JsonObject> {
  const reply = await fetch(`${origin}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${secret}`,
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
    },
    body: JSON.stringify(body),
  })
  const text = await reply.text()
  if (reply.status !== 200) throw new Error(`${path}: ${reply.status} ${text}`)
  return emulator.ledger.at(-1)?.body ?? {}
}

/** The values in a request to any upstream. */
function valuesIn(body: JsonObject) {
  const config = isObject(body['generationConfig']) ? body['generationConfig'] : body
  return {
    temperature: config['temperature'],
    tokens: ['max_tokens', 'max_completion_tokens', 'max_output_tokens', 'maxOutputTokens']
      .map((name) => config[name])
      .find((value) => value !== undefined),
    stop: config['stop'] ?? config['stop_sequences'] ?? config['stopSequences'],
  }
}

void t.test('formats', async (t) => {
  const gateway = await startGateway(t, { routes: ROUTES })
  for (const client of ['chat', 'responses', 'claude', 'gemini'] as const) {
    for (const target of ['chat', 'responses', 'claude', 'gemini'] as const) {
      const body = await sent(gateway, CLIENTS[client](`as-${target}`))
      const stop = STOPS.has(target) ? ['END'] : undefined
      const whole = { temperature: 0.25, tokens: 77, stop }
      t.strictSame(valuesIn(body), whole, `${client} to ${target}`)
      const own = await sent(gateway, CLIENTS[client](`as-${target}`, { temperature: 0.75 }))
      t.equal(valuesIn(own).temperature, 0.75, `${client} to ${target}: the client wins`)
    }
  }
  const gemini = await sent(gateway, CLIENTS.gemini('as-gemini'))
  t.match(gemini, { generationConfig: { topP: 0.5, temperature: 0.25 } }, "the client's own members stay")
  const responses = await sent(gateway, CLIENTS.responses('as-responses'))
  t.match(responses, { metadata: { a: 'b' } })
})

void t.test('efforts, fallbacks, and targets without defaults', async (t) => {
  const more = 'limits: [{ scope: account, usd_per_day: 100 }]'
  const upstreams = 'dialect: openai-chat, base_url: http://127.0.0.1:9/v1, api_key: emulated'
  const gateway = await startGateway(t, {
    routes: EFFORT.replaceAll('upstream: broken', 'upstream: cloud'),
    cloud: upstreams,
    more,
  })
  const effort = (body: JsonObject) => {
    return body['reasoning_effort'] ?? (isObject(body['reasoning']) ? body['reasoning']['effort'] : undefined)
  }
  t.equal(effort(await sent(gateway, CLIENTS.chat('thinker'))), 'high')
  t.equal(effort(await sent(gateway, CLIENTS.chat('thinker', { reasoning_effort: 'low' }))), 'low')
  t.equal(effort(await sent(gateway, CLIENTS.responses('thinker'))), 'high')
  t.equal((await sent(gateway, CLIENTS.chat('late')))['seed'], 5, 'of a fallback')
  t.equal((await sent(gateway, CLIENTS.chat('plain')))['seed'], undefined)
})

void t.test('settings', (t) => {
  const problems = (defaults: string) => {
    const targets = `targets: [{ upstream: openai, model: b, defaults: ${defaults} }]`
    return problemsOf(changed('upstream: openai }', `${targets} }`)).join('\n')
  }
  t.equal(problems('{ stop: END, seed: -4, verbosity: low, parallel_tool_calls: false }'), '')
  for (const wrong of ['{ top_k: 4 }', '{ temperature: hot }', '{ max_tokens: 0 }', '{ stop: [] }']) {
    t.match(problems(wrong), /routes\[0\]\.targets\[0\]\.defaults/, wrong)
  }
  t.end()
})
