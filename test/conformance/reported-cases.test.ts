/**
 * Goal: faults of gateways that people reported do not occur.
 * Method: the cases of a folder beside the project, each unchanged: its requests through a gateway, and the
 * bytes that its upstream answers. Skipped in a clone without the folder.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import {
  arrayOf,
  isObject,
  objectOf,
  stringOf,
  type JsonObject,
  type JsonValue,
} from '../../src/base/json.js'
import type { LedgerEntry } from '../../src/ledger/entry.js'
import { AWS_AUTH, usualReply } from '../gateway/platforms/capture.js'
import { textUntilEnd } from '../helpers/collect.js'
import { casesFolder } from '../helpers/fixtures.js'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'
import { startRawUpstream } from '../helpers/raw-upstream.js'

/** The reply of the gateway. */
interface Reply {
  readonly status: number
  readonly text: string
  readonly lost: string | null
}

/** What one case led to. */
interface Outcome {
  readonly replies: readonly Reply[]
  readonly last: Reply
  /** The requests that the upstream got. */
  readonly sent: readonly JsonObject[]
  readonly up: JsonObject
  readonly entry: LedgerEntry
}

/** What must hold, by the case's folder. */
const CHECKS: Readonly<Record<string, (t: Test, outcome: Outcome) => void>> = {
  '01-reasoning-outside-completion': (t, { entry }) => {
    t.equal(entry.usage.output, 4308)
    t.equal(entry.costNanoUsd, 53_084_800)
  },
  '02-error-frame-before-done': (t, { last, entry }) => {
    t.notMatch(last.text, 'message_stop')
    t.match(last.text, 'event: error')
    t.not(entry.outcome, 'ok')
  },
  '04-usage-inside-choice': (t, { last, entry }) => {
    t.same([entry.usage.input, entry.usage.output, entry.source], [8000, 900, 'reported'])
    t.match(last.text, '"output_tokens":900')
  },
  '05-audio-at-text-rate': (t, { entry }) => {
    t.ok(entry.costNanoUsd === null || entry.costNanoUsd >= 1e9, String(entry.costNanoUsd))
  },
  '07-finish-reason-on-each-chunk': (t, { last }) => {
    const whole = argumentsIn(last.text) === '{"city":"Bern"}'
    t.ok(whole || last.text.includes('event: error') || last.status >= 500, last.text)
  },
  '08-own-reply-refused-next-turn': (t, { replies, last }) => {
    const message = objectOf(arrayOf(parsed(replies[0]?.text)['choices'])[0])['message']
    t.same(message, { role: 'assistant', content: null, refusal: null })
    t.equal(last.status, 200, last.text)
  },
  '10-claude-code-on-bedrock': (t, { up, last }) => {
    t.notMatch(JSON.stringify(up), /claude-code-20250219|oauth-2025|prompt-caching-scope|scope|defer_loading/)
    t.ok(last.lost)
  },
  '11-array-without-items-to-openai': (t, { up }) => {
    const [first, second] = arrayOf(up['tools']).map((tool) =>
      objectOf(objectOf(objectOf(tool)['function'])['parameters']),
    )
    t.hasProp(objectOf(objectOf(first?.['properties'])['k']), 'items')
    t.match(second, { type: 'object', anyOf: undefined })
  },
  '13-tool-choice-without-tools': (t, { up }) => {
    t.match(up, { tool_choice: undefined, parallel_tool_calls: undefined })
  },
  '14-empty-assistant-message-invented': (t, { up }) => {
    t.notMatch(arrayOf(up['messages']), [{ role: 'assistant' }])
    t.notOk(arrayOf(up['messages']).some((each) => objectOf(each)['role'] === 'assistant'))
  },
  '16-codex-client-side-tool-search': (t, { up }) => {
    const names = arrayOf(up['tools']).map((tool) => stringOf(objectOf(tool)['name']) ?? '')
    t.ok(
      names.some((name) => name.includes('tool_search')),
      'the search is a function',
    )
    t.ok(
      names.some((name) => name.includes('list_threads')),
      'the tool that it found is offered',
    )
  },
  '16b-local-shell-output-refused': (t, { sent }) => {
    t.equal(sent.length, 1)
  },
  '17-upstream-message-lost': (t, { last }) => {
    t.match(last.text, 'valid number')
    t.notMatch(last.text, 'without a message')
  },
  '19-tool-reference-leaves-empty-result': (t, { up }) => {
    const result = arrayOf(up['messages']).find((each) => objectOf(each)['role'] === 'tool')
    t.match(JSON.stringify(objectOf(result)['content']), 'Read')
  },
  '20-audio-as-data-url': (t, { last, up }) => {
    const part = objectOf(arrayOf(objectOf(arrayOf(up['contents'])[0])['parts'])[0])
    t.ok(last.status === 400 || objectOf(part['inlineData'])['data'] === 'UklGRg==')
  },
  '22-document-url-as-file-data': (t, { last, up }) => {
    t.ok(last.status === 400 || !JSON.stringify(up).includes('"file_data":"http'))
  },
}

/** Cases of endpoints beside chat (endpoint-cases), and of imported configurations. */
const ELSEWHERE = /^(?:endpoints-.*|litellm)$/

const PATHS: Readonly<Record<string, string>> = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
}

const folder = casesFolder()
if (folder === null) t.pass('no cases here; set SLUICE_CASES to their folder', { skip: true })
else await runAll(folder)

async function runAll(root: string): Promise<void> {
  const upstream = await startRawUpstream(t, usualReply)
  const gateway = await startGateway(t)
  const names = readdirSync(root, { withFileTypes: true }).flatMap((each) =>
    each.isDirectory() && !ELSEWHERE.test(each.name) ? [each.name] : [],
  )
  t.ok(names.length > 10)
  install(gateway, upstream.origin)
  for (const name of names) {
    const check = CHECKS[name]
    void t.test(name, check === undefined ? { skip: 'not checked here' } : {}, async (t) => {
      const known = parsed(readFileSync(join(root, name, 'case.json'), 'utf8'))
      const body = ['upstream.json', 'upstream.sse'].find((file) => existsSync(join(root, name, file)))
      upstream.requests.length = 0
      upstream.answer =
        body === undefined
          ? usualReply
          : () => ({
              status: Number(known['status'] ?? 200),
              type: body.endsWith('.sse') ? 'text/event-stream' : 'application/json',
              chunks: [readFileSync(join(root, name, body))],
            })
      const requests: JsonValue = JSON.parse(
        readFileSync(join(root, name, 'request.json'), 'utf8'),
      ) as JsonValue
      const replies: Reply[] = []
      for (const each of Array.isArray(requests) ? requests : [requests]) {
        replies.push(await post(gateway, known, objectOf(each)))
      }
      const sent = upstream.requests.map((request) => parsed(request.body.toString()))
      const [last, entry] = [replies.at(-1), (await rowsOf(gateway)).at(-1)]
      if (last === undefined || entry === undefined) throw new Error('the case has no request')
      check?.(t, { replies, last, sent, up: sent.at(-1) ?? {}, entry })
    })
  }
}

/** The models of the cases, and those of its vendors with prices of their own. */
function install(gateway: TestGateway, origin: string): void {
  const prices = 'input: 1, output: 10, cache_read: 0.1, cache_write: 1.25, cache_write_1h: 2'
  const upstreams: Readonly<Record<string, [models: string, settings: string]>> = {
    chat: ['gpt-q', 'dialect: openai-chat, api_key: k'],
    messages: ['claude-q', 'dialect: anthropic, api_key: k'],
    answers: ['resp-5', 'dialect: openai-responses, api_key: k'],
    xai: ['grok-4', 'preset: xai, api_key: k'],
    mistral: ['mistral-q', 'preset: mistral, api_key: k'],
    rock: ['brclaude', `platform: bedrock, dialect: anthropic, region: eu-west-1, auth: ${AWS_AUTH}`],
  }
  const lines = Object.entries(upstreams).map(
    ([name, [, settings]]) =>
      `  c-${name}: { ${settings}, base_url: "${origin}", prices: { "*": { ${prices} } } }\n`,
  )
  const google = `  c-google: { dialect: gemini, api_key: k, base_url: "${origin}" }\n`
  const routes = Object.entries(upstreams).map(
    ([name, [model]]) => `  - { model: ${model}, upstream: c-${name} }\n`,
  )
  const models = ['gemini-2.5-flash', 'gemini-3-flash-preview'].map(
    (model) => `  - { model: ${model}, upstream: c-google }\n`,
  )
  const text = readFileSync(gateway.configFile, 'utf8')
  const added = `${lines.join('')}${google}routes:\n${routes.join('')}${models.join('')}`
  writeFileSync(gateway.configFile, text.replace('routes:\n', added))
  gateway.reload()
}

async function post(gateway: TestGateway, known: JsonObject, body: JsonObject): Promise<Reply> {
  const model = stringOf(known['model']) ?? ''
  const stream = known['stream'] === true
  const path = PATHS[stringOf(known['fmt']) ?? '']
  const headers = isObject(known['headers']) ? known['headers'] : {}
  const url =
    path ?? `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`
  const response = await fetch(gateway.origin + url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.secret}`,
      'content-type': 'application/json',
      ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, stringOf(value) ?? ''])),
    },
    body: JSON.stringify(path === undefined ? body : { model, ...(stream && { stream }), ...body }),
  })
  return {
    status: response.status,
    text: await textUntilEnd(response),
    lost: response.headers.get('x-sluice-lost'),
  }
}

/** The arguments of the only call in a stream of Messages. */
function argumentsIn(text: string): string {
  const frames = [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => parsed(data))
  return frames.map((frame) => stringOf(objectOf(frame['delta'])['partial_json']) ?? '').join('')
}

function parsed(text = ''): JsonObject {
  return objectOf(JSON.parse(text) as JsonValue)
}
