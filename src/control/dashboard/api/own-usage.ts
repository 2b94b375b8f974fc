/** What the programs of the user used in an account, and what is left. */
import { signedRoute, type Route } from '../routing/route.js'
import * as schema from '../schema/schema.js'
import type { Services } from '../../services.js'

export function ownUsageRoutes(services: Services): Route[] {
  return [
    signedRoute('GET', '/own-usage', {
      credential: 'usage',
      reply: schema.ownUsageReply,
      handle: async ({ session: { user, account, isAll } }) => {
        const { config } = services.snapshot()
        if (config.login === null || isAll) return { status: 200, json: { usage: null } }
        const [{ programIdentity }, { ownUsage }] = await Promise.all([
          import('../../../accounts/logins/logins.js'),
          import('../own-usage.js'),
        ])
        const identity = await programIdentity(services.store, user, account.id, config.login)
        const usage = identity === null ? null : await ownUsage(services, identity)
        const json: schema.Sent<typeof schema.ownUsageReply> = { usage }
        return { status: 200, json }
      },
    }),
  ]
}
