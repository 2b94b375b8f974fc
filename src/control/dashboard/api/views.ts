/** The views that a user has saved: pages of the dashboard with their filters, under names. */
import type { SavedView } from '../../../accounts/account.js'
import { GatewayError } from '../../../errors.js'
import { signedRoute, type Reply, type Route } from '../routing/route.js'
import * as schema from '../schema/schema.js'
import type { Services } from '../../services.js'

const MAX_VIEWS = 50

export function viewRoutes({ store }: Services): Route[] {
  return [
    signedRoute('GET', '/views', {
      credential: 'session',
      reply: schema.viewsReply,
      handle: ({ session: { user } }) => replyOf(user.views),
    }),
    signedRoute('PUT', '/views/{id}', {
      credential: 'session',
      body: schema.viewBody,
      reply: schema.viewsReply,
      handle: async ({ session, id, body: { name, url } }) => {
        const user = await store.users.change(session.user.id, ({ views = [] }) => {
          const changed = withView(views, { id, name, url })
          return changed.length > MAX_VIEWS ? null : { views: changed }
        })
        if (user === null) throw tooMany()
        return replyOf(user.views)
      },
    }),
    signedRoute('DELETE', '/views/{id}', {
      credential: 'session',
      reply: schema.viewsReply,
      handle: async ({ session, id }) => {
        const user = await store.users.change(session.user.id, ({ views = [] }) => {
          return { views: views.filter((view) => view.id !== id) }
        })
        return replyOf(user?.views)
      },
    }),
  ]
}

/** A view of the same id keeps its place. */
function withView(views: readonly SavedView[], view: SavedView): SavedView[] {
  const isKnown = views.some(({ id }) => id === view.id)
  if (isKnown) return views.map((each) => (each.id === view.id ? view : each))
  return [...views, view]
}

function tooMany(): GatewayError {
  const message = `You have ${MAX_VIEWS} saved views, the maximum. Delete one first.`
  return new GatewayError('malformed_request', message)
}

function replyOf(views: readonly SavedView[] = []): Reply {
  const json: schema.ViewsReply = { views: [...views] }
  return { status: 200, json }
}
