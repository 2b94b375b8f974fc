/**
 * Goal: every recorded reply of every provider reaches Gemini clients as a valid reply with the same content.
 * Method: the emulator replays the recording to a real generateContent request, whole, as server-sent events
 * and as a JSON array; text, calls, finish reason and usage are compared with a naive reading of the
 * recording. A Gemini upstream's bytes must pass. Each day has a twentieth of the recordings, the long suite
 * all.
 */
import t, { type Test } from 'tap'
import { arrayOf, objectOf, stringOf } from '../../src/base/json.js'
import type { Chunking } from '../../src/emulator/faults/delay-and-cut-faults.js'
import { skipWithoutFixtures } from '../helpers/fixtures.js'
import { startGateway } from '../helpers/gateway.js'
import { ofToday } from '../helpers/long-suite.js'
import { collect, type Answered } from './check-completion.js'
import {
  cases,
  fromGemini,
  gistOf,
  objectsOf,
  type Case,
  type Counts,
  type Gist,
} from './recordings/recorded.js'
import { Tally, together } from './run-in-parallel.js'

const MODEL = {
  openai: 'gpt-4o',
  responses: 'gpt-5-pro',
  anthropic: 'claude-haiku-4-5',
  gemini: 'gemini-2.5-flash',
}

const good = [...ofToday(cases().filter(({ recording }) => recording.status === 200))]
const wholes = good.filter(({ recording }) => !recording.stream)
const streams = good.filter(({ recording }) => recording.stream)
t.setTimeout(120_000)
const gateway = await startGateway(t)
let turn = 0

type Form = 'whole' | 'events' | 'array'

const ACTIONS: Readonly<Record<Form, string>> = {
  whole: 'generateContent',
  events: 'streamGenerateContent?alt=sse',
  array: 'streamGenerateContent',
}

/** Sends any request and gets the recording as its reply. */
async function replayed(it: Case, form: Form, chunking: Chunking): Promise<Answered> {
  turn += 1
  const words = `This is replay ${turn}.`
  const take = gateway.emulator.replay(it.recording, {
    match: ({ body }) => JSON.stringify(body).includes(words),
    chunking,
  })
  const response = await fetch(`${gateway.origin}/v1beta/models/${MODEL[it.format]}:${ACTIONS[form]}`, {
    method: 'POST',
    headers: { 'x-goog-api-key': gateway.secret, 'content-type': 'application/json' },
    body: JSON.stringify({
      contents: [{ parts: [{ text: words }] }],
      generationConfig: { thinkingConfig: { includeThoughts: true } },
    }),
  })
  const answered = await collect(response)
  take()
  return answered
}

/** Faults of a reply in this format. */
function faultsOf({ status, type, text, whole }: Answered, form: Form): string[] {
  if (status !== 200) return [`status ${status}: ${text.slice(0, 300)}`]
  const faults: string[] = []
  const check = (good: boolean, fault: string): void => {
    if (!good) faults.push(fault)
  }
  check(whole, 'the connection broke')
  const wanted = form === 'events' ? 'text/event-stream' : 'application/json'
  check(type.startsWith(wanted), `content-type ${type}`)
  const chunks = objectsOf(text)
  for (const name of ['responseId', 'modelVersion']) {
    const values = new Set(chunks.map((chunk) => chunk[name]))
    check(values.size === 1 && typeof [...values][0] === 'string', name)
  }
  const candidates = chunks.map(({ candidates }) => arrayOf(candidates).map(objectOf)[0] ?? {})
  const reasons = candidates.filter(({ finishReason }) => finishReason !== undefined)
  const blocked = chunks.some(({ promptFeedback }) => promptFeedback !== undefined)
  check(blocked || reasons.length === 1, `${reasons.length} finish reasons`)
  check(blocked || candidates.at(-1)?.['finishReason'] !== undefined, 'the reason is not last')
  if (form !== 'whole' && !blocked) {
    // Google's SDK drops a turn whose events have no parts.
    check(
      candidates.every(({ content }) => arrayOf(objectOf(content)['parts']).length > 0),
      'parts',
    )
  }
  const usage = objectOf(chunks.at(-1)?.['usageMetadata'])
  for (const name of ['promptTokenCount', 'totalTokenCount']) {
    check(Number.isInteger(usage[name]), `usageMetadata.${name}`)
  }
  return faults
}

/** One recording of Google has no prompt counts, and its bytes pass. */
const WITHOUT_COUNTS = /with_file_uri_image\[True\]$/

/** Intended changes by translation: no count of cache writes, refusals and other ends. */
function translated(gist: Gist, format: Case['format']): Gist {
  const { finish, calls, usage } = gist
  const plain = finish === 'stop' || finish === 'function_call'
  const counts: Counts = { prompt: 0, completion: 0, ...usage }
  delete counts.written
  const reported = format === 'gemini' ? usage : counts
  return { ...gist, finish: plain && calls.length > 0 ? 'tool_calls' : finish, usage: reported }
}

/** Counts without zeros, which this format may omit. */
function comparable(gist: Gist): Gist {
  const { usage } = gist
  if (usage === null) return { ...gist, usage: { prompt: 0, completion: 0 } }
  const counts = Object.entries(usage).filter(([name, count]) => {
    return name === 'prompt' || name === 'completion' || count !== 0
  })
  return { ...gist, usage: { prompt: 0, completion: 0, ...Object.fromEntries(counts) } }
}

function refusalIn({ recording, format }: Case): string {
  if (format !== 'openai') return ''
  return objectsOf(recording.response_body)
    .flatMap(({ choices }) => arrayOf(choices).map(objectOf))
    .map((choice) => stringOf(objectOf(choice['message'] ?? choice['delta'])['refusal']) ?? '')
    .join('')
}

function compare(t: Test, it: Case, { answered, form }: { answered: Answered; form: Form }): void {
  const want = gistOf(it)
  const faults = faultsOf(answered, form)
  const passed = it.format === 'gemini' && WITHOUT_COUNTS.test(it.label)
  t.same(
    faults.filter((fault) => !passed || !fault.startsWith('usageMetadata.')),
    [],
    it.label,
  )
  const made = fromGemini(objectsOf(answered.text))
  // A refusal is text in this format.
  const refusal = refusalIn(it)
  const expected = translated(want, it.format)
  const refused = { ...expected, text: refusal, finish: 'content_filter' }
  t.same(comparable(made), comparable(refusal === '' ? expected : refused), it.label)
}

/** A reply that failed despite status 200: an error with a status, or one inside the stream. */
function compareFailure(t: Test, { label }: Case, answered: Answered): void {
  t.ok(answered.status >= 400 || !answered.whole, `${label} ends in an error or a cut connection`)
  t.notOk(answered.whole && answered.status === 200, label)
  t.match(answered.text, /"reason":"upstream_\w+","domain":"sluice"/, label)
}

for (const form of ['whole', 'events', 'array'] as const) {
  void t.test(`whole replies to requests for ${form}`, skipWithoutFixtures(), async (t) => {
    const tally = new Tally()
    await together(wholes, async (it) => {
      const { label, recording, format } = it
      const answered = await replayed(it, form, 'whole')
      if (format === 'gemini' && form === 'whole') t.equal(answered.text, recording.response_body, label)
      else if (gistOf(it).finish === null) compareFailure(t, it, answered)
      else compare(t, it, { answered, form })
      tally.add(`${recording.provider} ${recording.api}`)
    })
    t.comment(tally.toString())
  })
}

/** Small chunks are slow to send: the shorter streams, or as many as configured. */
const CUT_STREAMS = Number(process.env['CONFORMANCE_CUT_STREAMS'] ?? 40)

for (const chunking of ['whole', 'events', 7] as const) {
  void t.test(`streams in chunks: ${chunking}`, skipWithoutFixtures(), async (t) => {
    const tally = new Tally()
    const shortest = [...streams]
      .sort((a, b) => a.recording.response_body.length - b.recording.response_body.length)
      .slice(0, CUT_STREAMS)
    await together(chunking === 7 ? shortest : streams, async (it) => {
      const { label, recording, format } = it
      for (const form of ['events', 'array'] as const) {
        const answered = await replayed(it, form, chunking)
        const isEvents = recording.response_body.trimStart().startsWith('data:')
        if (gistOf(it).finish === null) compareFailure(t, it, answered)
        else if (format === 'gemini' && form === 'events' && isEvents) {
          t.equal(answered.text, recording.response_body, label)
        } else compare(t, it, { answered, form })
      }
      tally.add(`${recording.provider} ${recording.api}`)
    })
    t.comment(tally.toString())
  })
}

void t.test('streams to whole requests', skipWithoutFixtures(), async (t) => {
  await together(streams, async (it) => {
    const answered = await replayed(it, 'whole', 'whole')
    if (gistOf(it).finish === null) compareFailure(t, it, answered)
    else if (answered.status === 200) compare(t, it, { answered, form: 'whole' })
    else t.match(stringOf(objectOf(objectOf(JSON.parse(answered.text))['error'])['message']), /./)
  })
})
