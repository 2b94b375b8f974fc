/**
 * Goal: a loop of tools with thinking on works for Gemini clients over every dialect: if the client sends
 * all parts back, without the store; if it drops thoughts and signatures, with the gateway's stored state.
 * Method: three turns through a whole gateway over emulated providers, which refuse missing or wrong state
 * like the real ones; whole and streamed, thoughts shown or hidden.
 */
import t, { type Test } from 'tap'
import { arrayOf, objectOf, stringOf, type JsonObject } from '../../../src/base/json.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { objectsOf } from '../recordings/recorded.js'

/**
 * Models whose provider needs state back: a budget, bound to its prefix, checked signatures, encrypted items.
 */
const MODELS = ['claude-haiku-4-5', 'claude-opus-5-5', 'gemini-3.5-flash', 'gpt-5.6-sol'] as const

const keeping = await startGateway(t)
const forgetful = await startGateway(t, { more: 'escrow: { enabled: false }' })

interface Asking {
  readonly gateway: TestGateway
  readonly model: string
  readonly stream: boolean
  readonly includeThoughts: boolean
  /** What the client keeps of a part. */
  readonly keep: (part: JsonObject) => JsonObject[]
}

const everything: Asking['keep'] = (part) => [part]
/** Like Vercel's client for models that are not Google's newest. */
const withoutIds: Asking['keep'] = (part) => {
  const { name = '', args = {} } = objectOf(part['functionCall'])
  return part['functionCall'] === undefined ? [part] : [{ ...part, functionCall: { name, args } }]
}
/** No thoughts and no signatures, as clients that were written before either. */
const plainOnly: Asking['keep'] = ({ thought, thoughtSignature, ...part }) => {
  const isEmpty = part['text'] === ''
  return thought === true || (isEmpty && thoughtSignature !== undefined) ? [] : [part]
}

async function next(
  { gateway, model, stream, includeThoughts, keep }: Asking,
  contents: readonly JsonObject[],
): Promise<{ content: JsonObject; lost: string | null }> {
  const action = stream ? 'streamGenerateContent?alt=sse' : 'generateContent'
  const response = await fetch(`${gateway.origin}/v1beta/models/${model}:${action}`, {
    method: 'POST',
    headers: { 'x-goog-api-key': gateway.secret, 'content-type': 'application/json' },
    body: JSON.stringify({
      contents,
      systemInstruction: 'Be brief.',
      tools: [{ functionDeclarations: [{ name: 'get_weather', parameters: PARAMETERS }] }],
      generationConfig: { thinkingConfig: { thinkingLevel: 'HIGH', includeThoughts } },
    }),
  })
  const text = await response.text()
  if (response.status !== 200) throw new Error(text)
  const parts = objectsOf(text)
    .flatMap(({ candidates }) => arrayOf(objectOf(objectOf(arrayOf(candidates)[0])['content'])['parts']))
    .map(objectOf)
  const hasThoughts = parts.some(({ thought, text }) => thought === true && text !== '')
  if (!includeThoughts && hasThoughts) throw new Error('thoughts that were not requested')
  return {
    content: { role: 'model', parts: parts.flatMap(keep) },
    lost: response.headers.get('x-sluice-lost'),
  }
}

const PARAMETERS = { type: 'OBJECT', properties: { city: { type: 'STRING' } }, required: ['city'] }

function results({ parts }: JsonObject): JsonObject {
  const calls = arrayOf(parts).flatMap((part) => {
    const { functionCall } = objectOf(part)
    return functionCall === undefined ? [] : [objectOf(functionCall)]
  })
  return {
    role: 'user',
    parts: calls.map(({ id, name = '' }) => {
      const named = id === undefined ? { name } : { id, name }
      return { functionResponse: { ...named, response: { output: 'sunny' } } }
    }),
  }
}

function textOf({ parts }: JsonObject): string {
  return arrayOf(parts)
    .map((part) => stringOf(objectOf(part)['text']) ?? '')
    .join('')
}

const STATE =
  /"signature":"[\w+/=]{40,}"|"thoughtSignature":"[\w+/=]{40,}"|"encrypted_content":"[\w+/=]{40,}"/g

function statesIn({ emulator }: TestGateway): readonly string[] {
  return JSON.stringify(emulator.ledger.at(-1)?.body).match(STATE) ?? []
}

/** A call, a reply to its result, and another question. */
async function converse(t: Test, asking: Asking): Promise<void> {
  const contents: JsonObject[] = [{ role: 'user', parts: [{ text: 'Use get_weather for Rome' }] }]
  const first = await next(asking, contents)
  contents.push(first.content, results(first.content))
  t.equal(arrayOf(contents[2]?.['parts']).length, 1, 'a call')
  const second = await next(asking, contents)
  t.match(textOf(second.content), /sunny/)
  const states = statesIn(asking.gateway)
  t.equal(states.length, 1, 'the provider got its state back')
  contents.push(second.content, { role: 'user', parts: [{ text: 'And tomorrow?' }] })
  const third = await next(asking, contents)
  t.match(textOf(third.content), /And tomorrow\?/)
  const all = statesIn(asking.gateway)
  t.equal(all.length, 2, 'that of both turns')
  t.equal(all[0], states[0], 'the same as before')
  t.equal(third.lost?.includes('thoughtSignature') ?? false, false, 'nothing of it is lost')
}

for (const model of MODELS) {
  for (const stream of [false, true]) {
    const form = stream ? 'streamed' : 'whole'
    for (const includeThoughts of [true, false]) {
      const shown = includeThoughts ? 'thoughts shown' : 'thoughts hidden'
      // Google omits the thoughts and sends its signatures on the parts that follow.
      if (model.startsWith('gemini') && !includeThoughts) continue
      void t.test(`${model}, ${form}, ${shown}: a client that keeps all`, async (t) => {
        const asking = { model, stream, includeThoughts }
        await converse(t, { ...asking, gateway: forgetful, keep: everything })
        if (!model.startsWith('gemini')) {
          await converse(t, { ...asking, gateway: forgetful, keep: withoutIds })
        }
      })
    }
    if (model.startsWith('gemini')) continue
    void t.test(`${model}, ${form}: a client that drops thoughts and signatures`, async (t) => {
      const asking = { model, stream, includeThoughts: true }
      await converse(t, { ...asking, gateway: keeping, keep: plainOnly })
    })
  }
}
