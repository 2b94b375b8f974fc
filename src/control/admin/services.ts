/**
 * What the handlers of the admin API depend on, and functions that several of them share.
 */
import type { Actor } from '../../accounts/changes/decide.js'
import { invalid } from '../../accounts/changes/refusal.js'
import { numberType, textType } from '../../accounts/changes/field-types.js'
import type { HttpRequest } from '../../http/message.js'
import type { Services } from '../services.js'
import { placeIn } from '../cursor.js'
import type { LinkParts } from '../sign-in/links.js'
import type { AdminRequest, Parameters } from './route.js'

/** The dependencies of the handlers. */
export interface AdminServices
  extends LinkParts, Pick<Services, 'log' | 'version' | 'configControl' | 'explain'> {
  /** The client's address. */
  readonly addressOf: (req: HttpRequest) => string
}

export function actorOf({ token, address, requestId }: AdminRequest): Actor {
  return { actor: `token:${token.name}`, actorId: token.id, address, requestId }
}

/** A flag of a query. */
export const TRUE_OR_FALSE = textType((text) => text === 'true' || text === 'false', {
  fix: 'Send true or false.',
})

/** The parameters of a list. */
export const PAGE_PARAMETERS: Parameters = {
  cursor: {
    type: textType((text) => text !== '' && text.length <= 400, {
      fix: 'Send the `next_cursor` of the page before.',
    }),
    means: 'The `next_cursor` of the page before.',
  },
  limit: { type: numberType(1, 500), means: '1 to 500, default 100.', isNumber: true },
}

/** The requested page. `after`: the place that the cursor of the page before marks. */
export function pageOf({ query }: AdminRequest): { after: string | null; limit: number } {
  const { cursor, limit } = query
  return {
    after: typeof cursor === 'string' ? readCursor(cursor) : null,
    limit: typeof limit === 'number' ? limit : 100,
  }
}

function readCursor(cursor: string): string {
  const place = placeIn(cursor)
  if (place !== null) return place
  throw invalid('cursor', 'This is no cursor.', 'Send the `next_cursor` of the page before.')
}
