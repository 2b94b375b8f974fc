/**
 * Chooses between OpenAI's two endpoints for a request if the configuration does not (`dialect: openai`).
 * Pure. The reasons for both are in decision 0016.
 */
import type { DialectChoice, UpstreamConfig } from '../../config/config.js'
import type { ModelFacts } from '../../formats/chat/model-facts.js'
import type { ChatRequest } from '../../formats/chat/request.js'

/** The dialect of one of OpenAI's endpoints. */
type OpenAiEndpoint = Extract<DialectChoice, 'openai-chat' | 'openai-responses'>

/** The members of a request that the choice depends on. */
type Deciding = Pick<ChatRequest, 'tools' | 'reasoningEffort'>

/**
 * The endpoint of the client's own format (`client`) if the model supports it, so that the client's bytes
 * pass unchanged. For other formats: chat completions, or Responses if the model has no other endpoint or
 * refuses tools in chat completions while it reasons.
 */
export function openAiEndpoint(
  request: Deciding,
  model: ModelFacts,
  client: string = 'openai-chat',
): OpenAiEndpoint {
  const { endpoints } = model
  if (client === 'openai-responses' && endpoints?.includes('responses') !== false) return client
  if (endpoints?.includes('responses') !== true) return 'openai-chat'
  if (!endpoints.includes('chat')) return 'openai-responses'
  if (request.tools.length === 0 || model.chatToolsWithReasoning !== false) return 'openai-chat'
  return isReasoningOff(request, model) ? 'openai-chat' : 'openai-responses'
}

/** The reason for the endpoint of a model, as text. */
export function endpointReason(model: ModelFacts): string {
  const { endpoints } = model
  if (endpoints?.includes('responses') !== true) {
    return endpoints === undefined ? 'its endpoints are not known' : 'it has no other endpoint'
  }
  if (!endpoints.includes('chat')) return 'the model has no chat endpoint'
  if (model.chatToolsWithReasoning !== false) return 'the model supports all features in chat completions'
  const off = model.reasoningEfforts?.includes('none') === true
  return `chat completions refuses tools for this model while it reasons${off ? ', but not with reasoning_effort none' : ''}`
}

/** Whether the request turns reasoning off and the model supports that. */
function isReasoningOff(request: Deciding, model: ModelFacts): boolean {
  return request.reasoningEffort === 'none' && model.reasoningEfforts?.includes('none') !== false
}

/** The dialects of requests without and with tools, and the reason. */
export interface DialectsByRequest {
  readonly plain: Exclude<DialectChoice, 'openai'>
  readonly with_tools: Exclude<DialectChoice, 'openai'>
  readonly why: string
}

/**
 * The dialects in which an upstream receives requests for a model with these facts, for the command line and
 * the dashboard. Pure.
 */
export function dialectsByRequest({ dialect }: UpstreamConfig, facts: ModelFacts): DialectsByRequest {
  if (dialect !== 'openai') {
    return { plain: dialect, with_tools: dialect, why: 'set in the configuration' }
  }
  const tools = [{ name: 'any' }]
  return {
    plain: openAiEndpoint({ tools: [] }, facts),
    with_tools: openAiEndpoint({ tools }, facts),
    why: endpointReason(facts),
  }
}
