/** Chooses the format in which a request is sent to an upstream. Pure. */
import type { ModelFacts } from '../../chat/model.js'
import type { ChatRequest } from '../../chat/request.js'
import type { DialectName, WireFormat } from '../../dialects/dialect.js'
import { upstreamFormat } from '../../dialects/index.js'
import type { RouteTarget } from '../../routing/router.js'
import { openAiEndpoint } from '../../upstreams/choose-openai-endpoint.js'

/** Models of OpenAI that are available only at the legacy completions endpoint. */
const COMPLETION_MODELS = /^(?:gpt-3\.5-turbo-instruct|davinci-002|babbage-002)/

/** A dialect and the wire format of one of its operations. */
export interface RequestFormat {
  readonly dialect: DialectName
  readonly wire: WireFormat
}

/** A request whose format at the upstream is chosen. */
export interface ReceivedRequest {
  readonly request: ChatRequest
  /** The format in which it arrived. */
  readonly client: RequestFormat
  /** The facts of the model that is requested from the upstream. */
  readonly facts: ModelFacts
}

/** The format for a request to a target; null if the upstream does not support the operation. */
export function formatFor(
  { upstream, model }: Pick<RouteTarget, 'upstream' | 'model'>,
  { request, client, facts }: ReceivedRequest,
): RequestFormat | null {
  const choice = upstream.dialect
  const dialect = choice === 'openai' ? openAiEndpoint(request, facts, client.dialect) : choice
  const hasCompletions = upstream.completions || COMPLETION_MODELS.test(model ?? request.model)
  const wire = upstreamFormat(client.wire, dialect, hasCompletions)
  return wire === null ? null : { dialect, wire }
}
