/**
 * Why a model id goes where it goes, in words: for the command line and the dashboard.
 * Pure, and asks no upstream.
 */
import type { ModelFacts } from '../chat/model.js'
import type { Config, UpstreamConfig } from '../config/config.js'
import type { ModelRoute } from '../routing/router.js'
import { endpointReason, openAiEndpoint } from './endpoint.js'

/** Why a route takes an id. */
export interface Reason {
  /** Where the route stands in the configuration; null where none takes the id. */
  readonly place: string | null
  readonly why: string
  /** Routes that would take it too, but lose. */
  readonly others: readonly string[]
}

/** The dialect that requests go out in, and why. */
export interface Speaks {
  readonly plain: string
  readonly with_tools: string
  readonly why: string
}

/** Why the route of `model` is this one. */
export function reasonOf(model: string, found: ModelRoute | null, config: Config): Reason {
  if (found === null) {
    return { place: null, why: 'no exact model and no prefix of any route fits', others: [] }
  }
  const why =
    'model' in found.config.match
      ? `the id is exactly '${found.label}'`
      : `'${found.label}' is the longest prefix that fits, and no route has the exact id`
  const others = config.routes.flatMap((route, index) => {
    if (route === found.config || !('prefix' in route.match)) return []
    const { prefix } = route.match
    return model.startsWith(prefix) ? [`routes[${index}] prefix '${prefix}'`] : []
  })
  return { place: `routes[${found.index}]`, why, others }
}

/** What is spoken to the upstream about a model of which these are the facts. */
export function speaksOf({ dialect }: UpstreamConfig, facts: ModelFacts): Speaks {
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
