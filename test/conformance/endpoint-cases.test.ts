/**
 * Goal: faults of gateways at endpoints beside chat, which people reported, do not occur.
 * Method: the cases `endpoints-*` of a folder beside the project, each unchanged: its steps through a gateway
 * with the upstream, the target and the prices of the case. Skipped in a clone without the folder.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { arrayOf, objectOf, stringOf, type JsonObject, type JsonValue } from '../../src/base/json.js'
import type { LedgerEntry } from '../../src/ledger/entry.js'
import { FILES } from '../gateway/batches/batch-stage.js'
import { casesFolder } from '../helpers/fixtures.js'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'
import { startRawUpstream, type Arrived, type Canned, type RawUpstream } from '../helpers/raw-upstream.js'

/** The model of the case's requests. */
const MODEL = 'case'

/** A reply of the gateway. */
interface Reply {
  readonly status: number
  readonly type: string
  readonly text: string
}

/** What a case led to. */
interface Outcome {
  readonly replies: readonly Reply[]
  /** Of all requests, oldest first. */
  readonly entries: readonly LedgerEntry[]
  /** What the upstream got. */
  readonly sent: readonly Arrived[]
}

/** What must hold, by the case's folder. */
const CHECKS: Readonly<Record<string, (t: Test, outcome: Outcome) => void>> = {
  'endpoints-01-transcript-as-text': (t, { replies: [reply], entries: [entry], sent }) => {
    t.match(reply, { status: 200, type: /^text\/plain/ })
    t.equal(reply?.text.trim(), 'Hello world.')
    t.ok([undefined, 'json', 'verbose_json'].includes(formatAsked(sent[0])))
    t.match(entry, { costNanoUsd: 300_000, source: 'reported', units: 'audio_second=3' })
  },
  'endpoints-02-rerank-without-units': (t, { replies: [reply], entries: [entry] }) => {
    const ranks = arrayOf(parsed(reply?.text)['results']).map((each) => objectOf(each)['index'])
    t.same(ranks, [1, 2, 0])
    t.match(entry, { costNanoUsd: 2_000_000, source: 'estimated' })
  },
  'endpoints-03-gemini-picture-and-caption': (t, { replies: [reply], entries: [entry] }) => {
    const body = parsed(reply?.text)
    const pictures = arrayOf(body['data']).map((each) => stringOf(objectOf(each)['b64_json'])?.slice(0, 5))
    t.same(pictures, ['iVBOR'])
    t.equal(entry?.costNanoUsd, 139_972_000)
    t.match(body['usage'], { input_tokens: 326, output_tokens: 1530, total_tokens: 1856 })
  },
  'endpoints-04-batch-billed-per-poll': (t, { replies, entries }) => {
    t.match(parsed(replies[2]?.text), { status: 'completed' })
    const paid = entries.filter(({ costNanoUsd }) => costNanoUsd !== null && costNanoUsd > 0)
    t.equal(paid.length, 1, 'one entry has a cost')
    t.equal(paid[0]?.costNanoUsd, 800_000)
  },
  'endpoints-05-format-that-vllm-refuses': (t, { replies, entries, sent }) => {
    t.same(
      replies.map(({ status }) => status),
      [200, 200, 200],
    )
    const [first, second] = replies.map(({ text }) => (text.startsWith('{') ? parsed(text)['text'] : text))
    t.ok(first)
    t.equal(second, first)
    t.match(replies[2]?.type, /^text\/plain/)
    t.same(
      entries.map(({ costNanoUsd }) => costNanoUsd),
      [6_150_000, 6_150_000, 6_150_000],
    )
    t.ok(sent.every((each) => [undefined, 'json', 'text'].includes(formatAsked(each))))
    t.equal(sent.length, 3)
  },
}

const folder = casesFolder()
if (folder === null) t.pass('no cases here; set SLUICE_CASES to their folder', { skip: true })
else {
  const names = readdirSync(folder).filter((name) => name.startsWith('endpoints-'))
  for (const name of names) {
    const check = CHECKS[name]
    void t.test(name, check === undefined ? { skip: 'not checked here' } : {}, async (t) => {
      check?.(t, await run(t, join(folder, name)))
    })
  }
}

async function run(t: Test, path: string): Promise<Outcome> {
  const known = parsed(readFileSync(join(path, 'case.json'), 'utf8'))
  const file = join(path, 'upstream.json')
  const body = existsSync(file) ? readFileSync(file) : null
  const upstream = await startRawUpstream(t, (request) => json(body ?? answerOf(known, request)))
  if (known['batch'] !== undefined) upstream.answer = batchApi()
  const gateway = await startGateway(t, {
    cloud: settingsOf(known, upstream),
    routes: `  - { model: ${MODEL}, targets: [{ upstream: cloud, model: ${stringOf(known['target']) ?? ''} }] }\n`,
    more: `${FILES}./files }\n`,
  })
  const steps = JSON.parse(readFileSync(join(path, 'request.json'), 'utf8')) as JsonValue
  const replies: Reply[] = []
  const kept = new Map<string, string>()
  for (const step of Array.isArray(steps) ? steps : [steps]) {
    replies.push(await stepTaken(gateway, objectOf(step), kept))
  }
  return { replies, entries: await rowsOf(gateway), sent: upstream.requests }
}

/** The upstream of the case, in YAML's flow form without braces. */
function settingsOf(known: JsonObject, upstream: RawUpstream): string {
  const by = known['preset'] === undefined ? 'dialect' : 'preset'
  const base = { base_url: `${upstream.origin}/v1`, api_key: 'k' }
  return JSON.stringify({ [by]: known[by], ...base, prices: known['prices'] }).slice(1, -1)
}

/** Takes a step; `kept` has what earlier ones kept of their replies. */
async function stepTaken(gateway: TestGateway, step: JsonObject, kept: Map<string, string>): Promise<Reply> {
  const filled = objectOf(
    JSON.parse(
      JSON.stringify(step)
        .replaceAll('$MODEL', MODEL)
        .replaceAll(/\$\{(\w+)\}/g, (whole, name: string) => kept.get(name) ?? whole),
    ) as JsonValue,
  )
  const until = arrayOf(filled['until']).map(textIn)
  let reply = await sent(gateway, filled)
  for (let looks = 0; until.length > 0 && looks < 200; looks += 1) {
    if (until.includes(textIn(parsed(reply.text)['status']))) break
    await sleep(100)
    reply = await sent(gateway, filled)
  }
  for (const [name, member] of Object.entries(objectOf(filled['keep']))) {
    kept.set(name, textIn(parsed(reply.text)[textIn(member)]))
  }
  return reply
}

async function sent(gateway: TestGateway, step: JsonObject): Promise<Reply> {
  const { body, fields, file, method = 'POST' } = step
  const form = file === undefined ? null : formOf(objectOf(fields), objectOf(file))
  const response = await fetch(gateway.origin + textIn(step['path']), {
    method: textIn(method),
    headers: {
      authorization: `Bearer ${gateway.secret}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(form === null ? {} : { body: form }),
  })
  const type = response.headers.get('content-type') ?? ''
  return { status: response.status, type, text: await response.text() }
}

function formOf(fields: JsonObject, { name, type, text, base64 }: JsonObject): FormData {
  const form = new FormData()
  for (const [field, value] of Object.entries(fields)) form.set(field, textIn(value))
  const bytes = typeof base64 === 'string' ? Buffer.from(base64, 'base64') : Buffer.from(textIn(text))
  form.set('file', new File([bytes], textIn(name), { type: textIn(type) }))
  return form
}

/** A server of transcripts that refuses other formats than `json` and `text`. */
function answerOf(known: JsonObject, request: Arrived): string {
  if (![undefined, 'json', 'text'].includes(formatAsked(request))) {
    return JSON.stringify({ object: 'error', message: 'Unknown response format', code: 400 })
  }
  t.equal(known['fmt'], 'transcriptions')
  return JSON.stringify({ text: 'Hello world.', usage: { type: 'duration', seconds: 61.5 } })
}

/** OpenAI's API for batches, which ends at the second look; each line used 100 tokens and 10. */
function batchApi(): (request: Arrived) => Canned {
  let [lines, looks] = [0, 0]
  const batch = { id: 'batch_1', object: 'batch', endpoint: '/v1/chat/completions', created_at: 1 }
  return ({ url, body }) => {
    if (url.endsWith('/files')) {
      lines = body.toString().split('"custom_id"').length - 1
      return json({ id: 'file-1', object: 'file', bytes: body.length, purpose: 'batch' })
    }
    if (url.endsWith('/batches')) return json({ ...batch, status: 'validating', request_counts: null })
    if (url.endsWith('/content')) {
      const results = Array.from({ length: lines }, (_, at) => JSON.stringify(resultOf(at)))
      return { type: 'application/jsonl', chunks: [`${results.join('\n')}\n`] }
    }
    looks += 1
    const counts = { total: lines, completed: lines, failed: 0 }
    return json(
      looks < 2
        ? { ...batch, status: 'in_progress', request_counts: { ...counts, completed: 0 } }
        : { ...batch, status: 'completed', output_file_id: 'file-2', request_counts: counts },
    )
  }
}

function resultOf(at: number): object {
  const message = { role: 'assistant', content: 'Hi.' }
  const body = {
    ...{ id: `c-${at}`, object: 'chat.completion', created: 1, model: 'batch-5' },
    choices: [{ index: 0, message, finish_reason: 'stop' }],
    usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 },
  }
  const response = { status_code: 200, request_id: `r-${at}`, body }
  return { id: `b-${at}`, custom_id: `c${at}`, response, error: null }
}

function json(body: object | string | Buffer): Canned {
  const text = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  return { type: 'application/json', chunks: [text] }
}

/** The field `response_format` of a form that was sent to the upstream. */
function formatAsked(request: Arrived | undefined): string | undefined {
  return /name="response_format"\r\n\r\n([^\r]*)/.exec(request?.body.toString('latin1') ?? '')?.[1]
}

function parsed(text = ''): JsonObject {
  return objectOf(JSON.parse(text) as JsonValue)
}

function textIn(value: JsonValue | undefined): string {
  return stringOf(value) ?? ''
}
