/**
 * Edits of a client's own body for an upstream of the same format; all other bytes are forwarded unchanged. OpenAI's rules
 * apply only to models that the catalogue lists as OpenAI's.
 */
import { EFFORTS } from '../../../chat/nearest-effort.js'
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf } from '../../../chat/json.js'
import type { ModelFacts } from '../../../chat/model.js'
import type { Edit } from '../../../wire/json/splice.js'
import { largeEdit } from '../../../wire/json/write-json.js'
import type { Losses } from '../../dialect.js'
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

/** Fields of other formats that OpenAI answers with 400. */
const FOREIGN = ['reasoning', 'thinking', 'thinking_config', 'extra_body', 'extra_content']

/**
 * Sets the upstream's name of the model, requests usage at the end of a stream, and removes nulls and, for OpenAI's own
 * models, fields that the model refuses. Throws `GatewayError(untranslatable)` for a refused field that changes the
 * meaning of the request.
 */
export function edits(body: JsonObject, model: string, facts: ModelFacts, losses: Losses): Edit[] {
  const out: Edit[] = []
  const put = (key: string, value: JsonValue): void => {
    out.push({ key, json: JSON.stringify(value) })
  }
  // The format defines null as absent, and some upstreams refuse it.
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

type Drop = (key: string) => void
type Put = (key: string, value: JsonValue) => void

/**
 * `max_completion_tokens` takes precedence over `max_tokens`, as in the request that was admitted. Reasoning models refuse
 * `max_tokens`, which is renamed for them.
 */
function limitEdit(body: JsonObject, facts: ModelFacts, drop: Drop, put: Put): void {
  const limit = body['max_tokens']
  if (typeof limit !== 'number') return
  const isBoth = typeof body['max_completion_tokens'] === 'number'
  const isRefused = refusesMaxTokens(facts)
  if (facts.endpoints === undefined && !isRefused) return sameLimit(body, put)
  if (!isBoth && !isRefused) return
  drop('max_tokens')
  if (!isBoth) put('max_completion_tokens', limit)
}

/** An upstream that the catalogue does not list may read either field, so both get the limit that was admitted. */
function sameLimit(body: JsonObject, put: Put): void {
  const limit = body['max_completion_tokens']
  if (typeof limit !== 'number' || typeof body['max_tokens'] !== 'number') return
  if (body['max_tokens'] !== limit) put('max_tokens', limit)
}

/** Sets an effort that the model supports; returns it. */
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
