/**
 * Why a model id goes where it goes, in words: for the command line and the dashboard.
 * Pure, and asks no upstream.
 */
import type { ModelFacts } from '../chat/model.js'
import type { Config } from '../config/config.js'
import { endpointReason, openAiEndpoint } from './endpoint.js'
import type { RouteMatch } from './router.js'

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

/** Why the router's answer for `model` is what it is. */
export function reasonOf(model: string, match: RouteMatch | null, config: Config): Reason {
  if (match === null) {
    return { place: null, why: 'no exact model and no prefix of any route fits', others: [] }
  }
  const why =
    'model' in match.route.match
      ? `the id is exactly '${match.label}'`
      : `'${match.label}' is the longest prefix that fits, and no route has the exact id`
  const others = config.routes.flatMap((route, index) => {
    if (route === match.route || !('prefix' in route.match)) return []
    const { prefix } = route.match
    return model.startsWith(prefix) ? [`routes[${index}] prefix '${prefix}'`] : []
  })
  return { place: `routes[${config.routes.indexOf(match.route)}]`, why, others }
}

/** What is spoken to the upstream about a model of which these are the facts. */
export function speaksOf({ upstream }: RouteMatch, facts: ModelFacts): Speaks {
  const { dialect } = upstream
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
