/**
 * Goal: every recorded refusal of every provider reaches the client with the right status, in the form
 * of the OpenAI API, and with the provider's reason.
 * Method: the emulator replays it to a real HTTP request, whole and streamed.
 */
import t from 'tap'
import { arrayOf, objectOf, stringOf } from '../../../src/base/json.js'
import { skipWithoutFixtures } from '../../helpers/fixtures.js'
import { startGateway } from '../../helpers/gateway.js'
import { cases, type Case } from './recorded.js'
import { Tally } from '../run-in-parallel.js'

const MODEL = {
  openai: 'gpt-4o',
  responses: 'gpt-5-pro',
  anthropic: 'claude-haiku-4-5',
  gemini: 'gemini-2.5-flash',
}
const refused = cases().filter(({ recording }) => recording.status >= 400)

/** The client's status and kind; a refused credential of the gateway is not the client's fault. */
const EXPECTED: Readonly<Record<number, readonly [status: number, kind: string]>> = {
  400: [400, 'upstream_rejected'],
  401: [502, 'upstream_denied'],
  403: [502, 'upstream_denied'],
  404: [404, 'unknown_model'],
  429: [429, 'upstream_busy'],
}

/** Responses has no 404: an unknown model is a 400 with a code. */
function expectedOf({ format, recording }: Case): readonly [status: number, kind: string] {
  const unknown = recording.response_body.includes('"model_not_found"')
  if (format === 'responses' && unknown) return [404, 'unknown_model']
  return EXPECTED[recording.status] ?? [0, 'unknown']
}

/** The provider's own code if it is OpenAI's, else the one of the kind. */
function codeOf(it: Case): string | null {
  const [, kind] = expectedOf(it)
  if (kind === 'upstream_denied') return null
  const body: unknown = JSON.parse(it.recording.response_body)
  const own = objectOf(objectOf(body)['error'])['code']
  if (typeof own === 'string') return own
  return { unknown_model: 'model_not_found', upstream_busy: 'rate_limit_exceeded' }[kind] ?? null
}

/** The provider's message. */
function reasonOf({ recording }: Case): string {
  const body: unknown = JSON.parse(recording.response_body)
  const error = objectOf(objectOf(Array.isArray(body) ? arrayOf(body)[0] : body)['error'])
  return stringOf(error['message']) ?? ''
}

void t.test('refusals keep their meaning', skipWithoutFixtures(), async (t) => {
  const gateway = await startGateway(t, { upstreamOptions: 'native_sharing: shared' })
  const tally = new Tally()
  t.ok(refused.length > 0)
  for (const it of refused) {
    const { label, recording } = it
    for (const stream of [false, true]) {
      gateway.emulator.replay(recording)
      const messages = [{ role: 'user', content: 'hi' }]
      const response = await gateway.chat({ model: MODEL[it.format], messages, stream })
      const error = objectOf(objectOf(await response.json())['error'])
      const [status, kind] = expectedOf(it)
      t.equal(response.status, status, label)
      t.match(response.headers.get('content-type'), 'application/json', label)
      t.equal(error['code'], codeOf(it), label)
      t.equal(error['kind'], kind, label)
      t.equal(error['type'], status >= 500 ? 'api_error' : 'invalid_request_error', label)
      const reason = reasonOf(it).slice(0, 40)
      if (kind === 'upstream_denied') {
        t.notMatch(JSON.stringify(error), reason, `${label}: our key is not the client's business`)
      } else {
        t.ok(stringOf(error['message'])?.includes(reason), `${label}: ${reason}`)
      }
    }
    tally.add(`${recording.provider} ${recording.api} ${recording.status}`)
  }
  t.comment(tally.toString())
})
