/** `identity:` of the file: workloads that authenticate with a token (JWT) of their own instead of a key. */
import * as z from 'zod'
import type { KeyLimits } from '../../accounts/account.js'
import { isLabel, LABEL_NAME, MAX_LABELS } from '../../accounts/labels.js'
import { claimPathOf, parseExpression } from '../../accounts/workload-identity/claim-expressions.js'
import { amountsSchema } from './limits-schema.js'
import { modelText, name, text, whole } from './value-types.js'

const MAX_IDENTITIES = 100
const MAX_MODELS = 100
const MAX_ENTRIES = 10_000

const expression = text(1_024).superRefine((value, context) => {
  const parsed = parseExpression(value)
  if ('problem' in parsed) context.addIssue({ code: 'custom', message: parsed.problem })
})

/** The account's name; `map` translates a value of a claim. */
const account = z.union(
  [
    z.strictObject({
      from: expression.describe('The text that `map` translates, as in `${claims.team}`.'),
      map: z
        .record(z.string(), text(400))
        .refine((map) => Object.keys(map).length <= MAX_ENTRIES, {
          error: `must have at most ${MAX_ENTRIES} entries`,
        })
        .describe('The account of each text; a token with any other text is refused.'),
    }),
    expression,
  ],
  { error: 'must be a text such as ${claims.team}, or a map with from and map' },
)

const required = z.union([z.array(z.string()).min(1).max(MAX_ENTRIES), z.string()], {
  error: 'must be a text or a list of texts',
})

const identity = z.strictObject({
  name: name.describe('The name in the ledger: the key of its requests is `NAME/KEY_NAME`. Unique.'),
  issuer: text(2_048).describe(
    'The `iss` of its tokens, compared as text. Without `jwks_uri` and `jwks_file`, the keys are found by discovery at this address (`/.well-known/openid-configuration`).',
  ),
  jwks_uri: text(2_048)
    .optional()
    .describe("The address of the issuer's keys (JWKS): https, or http on loopback."),
  jwks_file: text(4_096)
    .optional()
    .describe(
      "A file with the issuer's keys (JWKS), which is read again like an address. A relative path starts at this file.",
    ),
  audience: z
    .array(text(2_048))
    .min(1)
    .max(100)
    .describe('The `aud` that a token must have, or one of these.'),
  account: account.describe(
    "The account that the requests run as, by its name: a text with claims such as `${claims.kubernetes.io/namespace}` (member `namespace` of `kubernetes.io`), or `{ from, map }`, in which a table translates the text to an account. In names, `~1` is a slash and `~0` a tilde. A claim's value is text, a number or a boolean. A claim selects no account with `--` in its name, as users and tokens of accounts make them, unless it has the `label`; a table may.",
  ),
  label: z
    .string()
    .refine(isLabel, { error: 'must be NAME=VALUE, such as workloads=yes' })
    .optional()
    .describe(
      'A label of accounts, as in `workloads=yes`: a claim may select an account that has it, also one with `--` in its name. Tokens of accounts neither give nor change it.',
    ),
  key_name: expression
    .default('${claims.sub}')
    .describe(
      'The name of the key of a request, for the ledger and for limits: `NAME/KEY_NAME`, at most 200 characters. It is not a label of metrics.',
    ),
  models: z
    .array(modelText)
    .max(MAX_MODELS)
    .optional()
    .describe('Models that the tokens may use; `*` at the end matches any suffix. Default: all.'),
  labels: z
    .record(
      z.string().regex(LABEL_NAME, { error: 'must have 1 to 32 characters (a-z, 0-9, _ . -)' }),
      expression,
    )
    .refine((labels) => Object.keys(labels).length <= MAX_LABELS, {
      error: `must have at most ${MAX_LABELS} entries`,
    })
    .default({})
    .describe('Labels of the requests, as those of a key; values may contain claims.'),
  limits: amountsSchema
    .prefault({})
    .describe('Limits of each key name by itself; those of the account apply, too.'),
  require: z
    .record(
      z.string().refine((path) => claimPathOf(path) !== null, {
        error: 'must be the path of a claim, such as claims.env',
      }),
      required,
    )
    .default({})
    .describe(
      'Claims that a token must have, by path, as in `{ claims.env: prod }`: a text, or a list of which one must be equal.',
    ),
  jwks: z
    .strictObject({
      max_age_seconds: whole(1, 86_400)
        .default(300)
        .describe('How old the keys may be before they are fetched again in the background.'),
      cooldown_seconds: whole(0, 86_400)
        .default(5)
        .describe('The minimum time between two fetches for tokens with an unknown key.'),
      stale_seconds: whole(1, 2_592_000)
        .default(86_400)
        .describe('How long known keys are used while the issuer does not answer.'),
    })
    .prefault({})
    .describe("When the issuer's keys are fetched."),
})

/** `identity:` */
export const identitySchema = z
  .array(identity)
  .max(MAX_IDENTITIES)
  .default([])
  .describe(
    'Workload identities: requests may carry a JWT of one of these issuers instead of an API key. `${claims.…}` in a value is a claim of the token and not an environment variable.',
  )

/** The checked values of an entry. */
export type IdentityValues = z.output<typeof identity>

/** One workload identity, in the spelling of the file except for its limits; paths of files are absolute. */
export type WorkloadIdentity = Omit<IdentityValues, 'limits'> & { readonly limits: KeyLimits }
