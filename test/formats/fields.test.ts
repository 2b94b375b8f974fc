/**
 * Goal: the tables of scalar fields are complete, and decoders, encoders and losses agree with their rows.
 * Method: a request with each field of each format is decoded, and encoded for each format.
 */
import t from 'tap'
import { GatewayError } from '../../src/errors.js'
import { isObject, type JsonObject, type JsonValue } from '../../src/base/json.js'
import type { ChatRequest } from '../../src/formats/chat/request.js'
import { decodeRequest, encodeRequest, type DialectName } from '../../src/formats/codecs.js'
import { fieldsOf } from '../../src/formats/index.js'
import { brokenRule } from './collect-events.js'
import { SCALAR_NAMES, type Scalars, type ScalarField } from '../../src/formats/wire/scalar-fields.js'

const DIALECTS: readonly DialectName[] = [
  'openai-chat',
  'openai-responses',
  'anthropic',
  'gemini',
  'converse',
]

/** A value of each member that is no default. */
const SAMPLES: Scalars = {
  temperature: 0.5,
  topP: 0.5,
  topK: 5,
  maxOutputTokens: 500,
  stop: ['END'],
  frequencyPenalty: 0.5,
  presencePenalty: 0.5,
  seed: 5,
  candidates: 2,
  logprobs: true,
  topLogprobs: 2,
  reasoningEffort: 'low',
  verbosity: 'low',
  userId: 'user-1',
  serviceTier: 'flex',
  parallelToolCalls: false,
}

const PLAIN: Readonly<Record<DialectName, JsonObject>> = {
  'openai-chat': { messages: [{ role: 'user', content: 'Hello.' }] },
  'openai-responses': { input: 'Hello.' },
  anthropic: { max_tokens: 100, messages: [{ role: 'user', content: 'Hello.' }] },
  gemini: { contents: [{ role: 'user', parts: [{ text: 'Hello.' }] }] },
  // Not a format of clients.
  converse: {},
}

/** The body with a value at a path such as `generationConfig.topK`. */
function bodyWith(dialect: DialectName, path: string, value: JsonValue): JsonObject {
  const [first = '', ...rest] = path.split('.')
  const nested = rest.reduceRight<JsonValue>((inner, name) => ({ [name]: inner }), value)
  const model = dialect === 'gemini' ? {} : { model: 'm' }
  return { ...PLAIN[dialect], ...model, [first]: nested }
}

function decoded(dialect: DialectName, path: string, value: JsonValue): ChatRequest {
  return decodeRequest({ dialect, body: bodyWith(dialect, path, value), model: 'm' })
}

/** The refused parameter of a call; undefined if it throws nothing. */
function refusedParam(call: () => unknown): string | undefined {
  try {
    return brokenRule(call())?.param
  } catch (error) {
    if (error instanceof GatewayError) return error.wire.param
    throw error
  }
}

/** The words of formats that have their own. */
function wireValue(dialect: DialectName, { canonical }: ScalarField): JsonValue {
  if (canonical !== 'serviceTier') return SAMPLES[canonical]
  return {
    'openai-chat': 'flex',
    'openai-responses': 'flex',
    anthropic: 'standard_only',
    gemini: 'FLEX',
    converse: 'flex',
  }[dialect]
}

for (const dialect of DIALECTS) {
  const fields = fieldsOf(dialect)

  void t.test(`${dialect} has rows for all scalar members`, (t) => {
    const named = new Set<string>(fields.map(({ canonical }) => canonical))
    t.same(
      Object.keys(SCALAR_NAMES).filter((name) => !named.has(name)),
      [],
    )
    const paths = fields.flatMap(({ wire }) => (wire === null ? [] : [wire]))
    t.equal(new Set(paths).size, paths.length, 'each path once')
    t.end()
  })

  void t.test(`${dialect}: the decoder reads each row`, (t) => {
    for (const field of fields) {
      const { wire, check, canonical } = field
      if (wire === null || check === null) continue
      const value = wireValue(dialect, field)
      const expected = check.read(value, wire)
      t.not(expected, undefined, wire)
      t.same(decoded(dialect, wire, value)[canonical], expected, wire)
      const refused = refusedParam(() => decoded(dialect, wire, { wrong: true }))
      t.equal(refused?.replace(/\[0\]$/, ''), wire, `${wire}: an object is refused`)
    }
    t.end()
  })

  void t.test(`${dialect}: the encoder loses what its table has no path for`, (t) => {
    const request = decoded('openai-chat', 'tools', [{ type: 'function', function: { name: 'f' } }])
    for (const { wire, canonical, loss, default: standard } of fields) {
      if (wire !== null) continue
      const name = SCALAR_NAMES[canonical]
      const lossesOf = (value: JsonValue): readonly string[] =>
        encodeRequest({
          from: 'openai-chat',
          to: dialect,
          request: { ...request, [canonical]: value },
        }).losses
      const value = SAMPLES[canonical]
      if (isObject(loss))
        t.equal(
          refusedParam(() => lossesOf(value)),
          name,
          `${name} is refused`,
        )
      else t.same(lossesOf(value), loss === 'reported' ? [name] : [], `${name} is ${loss}`)
      if (standard !== undefined) t.same(lossesOf(standard), [], `${name}: the default is no loss`)
    }
    t.end()
  })
}
