/** The first steps with a gateway or an account, each ticked by what the store has. */
import * as z from 'zod'
import { scope } from './shared-types.js'

const step = z.strictObject({
  id: z.enum(['provider', 'account', 'key', 'request', 'budget', 'colleague']),
  done: z.boolean(),
  /** What ticked it, such as the name of a key; null: nothing to name. */
  text: z.string().nullable(),
})

/** `GET /checklist`. */
export const checklistQuery = z.strictObject({ account: scope.optional() })

/** Administrators have all six steps; owners the key, the request and the colleague; others the first two. */
export const checklistReply = z.strictObject({
  steps: z.array(step),
  /** A model of a provider with a credential, for a test call; null without one. */
  test: z.strictObject({ model: z.string(), upstream: z.string() }).nullable(),
})

export type ChecklistReply = z.output<typeof checklistReply>
export type ChecklistStep = z.output<typeof step>
