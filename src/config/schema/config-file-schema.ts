/**
 * The keys of the configuration file: types, limits, defaults, units and descriptions. The JSON Schema for
 * editors and `docs/reference/configuration.md` are generated from this schema.
 */
import * as z from 'zod'
import { archiveSchema } from './archive-schema.js'
import { cacheSchema } from './cache-schema.js'
import { dashboardSchema } from './dashboard-schema.js'
import { dimensionsSchema } from './dimensions-schema.js'
import {
  adminApiSchema,
  authSchema,
  escrowSchema,
  fetchMediaSchema,
  logSchema,
  onLossSchema,
  responsesSchema,
} from './small-sections-schema.js'
import { batchesSchema, filesSchema } from './files-and-batches-schema.js'
import { identitySchema } from './identity-schema.js'
import { loginSchema } from './login-schema.js'
import { name, text, whole } from './value-types.js'
import { limitingSchema, limitSchema, planLimitsSchema } from './limits-schema.js'
import { afterDisconnectSchema, ledgerSchema, onDisconnectSchema } from './ledger-schema.js'
import { guardrailsSchema, pluginsSchema } from './guardrails-schema.js'
import { recordSchema } from './record-schema.js'
import { routeSchema } from './route-schema.js'
import { serverSchema } from './server-schema.js'
import { metricsSchema, notifySchema, smtpSchema, telemetrySchema } from './telemetry-and-notify-schema.js'
import { upstreamSchema } from './upstream-schema.js'

const plan = z.strictObject({
  price_usd: z
    .number()
    .min(0)
    .max(1_000_000)
    .optional()
    .describe('US dollars per month. Default: 20 for `starter`, 50 for `pro`, 100 for `max`, else 0.'),
  max_keys: z
    .union([z.literal('unlimited'), whole(0, 1_000_000)], {
      error: 'must be unlimited or a whole number from 0 to 1,000,000',
    })
    .optional()
    .describe(
      'Maximum keys of an account: a number, or `unlimited`. Default: 5 for `starter`, 20 for `pro`, else `unlimited`.',
    ),
  limits: planLimitsSchema,
})

/** A page lists them all. */
const MAX_PLANS = 1_000

/** The whole file. `resolve-config.ts` turns its values into a `Config`. */
export const fileSchema = z.strictObject({
  server: serverSchema.prefault({}).describe('Listeners and processes.'),
  store: text(4_096)
    .default('sqlite:./data/sluice.db')
    .describe(
      'The store of accounts, keys and usage. For one machine `sqlite:PATH`; a relative path starts at this file. For a fleet `redis://[USER:PASSWORD@]HOST[:PORT][/DB]`, `redis+sentinel://…HOST[:PORT],…/MASTER[/DB]` or `redis+cluster://…HOST[:PORT],…`, with `rediss` for TLS; options after `?`: `wait_replicas`, `timeout_ms`, `sentinel_user`, `sentinel_password`, `tls_ca`, `tls_cert`, `tls_key`.',
    ),
  auth: authSchema,
  identity: identitySchema,
  login: loginSchema,
  escrow: escrowSchema,
  responses: responsesSchema,
  dashboard: dashboardSchema
    .prefault({})
    .describe('The web page where account holders create keys and see their usage.'),
  admin_api: adminApiSchema,
  log: logSchema,
  metrics: metricsSchema,
  telemetry: telemetrySchema,
  notify: notifySchema,
  smtp: smtpSchema,
  doc_url: z
    .string()
    .max(256)
    .regex(/^https?:\/\/[^\s?#]+$/, {
      error: 'must be a URL that starts with https:// or http://, without query',
    })
    .optional()
    .describe(
      'The documentation for developers of apps: the base of the links in error messages, which append the path of a page, such as `/reference/clients.md`. Default: the folder `docs` of the repository that `package.json` names; if it names none, messages have no links.',
    ),
  on_loss: onLossSchema,
  on_disconnect: onDisconnectSchema
    .optional()
    .describe(
      'What to do with the upstream when the client disconnects. `cancel`: close the connection; the request is charged with the maximum that it may have cost. `drain`: read the reply to its end, so that its token count is exact. `drain_until_usage`: read it until the final token counts arrive. Default: `drain_until_usage` for requests under a budget, else `cancel`.',
    ),
  after_disconnect: afterDisconnectSchema
    .prefault({})
    .describe('Limits on reading replies after the client has disconnected.'),
  ledger: ledgerSchema.prefault({}).describe('The record of what each request used and cost.'),
  archive: archiveSchema
    .optional()
    .describe(
      'A database that keeps the entries and sums of years, while the store keeps those of the last hours. Without it the store keeps all.',
    ),
  allow_synthetic_user: z
    .boolean()
    .default(false)
    .describe(
      'Whether the gateway inserts a fixed user message before a conversation that starts with an assistant message, for upstreams that require a user message first; otherwise it refuses the request with 400.',
    ),
  fetch_media: fetchMediaSchema,
  record: recordSchema.optional(),
  files: filesSchema.optional(),
  batches: batchesSchema,
  cache: cacheSchema.prefault({}).describe('Where the replies of routes with `cache` are kept.'),
  upstreams: z
    .record(name, upstreamSchema)
    .refine((value) => Object.keys(value).length > 0, { error: 'must have at least one entry' })
    .describe('The providers that the gateway sends requests to, by a name of your choice.'),
  routes: z
    .array(routeSchema)
    .min(1)
    .max(100_000)
    .describe('Which upstreams serve which model: an exact `model` wins, then the longest `prefix`.'),
  guardrails: guardrailsSchema,
  plugins: pluginsSchema,
  models: text(4_096)
    .optional()
    .describe(
      'The catalogue: models of `/v1/models` with prices and limits. A relative path starts at this file. ' +
        'Default: `models.yaml` beside this file, or the catalogue of the package if there is none.',
    ),
  plans: z
    .record(name, plan)
    .refine((value) => Object.keys(value).length <= MAX_PLANS, {
      error: `must have at most ${MAX_PLANS} entries`,
    })
    .default({})
    .describe(
      'The plans of accounts, by a name of your choice. Default: `starter`, `pro` and `max`. A file that names another plan has exactly the plans that it names.',
    ),
  dimensions: dimensionsSchema,
  limits: z
    .array(limitSchema)
    .max(10_000)
    .default([])
    .describe(
      'Rate limits and budgets. A rule applies to a request that matches its `plan`, `account`, `key`, `model`, `prefix` and `upstream`, if they are set; the request must pass every matching rule.',
    ),
  limiting: limitingSchema,
})

/** The checked values in the file's spelling, with defaults. */
export type FileValues = z.output<typeof fileSchema>
