/**
 * What must change in a client's own body before it passes to an upstream of the same format.
 * Everything else passes as the bytes that it is. Only what the catalogue knows to be a model of
 * OpenAI's own is held to OpenAI's rules: others of the format take what their makers please.
 */
import { EFFORTS } from '../../../chat/effort.js'
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf } from '../../../chat/json.js'
import type { ModelFacts } from '../../../chat/model.js'
import type { Edit } from '../../../wire/json/splice.js'
import { largeEdit } from '../../../wire/json/write-json.js'
import type { Losses } from '../../dialect.js'
import { effortFor, isDefault, SAMPLING, takes, takesStop } from '../shared/model-rules.js'
import { withheldEdits } from '../../../wire/withheld-fields.js'
import { hasReasoning, forwardedMessages, forwardedTools } from './edit-messages.js'

/** Fields of other formats that OpenAI answers 400 to. */
const FOREIGN = ['reasoning', 'thinking', 'thinking_config', 'extra_body', 'extra_content']

/**
 * The model's name for this upstream, usage at the end of a stream, nothing that is null, and for a
 * model of OpenAI's own no field that it refuses. Throws `GatewayError(untranslatable)` for what it
 * refuses and must not be dropped.
 */
export function edits(body: JsonObject, model: string, facts: ModelFacts, losses: Losses): Edit[] {
  const out: Edit[] = []
  const put = (key: string, value: JsonValue): void => {
    out.push({ key, json: JSON.stringify(value) })
  }
  // Absent by the format's own rules; some upstreams of the format take that less well.
  for (const key in body) if (body[key] === null) out.push({ key, json: null })
  out.push(...withheldEdits(body, (path) => losses.drop(path, 'no-equivalent')))
  if (body['model'] !== model) put('model', model)
  const options = body['stream_options']
  if (body['stream'] === true && objectOf(options)['include_usage'] !== true) {
    put('stream_options', { ...objectOf(options), include_usage: true })
  }
  if (body['cache_control'] !== undefined) out.push({ key: 'cache_control', json: null })
  const drop = (key: string): void => void out.push({ key, json: null })
  if (facts.family !== 'openai') {
    sameLimit(body, put)
    return out
  }
  limitEdit(body, facts, drop, put)
  if (facts.endpoints === undefined) return out
  dropRefused(body, facts, effortEdit(body, facts, losses, drop, put), drop, losses)
  if (!takesStop(body['stop'], facts) && body['stop'] !== undefined) drop('stop')
  const marks = facts.promptCacheBreakpoints === true
  if (!marks && (body['prompt_cache_options'] ?? null) !== null) drop('prompt_cache_options')
  const messages = forwardedMessages(body['messages'], marks)
  if (messages !== null) {
    out.push(largeEdit('messages', messages))
    if (hasReasoning(body['messages'])) losses.drop('messages.reasoning', 'no-equivalent')
  }
  const tools = forwardedTools(body['tools'])
  if (tools !== null) put('tools', tools)
  return out
}

type Drop = (key: string) => void
type Put = (key: string, value: JsonValue) => void

/**
 * `max_completion_tokens` wins over `max_tokens`, as in the request that was admitted. Reasoning models
 * refuse `max_tokens`; its successor means the same to them.
 */
function limitEdit(body: JsonObject, facts: ModelFacts, drop: Drop, put: Put): void {
  const limit = body['max_tokens']
  if (typeof limit !== 'number') return
  const isBoth = typeof body['max_completion_tokens'] === 'number'
  if (facts.endpoints === undefined && facts.reasoning !== true) return sameLimit(body, put)
  if (!isBoth && facts.reasoning !== true) return
  drop('max_tokens')
  if (!isBoth) put('max_completion_tokens', limit)
}

/** Upstreams of which nothing is known may read either field, so both carry the limit that was admitted. */
function sameLimit(body: JsonObject, put: Put): void {
  const limit = body['max_completion_tokens']
  if (typeof limit !== 'number' || typeof body['max_tokens'] !== 'number') return
  if (body['max_tokens'] !== limit) put('max_tokens', limit)
}

/** Makes the effort one that the model has; returns it. */
function effortEdit(
  body: JsonObject,
  facts: ModelFacts,
  losses: Losses,
  drop: Drop,
  put: Put,
): string | undefined {
  const flat = body['reasoning_effort'] ?? undefined
  const nested = objectOf(body['reasoning'])['effort']
  const given = EFFORTS.find((one) => one === (flat ?? nested))
  const tools = [body['tools'], body['functions']].some((list) => arrayOf(list).length > 0)
  const effort = effortFor({ effort: given, tools }, facts, losses)
  if (effort === undefined) {
    if (flat !== undefined) drop('reasoning_effort')
  } else if (effort !== flat) put('reasoning_effort', effort)
  return effort
}

function dropRefused(
  body: JsonObject,
  facts: ModelFacts,
  effort: string | undefined,
  drop: Drop,
  losses: Losses,
): void {
  for (const field of SAMPLING) {
    const value = body[field] ?? undefined
    if (value === undefined || takes(field, facts, effort)) continue
    drop(field)
    if (!isDefault(field, value)) losses.drop(field, 'no-equivalent')
  }
  for (const field of FOREIGN) {
    const value = body[field] ?? undefined
    if (value === undefined) continue
    drop(field)
    if (!isEffortAlone(field, value)) losses.drop(field, 'no-equivalent')
  }
  const retention = body['prompt_cache_retention'] ?? undefined
  if (facts.promptCacheRetention === false && retention !== undefined) {
    drop('prompt_cache_retention')
  }
}

/** A reasoning object that says no more than the flat field does. */
function isEffortAlone(field: string, value: JsonValue): boolean {
  return field === 'reasoning' && isObject(value) && Object.keys(value).join() === 'effort'
}
