/** In which dialect an upstream is spoken to about a model, in words: for the command line and the dashboard. Pure. */
import type { ModelFacts } from '../chat/model.js'
import type { DialectChoice, UpstreamConfig } from '../config/config.js'
import { endpointReason, openAiEndpoint } from './choose-openai-endpoint.js'

/** The dialect that requests go out in, and why. */
export interface DialectsByRequest {
  readonly plain: Exclude<DialectChoice, 'openai'>
  readonly with_tools: Exclude<DialectChoice, 'openai'>
  readonly why: string
}

/** What is spoken to the upstream about a model of which these are the facts. */
export function dialectsByRequest(
  { dialect }: UpstreamConfig,
  facts: ModelFacts,
): DialectsByRequest {
  if (dialect !== 'openai') {
    return { plain: dialect, with_tools: dialect, why: 'the configuration says so' }
  }
  const tools = [{ name: 'any' }]
  return {
    plain: openAiEndpoint({ tools: [] }, facts),
    with_tools: openAiEndpoint({ tools }, facts),
    why: endpointReason(facts),
  }
}
