/** The route table of the admin API: every path and method with the scopes that it needs. */
import { accountRoutes } from './accounts.js'
import { applyRoutes } from './apply.js'
import { auditRoutes } from './audit.js'
import { batchRoutes } from './batches.js'
import { configurationRoutes } from './configuration.js'
import { denialRoutes } from './denials.js'
import { explainRoutes } from './explain.js'
import { keyRoutes } from './keys.js'
import { memberRoutes } from './members.js'
import type { AdminRoute } from './route.js'
import type { AdminServices } from './services.js'
import { raiseRoutes } from './raises.js'
import { runRoutes } from './runs.js'
import { tokenRoutes } from './tokens.js'
import { usageRoutes } from './usage.js'
import { userRoutes } from './users.js'

export function adminRoutes(services: AdminServices): AdminRoute[] {
  return [
    ...accountRoutes(services),
    ...memberRoutes(services),
    ...keyRoutes(services),
    ...raiseRoutes(services),
    ...userRoutes(services),
    ...tokenRoutes(services),
    ...denialRoutes(services),
    ...usageRoutes(services),
    ...runRoutes(services),
    ...batchRoutes(services),
    ...auditRoutes(services),
    ...configurationRoutes(services),
    ...explainRoutes(services),
    ...applyRoutes(services),
  ]
}
