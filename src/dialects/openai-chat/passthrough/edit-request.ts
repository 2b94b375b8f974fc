/**
 * Edits of a client's own body for an upstream of the same format; all other bytes are forwarded unchanged.
 * OpenAI's rules apply only to models that the catalogue lists as OpenAI's.
 */
import { EFFORTS } from '../../../chat/nearest-effort.js'
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf } from '../../../chat/json.js'
import type { ModelFacts } from '../../../chat/model.js'
import type { Edit } from '../../../wire/json/splice.js'
import { largeEdit } from '../../../wire/json/write-json.js'
import type { EncodeContext } from '../../dialect.js'
import {
  effortFor,
  isDefault,
  refusesMaxTokens,
  SAMPLING,
  accepts,
  acceptsStop,
} from '../shared/model-rules.js'
import { withheldEdits } from '../../../wire/withheld-fields.js'
import { hasReasoning, forwardedMessages, forwardedTools } from './edit-messages.js'

/** Fields of other formats that OpenAI refuses with 400. */
const FOREIGN = ['reasoning', 'thinking', 'thinking_config', 'extra_body', 'extra_content']

/**
 * Sets the upstream's name of the model, requests usage at the end of a stream, and removes nulls and, for
 * OpenAI's own models, fields that the model refuses. Throws `GatewayError(untranslatable)` for a refused
 * field that changes the meaning of the request.
 */
export function edits(body: JsonObject, modelName: string, context: EncodeContext): Edit[] {
  const { model: facts, losses } = context
  const out: Edit[] = []
  const put = (key: string, value: JsonValue): void => {
    out.push({ key, json: JSON.stringify(value) })
  }
  // The format defines null as absent, and some upstreams refuse it.
  for (const key in body) if (body[key] === null) out.push({ key, json: null })
  out.push(...withheldEdits(body, (path) => losses.drop(path, 'no-equivalent')))
  if (body['model'] !== modelName) put('model', modelName)
  const options = body['stream_options']
  if (body['stream'] === true && objectOf(options)['include_usage'] !== true) {
    put('stream_options', { ...objectOf(options), include_usage: true })
  }
  if (body['cache_control'] !== undefined) out.push({ key: 'cache_control', json: null })
  const drop = (key: string): void => void out.push({ key, json: null })
  const own = { body, drop, put }
  if (facts.family !== 'openai') {
    sameLimit(own)
    return out
  }
  limitEdit(own, facts)
  if (facts.endpoints === undefined) return out
  dropRefused(own, effortEdit(own, context), context)
  if (!acceptsStop(body['stop'], facts) && body['stop'] !== undefined) drop('stop')
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

/** A client's body whose top-level members are removed or set. */
interface EditedBody {
  readonly body: JsonObject
  readonly drop: (key: string) => void
  readonly put: (key: string, value: JsonValue) => void
}

/**
 * `max_completion_tokens` takes precedence over `max_tokens`, as in the request that was admitted. Reasoning
 * models refuse `max_tokens`, which is renamed for them.
 */
function limitEdit(own: EditedBody, facts: ModelFacts): void {
  const { body, drop, put } = own
  const limit = body['max_tokens']
  if (typeof limit !== 'number') return
  const isBoth = typeof body['max_completion_tokens'] === 'number'
  const isRefused = refusesMaxTokens(facts)
  if (facts.endpoints === undefined && !isRefused) return sameLimit(own)
  if (!isBoth && !isRefused) return
  drop('max_tokens')
  if (!isBoth) put('max_completion_tokens', limit)
}

/**
 * An upstream that the catalogue does not list may read either field, so both get the limit that was
 * admitted.
 */
function sameLimit({ body, put }: EditedBody): void {
  const limit = body['max_completion_tokens']
  if (typeof limit !== 'number' || typeof body['max_tokens'] !== 'number') return
  if (body['max_tokens'] !== limit) put('max_tokens', limit)
}

/** Sets an effort that the model supports; returns it. */
function effortEdit(
  { body, drop, put }: EditedBody,
  { model: facts, losses }: EncodeContext,
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
  { body, drop }: EditedBody,
  effort: string | undefined,
  { model: facts, losses }: EncodeContext,
): void {
  for (const field of SAMPLING) {
    const value = body[field] ?? undefined
    if (value === undefined || accepts(field, facts, effort)) continue
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

/** Whether the field is a reasoning object with an effort only, which the flat field expresses. */
function isEffortAlone(field: string, value: JsonValue): boolean {
  return field === 'reasoning' && isObject(value) && Object.keys(value).join() === 'effort'
}
