/** The route table of the dashboard's API: every path, its method and its access policy. */
import { accountPageRoutes } from '../api/account-pages.js'
import { accountRoutes } from '../api/accounts.js'
import { auditRoutes } from '../api/audit.js'
import { batchRoutes } from '../api/batches.js'
import { budgetRoutes } from '../api/budgets.js'
import { checklistRoutes } from '../api/checklist.js'
import { operationRoutes } from '../api/operations.js'
import { searchRoutes } from '../api/search.js'
import { viewRoutes } from '../api/views.js'
import { configurationRoutes } from '../api/configuration.js'
import { deviceRoutes } from '../api/device.js'
import { ownUsageRoutes } from '../api/own-usage.js'
import { incidentRoutes } from '../api/incidents.js'
import { keyRoutes } from '../api/keys.js'
import { limitRoutes } from '../api/limits.js'
import { memberRoutes } from '../api/members.js'
import { modelRoutes } from '../api/models.js'
import { oidcRoutes } from '../api/oidc.js'
import { passwordRoutes } from '../api/passwords.js'
import { providerRoutes } from '../api/providers.js'
import { recordingRoutes } from '../api/recordings.js'
import { sessionRoutes } from '../api/sign-in.js'
import { statementRoutes } from '../api/statements.js'
import { requestRoutes } from '../api/requests.js'
import { runRoutes } from '../api/runs.js'
import { usageRoutes } from '../api/usage.js'
import { userRoutes } from '../api/users.js'
import type { Route } from './route.js'
import type { Services } from '../../services.js'

export function dashboardRoutes(services: Services): Route[] {
  return [
    ...sessionRoutes(services),
    ...passwordRoutes(services),
    ...oidcRoutes(services),
    ...deviceRoutes(services),
    ...ownUsageRoutes(services),
    ...keyRoutes(services),
    ...memberRoutes(services),
    ...limitRoutes(services),
    ...usageRoutes(services),
    ...requestRoutes(services),
    ...runRoutes(services),
    ...batchRoutes(services),
    ...statementRoutes(services),
    ...recordingRoutes(services),
    ...modelRoutes(services),
    ...operationRoutes(services),
    ...incidentRoutes(services),
    ...providerRoutes(services),
    ...configurationRoutes(services),
    ...accountRoutes(services),
    ...accountPageRoutes(services),
    ...auditRoutes(services),
    ...budgetRoutes(services),
    ...checklistRoutes(services),
    ...searchRoutes(services),
    ...viewRoutes(services),
    ...userRoutes(services),
  ]
}
