/**
 * Goal: calls whose ids repeat or are empty keep their results with every upstream, and providers judge the
 * pairs of their own format.
 * Method: conversations in each client format, through upstreams of each format, to a server that records
 * requests.
 */
import t from 'tap'
import { isObject, objectOf, stringOf, type JsonObject, type JsonValue } from '../../../src/base/json.js'
import { startGateway } from '../../helpers/gateway.js'
import { startRawUpstream } from '../../helpers/raw-upstream.js'
import { AWS_AUTH, usualReply } from '../platforms/capture.js'

/** Upstreams by the name of their model. */
const UPSTREAMS: Readonly<Record<string, string>> = {
  chat: 'dialect: openai-chat, api_key: k',
  responses: 'dialect: openai-responses, api_key: k',
  messages: 'dialect: anthropic, api_key: k',
  gemini: 'dialect: gemini, api_key: k',
  converse: `platform: bedrock, dialect: converse, region: eu-west-1, auth: ${AWS_AUTH}`,
  invoke: `platform: bedrock, dialect: anthropic, region: eu-west-1, auth: ${AWS_AUTH}`,
}

const FORMATS = ['chat', 'messages', 'responses', 'gemini'] as const
type Format = (typeof FORMATS)[number]

const upstream = await startRawUpstream(t, usualReply)
const gateway = await startGateway(t)
const names = Object.keys(UPSTREAMS)
const settings = names.map(
  (name) => `  t-${name}: { base_url: "${upstream.origin}", ${UPSTREAMS[name] ?? ''} }\n`,
)
const routes = names.map((name) => `  - { prefix: "to-${name}", upstream: t-${name} }\n`)
gateway.add(settings.join(''), routes.join(''))

/** One step of a conversation. */
type Step =
  { readonly user: string } | { readonly calls: string[] } | { readonly result: string; readonly of: string }

function stepIn(format: Format, step: Step): JsonValue[] {
  const named = { name: 'f' }
  if ('user' in step) {
    return format === 'gemini'
      ? [{ role: 'user', parts: [{ text: step.user }] }]
      : [{ role: 'user', content: step.user }]
  }
  if ('calls' in step) {
    switch (format) {
      case 'chat': {
        const calls = step.calls.map((id) => ({
          id,
          type: 'function',
          function: { ...named, arguments: '{}' },
        }))
        return [{ role: 'assistant', content: null, tool_calls: calls }]
      }
      case 'messages': {
        const content = step.calls.map((id) => ({ type: 'tool_use', id, ...named, input: {} }))
        return [{ role: 'assistant', content }]
      }
      case 'responses':
        return step.calls.map((id) => ({ type: 'function_call', call_id: id, ...named, arguments: '{}' }))
      default:
        return [
          { role: 'model', parts: step.calls.map((id) => ({ functionCall: { id, ...named, args: {} } })) },
        ]
    }
  }
  switch (format) {
    case 'chat':
      return [{ role: 'tool', tool_call_id: step.of, content: step.result }]
    case 'messages':
      return [
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: step.of, content: step.result }] },
      ]
    case 'responses':
      return [{ type: 'function_call_output', call_id: step.of, output: step.result }]
    default: {
      const functionResponse = { id: step.of, ...named, response: { output: step.result } }
      return [{ role: 'user', parts: [{ functionResponse }] }]
    }
  }
}

/** The status of the reply, and what the upstream got. */
interface Sent {
  readonly status: number
  readonly reply: string
  readonly body: JsonObject | null
}

async function send(format: Format, name: string, steps: readonly Step[]): Promise<Sent> {
  const turns = steps.flatMap((step) => stepIn(format, step))
  const model = `to-${name}`
  const bodies: Record<Format, [string, JsonObject]> = {
    chat: ['chat/completions', { model, max_tokens: 9, messages: turns }],
    messages: ['messages', { model, max_tokens: 9, messages: turns }],
    responses: ['responses', { model, store: false, max_output_tokens: 99, input: turns }],
    gemini: [
      `models/${model}:generateContent`,
      { contents: turns, generationConfig: { maxOutputTokens: 9 } },
    ],
  }
  const [path, body] = bodies[format]
  upstream.requests.length = 0
  const response = await fetch(`${gateway.origin}/v1/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const reply = await response.text()
  const sent = upstream.requests[0]?.body.toString()
  return {
    status: response.status,
    reply,
    body: sent === undefined ? null : objectOf(JSON.parse(sent) as JsonValue),
  }
}

/** The ids of the calls and of the results of a request, in order. */
function idsIn(body: JsonObject): { calls: string[]; results: string[] } {
  const calls: string[] = []
  const results: string[] = []
  const visit = (value: JsonValue | undefined): void => {
    if (Array.isArray(value)) value.forEach(visit)
    if (!isObject(value)) return
    const item = value
    const add = (list: string[], id: JsonValue | undefined): void => void list.push(stringOf(id) ?? '')
    if (item['type'] === 'function' || item['type'] === 'tool_use') add(calls, item['id'])
    else if (item['type'] === 'function_call') add(calls, item['call_id'])
    else if (item['type'] === 'function_call_output') add(results, item['call_id'])
    else if (item['role'] === 'tool') add(results, item['tool_call_id'])
    else if (item['type'] === 'tool_result') add(results, item['tool_use_id'])
    else if (item['toolUse'] !== undefined) add(calls, objectOf(item['toolUse'])['toolUseId'])
    else if (item['toolResult'] !== undefined) add(results, objectOf(item['toolResult'])['toolUseId'])
    else if (item['functionCall'] !== undefined) add(calls, objectOf(item['functionCall'])['id'])
    else if (item['functionResponse'] !== undefined) add(results, objectOf(item['functionResponse'])['id'])
    for (const key of ['content', 'parts', 'tool_calls']) visit(item[key])
  }
  for (const key of ['messages', 'contents', 'input']) visit(body[key])
  return { calls, results }
}

const HI: Step = { user: 'Hi' }
/** Providers whose calls need ids of their own. */
const UNIQUE = ['responses', 'messages', 'converse', 'invoke']

for (const format of FORMATS) {
  void t.test(`${format}: repeated and empty ids are paired for every upstream`, async (t) => {
    for (const id of ['search:0', '']) {
      const first: Step[] = [HI, { calls: [id] }, { result: 'one', of: id }]
      const second: Step[] = [
        ...first,
        { calls: [id, id] },
        { result: 'two', of: id },
        { result: 'three', of: id },
      ]
      for (const name of names.filter((each) => each !== format)) {
        const about = `${name} "${id}"`
        const [short, long] = [await send(format, name, first), await send(format, name, second)]
        t.equal(short.status, 200, `${about} ${short.reply}`)
        t.equal(long.status, 200, `${about} ${long.reply}`)
        const { calls, results } = idsIn(long.body ?? {})
        t.equal(calls.length, 3, about)
        t.same(results, calls, about)
        t.same(idsIn(short.body ?? {}).calls, calls.slice(0, 1), `${about}: a longer conversation keeps ids`)
        if (!UNIQUE.includes(name)) continue
        t.equal(new Set(calls).size, 3, `${about} ${calls.join()}`)
        t.notOk(calls.includes(''), about)
      }
    }
  })

  void t.test(`${format}: providers judge the pairs of their own format`, async (t) => {
    const unpaired: Step[][] = [
      [HI, { calls: ['a'] }],
      [HI, { calls: ['a'] }, { user: 'Go on' }],
      [HI, { result: 'one', of: 'a' }],
      [HI, { calls: ['a', 'b'] }, { result: 'one', of: 'a' }, { user: 'Go on' }],
      [HI, { calls: ['a'] }, { result: 'one', of: 'a' }, { result: 'two', of: 'a' }, { user: 'Go on' }],
      [HI, { calls: ['a'] }, { result: 'one', of: 'z' }, { user: 'Go on' }],
    ]
    for (const steps of unpaired) {
      const own = await send(format, format, steps)
      t.equal(own.status, 200, own.reply)
      t.equal(own.body === null, false)
      const key = { chat: 'messages', messages: 'messages', responses: 'input', gemini: 'contents' }[format]
      t.same(
        own.body?.[key],
        steps.flatMap((step) => stepIn(format, step)),
      )
      const other = await send(format, format === 'chat' ? 'messages' : 'chat', steps)
      t.equal(other.status, 400, other.reply)
      t.equal(other.body, null)
    }
  })
}
