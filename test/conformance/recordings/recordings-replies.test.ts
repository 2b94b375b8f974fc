/**
 * Goal: every recorded answer of every provider comes out of the gateway as a valid chat completion that
 * says the same.
 * Method: the emulator replays the recording in answer to a real HTTP request; text, calls, finish
 * reason and usage of what comes out are compared with a naive reading of the recording. A route of
 * the client's own dialect must pass the bytes; then the format's faults are the recording's own.
 */
import t, { type Test } from 'tap'
import { arrayOf, objectOf, stringOf } from '../../../src/chat/json.js'
import type { Chunking } from '../../../src/emulator/faults/send-plan.js'
import { skipWithoutFixtures } from '../../helpers/fixtures.js'
import { startGateway } from '../../helpers/gateway.js'
import { collect, faultsOfStream, faultsOfWhole, type Answered } from '../check-completion.js'
import {
  cases,
  featuresOf,
  fromOpenAi,
  gistOf,
  piecesOf,
  type Case,
  type Gist,
} from './recorded.js'
import { Tally, together } from '../run-in-parallel.js'

const MODEL = {
  openai: 'gpt-4o',
  responses: 'gpt-5-pro',
  anthropic: 'claude-haiku-4-5',
  gemini: 'gemini-2.5-flash',
}

/** Recordings that end in a failure in spite of their 200; everything else must be an answer. */
const FAILURES: readonly (readonly [name: RegExp, reason: string])[] = [
  [
    /^vertex-gemini\/.*multimodal_tool_return.*(?:binary-audio|uploaded_file-video|download-audio|url-image)/,
    'finishReason UNEXPECTED_TOOL_CALL: a call that nobody declared is no answer',
  ],
  [/^groq\/.*tool_use_failed_error_streaming\.1/, 'an error in the middle of the stream'],
  [
    /^openai\/test_openai_responses__test_background_mode_/,
    'status queued: asked to be made in the background, it is not there yet',
  ],
]

/** Google's endpoint in OpenAI's format makes calls whose id is empty. */
const WITHOUT_ID = new Set(['gemini/test_openai__test_compatible_api_with_tool_calls_without_id.1'])

const good = cases().filter(({ recording }) => recording.status === 200)
const wholes = good.filter(({ recording }) => !recording.stream)
const streams = good.filter(({ recording }) => recording.stream)
t.setTimeout(120_000)
const gateway = await startGateway(t)
let turn = 0

/** Asks for anything and gets the recording for an answer. */
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

/** Counts what an answer that came out right has in it. */
function countFeatures(place: string, gist: Gist): void {
  const tally = features.get(place) ?? new Tally()
  features.set(place, tally)
  for (const feature of featuresOf(gist)) tally.add(feature)
}

/** What translation makes of an answer on purpose. */
function translated(gist: Gist): Gist {
  const { finish, calls } = gist
  const plain = finish === 'stop' || finish === 'function_call'
  return {
    ...gist,
    finish: plain && calls.length > 0 ? 'tool_calls' : finish,
    usage: gist.usage ?? { prompt: 0, completion: 0 },
  }
}

/** An answer that failed in spite of its 200: an error with a status, or one inside the stream. */
function compareFailure(t: Test, label: string, answered: Answered): void {
  const reason = FAILURES.find(([name]) => name.test(label))?.[1]
  t.ok(reason, `${label} is known to fail: ${reason ?? 'no, it is not'}`)
  const last = piecesOf(answered.text).at(-1) ?? {}
  const error = objectOf(last['error'])
  t.ok(answered.status >= 400 || !answered.whole, `${label} ends in an error or a cut connection`)
  t.notOk(answered.text.includes('[DONE]'), `${label} does not look complete`)
  t.match(stringOf(error['kind']) ?? answered.text.slice(0, 200), /^upstream_/, label)
}

void t.test('whole replies, asked for whole', skipWithoutFixtures(), async (t) => {
  const tally = new Tally()
  await together(wholes, async (it) => {
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
      t.same(faults, WITHOUT_ID.has(label) ? ['tool_calls.id'] : [], label)
    } else {
      t.same(faults, [], label)
      t.same(fromOpenAi(piecesOf(answered.text)), translated(want), label)
    }
    tally.add(place)
    countFeatures(place, want)
  })
  t.comment(tally.toString())
})

void t.test('whole replies, asked for as a stream', skipWithoutFixtures(), async (t) => {
  const tally = new Tally()
  await together(wholes, async (it) => {
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

/** Odd cuts are slow to send: the shorter streams, or as many as asked for. */
const CUT_STREAMS = Number(process.env['CONFORMANCE_CUT_STREAMS'] ?? 40)

function shortest(cases: readonly Case[], count: number): Case[] {
  const size = ({ recording }: Case): number => recording.response_body.length
  return [...cases].sort((a, b) => size(a) - size(b)).slice(0, count)
}

for (const chunking of ['whole', 'events', 7] as const) {
  void t.test(`streams, in pieces: ${chunking}`, skipWithoutFixtures(), async (t) => {
    const tally = new Tally()
    const chosen = chunking === 7 ? shortest(streams, CUT_STREAMS) : streams
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
        if (faults.length > 0) tally.add('(passed as they are, with faults of their own)')
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

void t.test('what the recordings exercise', skipWithoutFixtures(), (t) => {
  t.ok(features.size > 0)
  for (const [place, tally] of features) t.comment(`${place}: ${tally.toString()}`)
  t.end()
})

void t.test(
  'streams without usage lose only that, and `usage: null`',
  skipWithoutFixtures(),
  async (t) => {
    await together(streams, async (it) => {
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
      const { usage, ...rest } = fromOpenAi(piecesOf(answered.text))
      t.equal(usage, null, it.label)
      t.same({ ...rest, usage: want.usage }, { ...translated(want), usage: want.usage }, it.label)
    })
  },
)

/** A chunk that only the gateway wants: counts and no choice. */
function isUsage(event: string): boolean {
  const [chunk = {}] = piecesOf(event)
  return (
    arrayOf(chunk['choices']).length === 0 &&
    objectOf(chunk['usage'])['prompt_tokens'] !== undefined
  )
}
