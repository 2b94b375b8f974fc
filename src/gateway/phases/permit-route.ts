/** Chooses the route of a request, with the candidates that may get it. */
import type { CalledFor } from '../../policy/plugins.js'
import { withoutOperatorObjects } from '../objects/operator-objects.js'
import type { CheckedRequest } from '../served-request.js'
import { choose } from './choose-route.js'
import type { Route } from './route.js'
import { permitTools } from './permit-tools.js'

/**
 * The route with the candidates whose upstreams may get the request. Throws `GatewayError` as `choose`,
 * `withoutOperatorObjects` and `permitTools` do. `guardCall` then checks the objects that the request names.
 */
export function permittedRoute(x: CheckedRequest, calledFor?: CalledFor): Route {
  return permitTools(withoutOperatorObjects(choose(x, calledFor), x), x)
}
