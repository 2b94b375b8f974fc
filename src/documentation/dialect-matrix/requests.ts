/** Every concept that a chat client may request, in the order of `docs/reference/dialects.md`. */
import type { RequestGroup } from './concepts.js'
import { MESSAGES_GROUP } from './request-messages.js'
import { SERVICE, SETTINGS } from './request-settings.js'
import { TOOLS_GROUP } from './request-tools.js'

/** All groups. */
export const REQUEST_GROUPS: readonly RequestGroup[] = [
  ...SETTINGS,
  ...TOOLS_GROUP,
  ...MESSAGES_GROUP,
  ...SERVICE,
]
