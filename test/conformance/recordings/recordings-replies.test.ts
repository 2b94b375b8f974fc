/**
 * Goal: every recorded reply of every provider reaches chat clients as a valid chat completion with the same
 * content.
 * Method: the emulator replays the recording to a real HTTP request; text, calls, finish reason and usage are
 * compared with a naive reading of the recording. A route of the client's own dialect must pass the bytes;
 * then faults of the format are those of the recording.
 */
import t, { type Test } from 'tap'
import { arrayOf, objectOf, stringOf } from '../../../src/base/json.js'
import type { Chunking } from '../../../src/emulator/faults/delay-and-cut-faults.js'
import { skipWithoutFixtures } from '../../helpers/fixtures.js'
import { startGateway } from '../../helpers/gateway.js'
import { ofToday } from '../../helpers/long-suite.js'
import { collect, faultsOfStream, faultsOfWhole, type Answered } from '../check-completion.js'
import { cases, featuresOf, fromOpenAi, gistOf, objectsOf, type Case, type Gist } from './recorded.js'
import { Tally, together } from '../run-in-parallel.js'

const MODEL = {
  openai: 'gpt-4o',
  responses: 'gpt-5-pro',
  anthropic: 'claude-haiku-4-5',
  gemini: 'gemini-2.5-flash',
}

/** Recordings that fail despite their status 200; everything else must be a reply. */
const FAILURES: readonly (readonly [name: RegExp, reason: string])[] = [
  [
    /^vertex-gemini\/.*multimodal_tool_return.*(?:binary-audio|uploaded_file-video|download-audio|url-image)/,
    'finishReason UNEXPECTED_TOOL_CALL: a call of an undeclared tool is not a reply',
  ],
  [/^groq\/.*tool_use_failed_error_streaming\.1/, 'an error in the middle of the stream'],
  [
    /^openai\/test_openai_responses__test_background_mode_/,
    'status queued: asked to be made in the background, it is not there yet',
  ],
  [/^azure\/.*__test_prompt_content_filtering\.1$/, 'an error of status 400 in a body of status 200'],
]

/** Google's endpoint in OpenAI's format sends calls with an empty id. */
const WITHOUT_ID = new Set(['gemini/test_openai__test_compatible_api_with_tool_calls_without_id.1'])

/** An old deployment omits the message of a choice that its filter emptied. */
const WITHOUT_MESSAGE = new Set(['azure/openllmetry__test_azure__test_chat_content_filtering.1'])

const good = cases().filter(({ recording }) => recording.status === 200)
const wholes = good.filter(({ recording }) => !recording.stream)
const streams = good.filter(({ recording }) => recording.stream)
t.setTimeout(120_000)
const gateway = await startGateway(t, { upstreamOptions: 'native_sharing: shared' })
let turn = 0

/** Sends any request and gets the recording as its reply. */
async function replayed(it: Case, fields: object, chunking: Chunking): Promise<Answered> {
  turn += 1
  const words = `This is replay ${turn}.`
  const take = gateway.emulator.replay(it.recording, {
    match: ({ body }) => JSON.stringify(body).includes(words),
    chunking,
  })
  const messages = [{ role: 'user', content: words }]
  const response = await gateway.chat({ model: MODEL[it.format], messages, ...fields })
  const answered = await collect(response)
  take()
  return answered
}

const STREAM = { stream: true, stream_options: { include_usage: true } }

const features = new Map<string, Tally>()

/** Counts the features of a correct reply. */
function countFeatures(place: string, gist: Gist): void {
  const tally = features.get(place) ?? new Tally()
  features.set(place, tally)
  for (const feature of featuresOf(gist)) tally.add(feature)
}

/** Intended changes by translation. */
function translated(gist: Gist): Gist {
  const { finish, calls } = gist
  const plain = finish === 'stop' || finish === 'function_call'
  return {
    ...gist,
    finish: plain && calls.length > 0 ? 'tool_calls' : finish,
    usage: gist.usage ?? { prompt: 0, completion: 0 },
  }
}

/** A reply that failed despite status 200: an error with a status, or one inside the stream. */
function compareFailure(t: Test, label: string, answered: Answered): void {
  const reason = FAILURES.find(([name]) => name.test(label))?.[1]
  t.ok(reason, `${label} is known to fail: ${reason ?? 'no, it is not'}`)
  const last = objectsOf(answered.text).at(-1) ?? {}
  const error = objectOf(last['error'])
  t.ok(answered.status >= 400 || !answered.whole, `${label} ends in an error or a cut connection`)
  t.notOk(answered.text.includes('[DONE]'), `${label} does not look complete`)
  t.match(stringOf(error['kind']) ?? answered.text.slice(0, 200), /^upstream_/, label)
}

void t.test('whole replies to whole requests', skipWithoutFixtures(), async (t) => {
  const tally = new Tally()
  await together([...ofToday(wholes, 12)], async (it) => {
    const { label, recording } = it
    const want = gistOf(it)
    const answered = await replayed(it, {}, 'whole')
    const place = `${recording.provider} ${recording.api}`
    if (want.finish === null) {
      compareFailure(t, label, answered)
      tally.add(`${place} failure reported`)
      return
    }
    const faults = faultsOfWhole(answered)
    if (it.format === 'openai') {
      t.equal(answered.text, recording.response_body, label)
      const expected = WITHOUT_ID.has(label) ? ['tool_calls.id'] : []
      t.same(faults, WITHOUT_MESSAGE.has(label) ? ['message.role'] : expected, label)
    } else {
      t.same(faults, [], label)
      t.same(fromOpenAi(objectsOf(answered.text)), translated(want), label)
    }
    tally.add(place)
    countFeatures(place, want)
  })
  t.comment(tally.toString())
})

void t.test('whole replies to streaming requests', skipWithoutFixtures(), async (t) => {
  const tally = new Tally()
  await together([...ofToday(wholes)], async (it) => {
    const { label, recording } = it
    const want = gistOf(it)
    const answered = await replayed(it, STREAM, 'whole')
    const place = `${recording.provider} ${recording.api}`
    if (want.finish === null) {
      compareFailure(t, label, answered)
      tally.add(`${place} failure reported`)
      return
    }
    const { faults, chunks } = faultsOfStream(answered)
    t.same(faults, [], label)
    t.same(fromOpenAi(chunks), translated(want), label)
    tally.add(place)
  })
  t.comment(tally.toString())
})

/** Small chunks are slow to send: the shorter streams, or as many as configured. */
const CUT_STREAMS = Number(process.env['CONFORMANCE_CUT_STREAMS'] ?? 40)

function shortest(cases: readonly Case[], count: number): Case[] {
  const size = ({ recording }: Case): number => recording.response_body.length
  return [...cases].sort((a, b) => size(a) - size(b)).slice(0, count)
}

for (const chunking of ['whole', 'events', 7] as const) {
  void t.test(`streams in chunks: ${chunking}`, skipWithoutFixtures(), async (t) => {
    const tally = new Tally()
    const all = chunking === 7 ? shortest(streams, CUT_STREAMS) : streams
    const chosen = [...ofToday(all, chunking === 'whole' ? 12 : 40)]
    await together(chosen, async (it) => {
      const { label, recording } = it
      const want = gistOf(it)
      const answered = await replayed(it, STREAM, chunking)
      const place = `${recording.provider} ${recording.api}`
      if (want.finish === null) {
        compareFailure(t, label, answered)
        tally.add(`${place} failure reported`)
        return
      }
      const { faults, chunks } = faultsOfStream(answered)
      if (it.format === 'openai') {
        t.equal(answered.text, recording.response_body, label)
        if (faults.length > 0) tally.add('(passed unchanged, with their own faults)')
      } else {
        t.same(faults, [], label)
        t.same(fromOpenAi(chunks), translated(want), label)
      }
      tally.add(place)
      if (chunking === 'whole') countFeatures(place, want)
    })
    t.comment(tally.toString())
  })
}

void t.test('features of the recordings', skipWithoutFixtures(), (t) => {
  t.ok(features.size > 0)
  for (const [place, tally] of features) t.comment(`${place}: ${tally.toString()}`)
  t.end()
})

void t.test('streams without usage lose only that, and `usage: null`', skipWithoutFixtures(), async (t) => {
  await together([...ofToday(streams, 12)], async (it) => {
    const want = gistOf(it)
    if (want.finish === null) return
    const answered = await replayed(it, { stream: true }, 'whole')
    if (it.format === 'openai') {
      const kept = (it.recording.response_body.match(/[\s\S]+?\n\n/g) ?? []).filter(
        (event) => !isUsage(event),
      )
      t.equal(answered.text, kept.join('').replaceAll(',"usage":null', ''), it.label)
      return
    }
    const { usage, ...rest } = fromOpenAi(objectsOf(answered.text))
    t.equal(usage, null, it.label)
    t.same({ ...rest, usage: want.usage }, { ...translated(want), usage: want.usage }, it.label)
  })
})

/** A chunk that only the gateway requests: usage without a choice. */
function isUsage(event: string): boolean {
  const [chunk = {}] = objectsOf(event)
  return arrayOf(chunk['choices']).length === 0 && objectOf(chunk['usage'])['prompt_tokens'] !== undefined
}
