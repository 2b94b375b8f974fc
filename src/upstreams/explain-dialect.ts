/**
 * Explains the dialect in which an upstream receives requests for a model, for the command line and the
 * dashboard. Pure.
 */
import type { ModelFacts } from '../chat/model.js'
import type { DialectChoice, UpstreamConfig } from '../config/config.js'
import { endpointReason, openAiEndpoint } from './choose-openai-endpoint.js'

/** The dialects of requests without and with tools, and the reason. */
export interface DialectsByRequest {
  readonly plain: Exclude<DialectChoice, 'openai'>
  readonly with_tools: Exclude<DialectChoice, 'openai'>
  readonly why: string
}

/** The dialects for a model with these facts. */
export function dialectsByRequest(
  { dialect }: UpstreamConfig,
  facts: ModelFacts,
): DialectsByRequest {
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
