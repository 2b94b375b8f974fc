/**
 * The members that a target's `defaults` add to a client's own bytes: those in which the encoded request with
 * the defaults differs from the one without them. Pure.
 */
import { isObject, type JsonObject, type JsonValue } from '../../base/json.js'
import type { ModelFacts } from '../../formats/chat/model-facts.js'
import { withDefaults, type ChatRequest, type RequestDefaults } from '../../formats/chat/request.js'
import type { UpstreamCodec } from '../../formats/dialect.js'
import { LossList } from '../../formats/losses.js'
import type { Edit } from '../../formats/wire/json/splice.js'
import type { Call } from '../phases/call.js'

/** The upstream, its model, and the defaults of the target. */
interface DefaultsFor {
  readonly upstreamCodec: Pick<UpstreamCodec, 'encodeRequest'>
  readonly model: string
  readonly facts: ModelFacts
  readonly defaults?: RequestDefaults | null
}

/** The edits for the members that the client left out; empty without defaults. */
export function defaultEdits(
  { body, request }: Pick<Call, 'body' | 'request'>,
  { upstreamCodec, model, facts, defaults = null }: DefaultsFor,
): Edit[] {
  const whole = withDefaults(request, defaults)
  if (whole === request) return []
  const encode = (each: ChatRequest): JsonObject => {
    // The conversation is the same in both.
    const short = { ...each, model, messages: [USER], rest: {}, native: [] }
    return upstreamCodec.encodeRequest(short, facts, new LossList())
  }
  const before = encode(request)
  return Object.entries(encode(whole)).flatMap(([key, value]): Edit[] => {
    const added = addedTo(before[key], value)
    if (added === undefined) return []
    return [{ key, json: JSON.stringify(merged(body[key], added)) }]
  })
}

const USER: ChatRequest['messages'][number] = {
  role: 'user',
  index: 0,
  parts: [{ type: 'text', text: 'Hi' }],
}

/** What the value has and the one before has not; undefined: nothing. */
function addedTo(before: JsonValue | undefined, value: JsonValue | undefined): JsonValue | undefined {
  if (JSON.stringify(before) === JSON.stringify(value)) return undefined
  if (!isObject(value) || !isObject(before)) return value
  const added = Object.entries(value).flatMap(([key, each]) => {
    const difference = addedTo(before[key], each)
    return difference === undefined ? [] : [[key, difference] as const]
  })
  return Object.fromEntries(added)
}

/** The client's value with the added members. */
function merged(own: JsonValue | undefined, added: JsonValue): JsonValue {
  if (!isObject(own) || !isObject(added)) return added
  const whole = { ...own }
  for (const [key, value = null] of Object.entries(added)) whole[key] = merged(own[key], value)
  return whole
}
