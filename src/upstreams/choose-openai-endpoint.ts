/**
 * Which of OpenAI's two endpoints a request goes to where the configuration leaves it open
 * (`dialect: openai`). Pure: the same request and facts give the same answer. Why there are two at all
 * is told in docs/decisions/0016.
 */
import type { ModelFacts } from '../chat/model.js'
import type { ChatRequest } from '../chat/request.js'
import type { DialectChoice } from '../config/config.js'

/** The dialect of one of OpenAI's endpoints. */
export type OpenAiEndpoint = Extract<DialectChoice, 'openai-chat' | 'openai-responses'>

/** What of a request decides. */
export type Deciding = Pick<ChatRequest, 'tools' | 'reasoningEffort'>

/**
 * The endpoint of the client's own format (`spoken`) if the model answers there, since the client's own bytes can pass.
 * For clients of other formats: chat completions; Responses if the model has no other endpoint, or would refuse the
 * request's tools because it reasons.
 */
export function openAiEndpoint(
  request: Deciding,
  model: ModelFacts,
  spoken: string = 'openai-chat',
): OpenAiEndpoint {
  const { endpoints } = model
  if (spoken === 'openai-responses' && endpoints?.includes('responses') !== false) return spoken
  if (endpoints?.includes('responses') !== true) return 'openai-chat'
  if (!endpoints.includes('chat')) return 'openai-responses'
  if (request.tools.length === 0 || model.chatToolsWithReasoning !== false) return 'openai-chat'
  return isReasoningOff(request, model) ? 'openai-chat' : 'openai-responses'
}

/** What decides for a model, in words. */
export function endpointReason(model: ModelFacts): string {
  const { endpoints } = model
  if (endpoints?.includes('responses') !== true) {
    return endpoints === undefined ? 'its endpoints are not known' : 'it has no other endpoint'
  }
  if (!endpoints.includes('chat')) return 'the model has no chat endpoint'
  if (model.chatToolsWithReasoning !== false) return 'the model takes everything there'
  const off = model.reasoningEfforts?.includes('none') === true
  return `chat completions refuses the model tools while it reasons${off ? '; with reasoning_effort none they go there too' : ''}`
}

/** A model that cannot turn reasoning off reasons whatever the request says. */
function isReasoningOff(request: Deciding, model: ModelFacts): boolean {
  return request.reasoningEffort === 'none' && model.reasoningEfforts?.includes('none') !== false
}
