/** `login:` of the file: programs whose users sign in with the identity provider instead of having keys. */
import * as z from 'zod'
import type { KeyLimits } from '../../accounts/account.js'
import { LABEL_NAME, LABEL_VALUE, MAX_LABELS, type Labels } from '../../accounts/labels.js'
import type { JsonObject } from '../../base/json.js'
import type { Path } from '../config-problem.js'
import { amountsOf, amountsSchema } from './limits-schema.js'
import { modelText, whole } from './value-types.js'

const MAX_MODELS = 100

/** `login:` */
export const loginSchema = z
  .strictObject({
    enabled: z
      .boolean()
      .default(false)
      .describe(
        'Whether `sluice login`, Claude Code and other programs may ask for tokens: their users sign in with `dashboard.oidc`, which this needs, and approve them at `/auth/device`.',
      ),
    token_seconds: whole(1, 86_400)
      .default(3_600)
      .describe('Lifetime of an access token; programs renew it by themselves.'),
    refresh_seconds: whole(1, 31_536_000)
      .default(2_592_000)
      .describe('How long a program may renew its token without a request; then its user signs in again.'),
    models: z
      .array(modelText)
      .max(MAX_MODELS)
      .optional()
      .describe('Models that the tokens may use; `*` at the end matches any suffix. Default: all.'),
    limits: amountsSchema
      .prefault({})
      .describe(
        'Limits of each person in an account, over all tokens; those of the account apply, too. `limits` with `scope: user` counts a person over all accounts.',
      ),
    labels: z
      .record(
        z.string().regex(LABEL_NAME, { error: 'must have 1 to 32 characters (a-z, 0-9, _ . -)' }),
        z.string().regex(LABEL_VALUE, {
          error: 'must be 1 to 64 printable ASCII characters without spaces and commas',
        }),
      )
      .refine((labels) => Object.keys(labels).length <= MAX_LABELS, {
        error: `must have at most ${MAX_LABELS} entries`,
      })
      .default({})
      .describe('Labels of the requests, as those of a key.'),
    claude_code_settings: z
      .record(z.string(), z.json())
      .optional()
      .describe(
        'Settings that Claude Code gets from `/managed/settings` when its user has signed in, in the form of its `settings.json`. Default: none.',
      ),
  })
  .prefault({})
  .describe(
    'Tokens for programs of developers: a person signs in once with the identity provider, and the program gets a token of its own that is renewed and ends with the person.',
  )

type LoginValues = z.output<typeof loginSchema>

/** The resolved section of a file that enables it. */
export interface LoginConfig {
  readonly tokenSeconds: number
  readonly refreshSeconds: number
  /** Null: all. */
  readonly models: readonly string[] | null
  /** Null: none. */
  readonly limits: KeyLimits | null
  /** Sorted by name. */
  readonly labels: Labels
  /** Null: none. */
  readonly claudeCodeSettings: JsonObject | null
}

/** Reports that the section needs an identity provider. */
export function checkLogin(
  { enabled }: LoginValues,
  dashboard: { readonly enabled: boolean; readonly oidc?: unknown },
  report: (path: Path, message: string) => void,
): void {
  if (!enabled) return
  if (dashboard.oidc === undefined) {
    report(['login', 'enabled'], 'needs dashboard.oidc: people sign in with an identity provider')
  } else if (!dashboard.enabled) {
    report(['login', 'enabled'], 'needs dashboard.enabled: people approve programs on a page of it')
  }
}

/** Null if it is not enabled. */
export function loginOf(values: LoginValues): LoginConfig | null {
  if (!values.enabled) return null
  const { token_seconds: tokenSeconds, refresh_seconds: refreshSeconds, models = null } = values
  const limits = amountsOf(values.limits)
  return {
    ...{ tokenSeconds, refreshSeconds, models },
    limits: Object.keys(limits).length === 0 ? null : limits,
    labels: Object.fromEntries(Object.entries(values.labels).sort(([a], [b]) => (a < b ? -1 : 1))),
    claudeCodeSettings: values.claude_code_settings ?? null,
  }
}
