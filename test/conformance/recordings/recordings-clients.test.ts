/**
 * Goal: every recorded reply of every provider reaches clients of every format as a valid reply with the same
 * content.
 * Method: as in `recordings-replies.test.ts` for chat completions: the emulator replays the recording to a
 * real HTTP request; text, calls, stop reason and usage are compared with a naive reading of the recording.
 * For a client of the recording's own format the bytes must pass unchanged. Each day has a twentieth of the
 * recordings, the long suite all.
 */
import t, { type Test } from 'tap'
import type { Chunking } from '../../../src/emulator/faults/delay-and-cut-faults.js'
import { skipWithoutFixtures } from '../../helpers/fixtures.js'
import { startGateway } from '../../helpers/gateway.js'
import { ofToday } from '../../helpers/long-suite.js'
import { CLIENT_FORMS, type ClientForm } from '../clients/client-forms.js'
import { collect, type Answered } from '../check-completion.js'
import { cases, gistOf, objectsOf, type Case, type Gist } from './recorded.js'
import { Tally, together } from '../run-in-parallel.js'

const MODEL = {
  openai: 'gpt-4o',
  responses: 'gpt-5-pro',
  anthropic: 'claude-haiku-4-5',
  gemini: 'gemini-2.5-flash',
}

/** Recordings that fail despite their status 200 (the reasons are in `recordings-replies.test.ts`). */
const FAILURES =
  /^vertex-gemini\/.*multimodal_tool_return.*(?:binary-audio|uploaded_file-video|download-audio|url-image)|^groq\/.*tool_use_failed_error_streaming\.1|^azure\/.*__test_prompt_content_filtering\.1$|^openai\/test_openai_responses__test_background_mode_/

const good = cases().filter(({ recording }) => recording.status === 200)
t.setTimeout(240_000)
const gateway = await startGateway(t, { upstreamOptions: 'native_sharing: shared' })
let turn = 0

/** Sends any request in the client's format and gets the recording as its reply. */
async function replayed(it: Case, { form, stream, chunking }: Replay): Promise<Answered> {
  turn += 1
  const words = `This is replay ${turn}.`
  const take = gateway.emulator.replay(it.recording, {
    match: ({ body }) => JSON.stringify(body).includes(words),
    chunking,
  })
  const model = MODEL[it.format]
  const response = await fetch(gateway.origin + form.path(model, stream), {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(form.body(model, words, stream)),
  })
  const answered = await collect(response)
  take()
  return answered
}

/** Recordings of refusals with the reason `stop`. */
const REFUSALS = /test_async_parsed_refused_completion/

/** Intended changes by translation. */
function translated(form: ClientForm, label: string, gist: Gist): Gist {
  const plain = gist.finish === 'stop' || gist.finish === 'function_call'
  const finish = plain && gist.calls.length > 0 ? 'tool_calls' : gist.finish
  return form.expected({ ...gist, finish: REFUSALS.test(label) ? form.refusal : finish })
}

function compareFailure(
  t: Test,
  form: ClientForm,
  { label, answered }: { label: string; answered: Answered },
): void {
  t.match(label, FAILURES, `${label} is known to fail`)
  const last = objectsOf(answered.text).at(-1) ?? {}
  t.ok(answered.status >= 400 || !answered.whole, `${label} ends in an error or a cut connection`)
  t.notOk(form.claimsEnd(answered.text), `${label} does not look complete`)
  t.match(form.errorKind(last) ?? answered.text.slice(0, 200), /^upstream_/, label)
}

/** A replay of a recording in a client's format. */
interface Replay {
  readonly form: ClientForm
  /** Whether the client requests a stream; the recording may be of either kind. */
  readonly stream: boolean
  readonly chunking: Chunking
}

/** `stream`: whether the client requests a stream; the recording may be of either kind. */
async function compare(t: Test, it: Case, { form, stream, chunking }: Replay): Promise<string> {
  const { label, recording, format } = it
  const answered = await replayed(it, { form, stream, chunking })
  const want = gistOf(it)
  if (want.finish === null) {
    compareFailure(t, form, { label, answered })
    return 'failure reported'
  }
  if (format === form.own && recording.stream === stream) {
    t.equal(answered.text, recording.response_body, label)
    return 'passed'
  }
  t.same(form.faults(answered, stream), [], label)
  if (answered.status !== 200) return 'wrong'
  t.same(form.expected(form.read(objectsOf(answered.text))), translated(form, label, want), label)
  return 'translated'
}

for (const [name, form] of Object.entries(CLIENT_FORMS)) {
  for (const [kind, recorded, stream] of [
    ['whole replies to whole requests', false, false],
    ['whole replies to streaming requests', false, true],
    ['streams', true, true],
  ] as const) {
    void t.test(`${name}: ${kind}`, skipWithoutFixtures(), async (t) => {
      const tally = new Tally()
      const chosen = [...ofToday(good.filter(({ recording }) => recording.stream === recorded))]
      await together(chosen, async (it) => {
        const result = await compare(t, it, { form, stream, chunking: 'whole' })
        tally.add(`${it.recording.provider} ${it.recording.api} ${result}`)
      })
      t.comment(tally.toString())
    })
  }
}
