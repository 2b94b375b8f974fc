/** What the problem details of the dashboard's API have of their own. */
import { OTHER_VALUE, type ProblemWords } from '../problem-details.js'

export const DASHBOARD_WORDS: ProblemWords = {
  isAlike: true,
  titles: {
    unauthenticated: 'Not signed in',
    forbidden: 'Your role, or the page, does not allow this',
    rate_limited: 'Too many requests',
  },
  fixes: { [OTHER_VALUE]: null },
  fieldOf,
}

/** `limits.nanoUsdPerDay` of `limits.usd_per_day`, `models.0` of `models[0]`. */
function fieldOf(field: string): string {
  if (field === 'expires_at') return 'expiresAtMs'
  if (field.startsWith('labels')) return field
  return field
    .replace('usd_per_', 'nano_usd_per_')
    .replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
    .replace(/\[(\d+)\]/, '.$1')
}
