/**
 * Goal: every recorded reply of every provider reaches clients of `POST /v1/responses` as a valid response
 * with the same content, and every recorded request of such a client reaches its own upstream byte for byte.
 * Method: the emulator replays replies, which are compared with a naive reading of the recording; a server of
 * the test records the bytes of requests.
 */
import { createServer } from 'node:http'
import t, { type Test } from 'tap'
import { objectOf, stringOf, type JsonObject } from '../../../src/base/json.js'
import type { Chunking } from '../../../src/emulator/faults/delay-and-cut-faults.js'
import { fixtures, skipWithoutFixtures } from '../../helpers/fixtures.js'
import { startGateway } from '../../helpers/gateway.js'
import { ofToday } from '../../helpers/long-suite.js'
import { collect, type Answered } from '../check-completion.js'
import { cases, fromResponses, gistOf, objectsOf, type Case, type Gist } from './recorded.js'
import { faultsOfEvents, overChat } from '../check-responses.js'
import { Tally, together } from '../run-in-parallel.js'
import { listen } from '../../helpers/listen.js'

const MODEL = {
  openai: 'gpt-4o',
  responses: 'gpt-4.1',
  anthropic: 'claude-haiku-4-5',
  gemini: 'gemini-2.5-flash',
}

/** Recordings that fail despite their status 200; everything else must be a reply. */
const FAILURES =
  /^vertex-gemini\/.*multimodal_tool_return|^groq\/.*tool_use_failed_error_streaming\.1|^azure\/.*__test_prompt_content_filtering\.1$|^openai\/test_openai_responses__test_background_mode_/

const good = cases().filter(({ recording }) => recording.status === 200)
t.setTimeout(240_000)
const gateway = await startGateway(t, { upstreamOptions: 'native_sharing: shared' })
overChat(gateway)
let turn = 0

function ask(body: JsonObject): Promise<Response> {
  return fetch(`${gateway.baseUrl}/responses`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

/** Sends any request and gets the recording as its reply. */
async function replayed(it: Case, stream: boolean, chunking: Chunking): Promise<Answered> {
  turn += 1
  const words = `This is replay ${turn}.`
  const take = gateway.emulator.replay(it.recording, {
    match: ({ body }) => JSON.stringify(body).includes(words),
    chunking,
  })
  const response = await ask({ model: MODEL[it.format], input: words, stream })
  const answered = await collect(response)
  take()
  return answered
}

/** Intended changes by translation: each count is present, possibly zero. */
function translated(gist: Gist): Gist {
  const { finish, calls, usage } = gist
  const plain = finish === 'stop' || finish === 'function_call'
  const counts = usage ?? { prompt: 0, completion: 0 }
  return {
    ...gist,
    // Calls of a complete reply must be run.
    finish: plain && calls.length > 0 ? 'tool_calls' : finish,
    usage: { ...counts, cached: counts.cached ?? 0, reasoning: counts.reasoning ?? 0 },
  }
}

function compareFailure(t: Test, label: string, answered: Answered): void {
  t.match(label, FAILURES, `${label} is known to fail`)
  const last = objectsOf(answered.text).at(-1) ?? {}
  const error = objectOf(objectOf(last['response'])['error'] ?? last['error'])
  t.ok(answered.status >= 400 || !answered.whole, `${label} ends in an error or a cut connection`)
  t.notMatch(answered.text, /response\.(?:completed|incomplete)/, `${label} does not look complete`)
  t.match(stringOf(error['kind']) ?? answered.text.slice(0, 200), /^upstream_/, label)
}

/** The bytes of the recording, without the `[DONE]` that copies of the format add. */
function passed({ recording }: Case): string {
  return recording.response_body.replace(/data: \[DONE\]\n\n$/, '')
}

for (const stream of [false, true]) {
  const what = stream ? 'as a stream' : 'whole'
  void t.test(`whole replies, requested ${what}`, skipWithoutFixtures(), async (t) => {
    const tally = new Tally()
    const wholes = good.filter(({ recording }) => !recording.stream)
    await together([...ofToday(wholes, stream ? 40 : 12)], async (it) => {
      const { label, recording, format } = it
      const want = gistOf(it)
      const answered = await replayed(it, stream, 'whole')
      tally.add(`${recording.provider} ${recording.api}${want.finish === null ? ' failure' : ''}`)
      if (want.finish === null) return compareFailure(t, label, answered)
      if (format === 'responses' && !stream) {
        t.equal(answered.text, recording.response_body, label)
        return
      }
      const objects = objectsOf(answered.text)
      if (stream) t.same(faultsOfEvents(objects), [], label)
      t.same(fromResponses(objects), translated(want), label)
    })
    t.comment(tally.toString())
  })
}

for (const chunking of ['whole', 'events', 7] as const) {
  void t.test(`streams in chunks: ${chunking}`, skipWithoutFixtures(), async (t) => {
    const tally = new Tally()
    const streams = good.filter(({ recording }) => recording.stream)
    const size = ({ recording }: Case): number => recording.response_body.length
    const short = [...streams].sort((a, b) => size(a) - size(b)).slice(0, 40)
    const chosen = [...ofToday(chunking === 7 ? short : streams, chunking === 'whole' ? 12 : 40)]
    await together(chosen, async (it) => {
      const { label, recording, format } = it
      const want = gistOf(it)
      const answered = await replayed(it, true, chunking)
      tally.add(`${recording.provider} ${recording.api}${want.finish === null ? ' failure' : ''}`)
      if (want.finish === null) return compareFailure(t, label, answered)
      if (format === 'responses') {
        t.equal(answered.text, passed(it), label)
        return
      }
      const objects = objectsOf(answered.text)
      t.same(faultsOfEvents(objects), [], label)
      t.same(fromResponses(objects), translated(want), label)
    })
    t.comment(tally.toString())
  })
}

/** Refused requests, and the field in the refusal. */
const REFUSED: readonly (readonly [field: string, refused: (body: JsonObject) => boolean])[] = [
  ['background', ({ background }) => background === true],
  ['conversation', ({ conversation }) => (conversation ?? null) !== null],
  ['previous_response_id', ({ previous_response_id: id }) => (id ?? null) !== null],
]

void t.test('recorded requests reach their own upstream unchanged', skipWithoutFixtures(), async (t) => {
  const arrived: string[] = []
  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      arrived.push(`${req.url} ${Buffer.concat(chunks).toString('utf8')}`)
      res.writeHead(200, { 'content-type': 'application/json' })
      res.end(JSON.stringify({ id: 'resp_1', object: 'response', status: 'completed', output: [] }))
    })
  })
  const port = await listen(t, server)
  const own = await startGateway(t, {
    upstreamOptions: 'native_sharing: shared',
    upstreams: { openai: `http://127.0.0.1:${port}` },
  })
  const tally = new Tally()
  const recordings = ['openai', 'azure', 'deepseek', 'openrouter'].flatMap((provider) =>
    fixtures({ provider, api: 'responses' }),
  )
  for (const { name, request_body: recorded } of recordings) {
    const recordedBody = objectOf(recorded)
    if (recordedBody['input'] === undefined) continue
    const body = JSON.stringify({ ...recordedBody, model: 'gpt-4.1' })
    const response = await fetch(`${own.baseUrl}/responses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${own.secret}`, 'content-type': 'application/json' },
      body,
    })
    const text = await response.text()
    const [field] = REFUSED.find(([, refused]) => refused(recordedBody)) ?? []
    if (field !== undefined) {
      t.equal(response.status, 400, name)
      t.equal(objectOf(objectOf(JSON.parse(text))['error'])['param'], field, name)
      t.same(arrived.splice(0), [], name)
      tally.add(`refused: ${field}`)
      continue
    }
    t.equal(response.status, 200, `${name}: ${text.slice(0, 300)}`)
    // OpenRouter's choice of a provider: the gateway chooses it (decision 0061).
    const { provider, ...rest } = JSON.parse(body) as JsonObject
    const passed = provider === undefined ? body : JSON.stringify(rest)
    t.same(arrived.splice(0), [`/responses ${passed}`], name)
    tally.add(provider === undefined ? 'unchanged' : 'without `provider.only`')
  }
  t.comment(tally.toString())
})
