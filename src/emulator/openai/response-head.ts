/** Ids and the constant members of a response. */
import { datedModel } from './chat-completions.js'
import type { ParsedRequest } from '../emulated-exchange.js'
import type { JsonObject } from '../../chat/json.js'
import type { RandomSource } from '../seeded-random.js'
import type { ResponsesRequest } from './decode-responses-request.js'

/** An id in the form of the Responses endpoint. */
export function idOf(prefix: string, random: RandomSource): string {
  let hex = ''
  while (hex.length < 50) {
    hex += random().toString(16).padStart(8, '0')
  }
  return `${prefix}_${hex.slice(0, 50)}`
}

/** The members of a response before its output. */
export function headOf(
  request: ParsedRequest,
  { modelInput, body }: ResponsesRequest,
  random: RandomSource,
): JsonObject {
  return {
    id: idOf('resp', random),
    object: 'response',
    created_at: request.now,
    status: 'in_progress',
    background: false,
    error: null,
    incomplete_details: null,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    max_tool_calls: null,
    model: datedModel(modelInput.model),
    output: [],
    parallel_tool_calls: modelInput.parallel,
    previous_response_id: null,
    prompt_cache_key: null,
    reasoning: { effort: null, summary: null },
    safety_identifier: null,
    service_tier: 'default',
    store: body.store ?? true,
    temperature: body.temperature ?? 1,
    text: body.text ?? { format: { type: 'text' }, verbosity: 'medium' },
    tool_choice: body.tool_choice ?? 'auto',
    tools: body.tools ?? [],
    top_logprobs: body.top_logprobs ?? 0,
    top_p: body.top_p ?? 1,
    truncation: 'disabled',
    usage: null,
    user: null,
    metadata: body.metadata ?? {},
  }
}
