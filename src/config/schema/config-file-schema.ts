/**
 * The keys of the configuration file: types, limits, defaults, units and descriptions. The JSON Schema for
 * editors and `docs/reference/configuration.md` are generated from this schema.
 */
import { z } from 'zod'
import { cacheSchema } from './cache-schema.js'
import { dashboardSchema } from './dashboard-schema.js'
import { identitySchema } from './identity-schema.js'
import { GUESSABLE, isGuessable, DAY_MS, name, text, whole } from './value-types.js'
import { limitingSchema, limitSchema, planLimitsSchema } from './limits-schema.js'
import { afterDisconnectSchema, ledgerSchema, onDisconnectSchema } from './ledger-schema.js'
import { guardrailsSchema, pluginsSchema } from './guardrails-schema.js'
import { recordSchema } from './record-schema.js'
import { routeSchema } from './route-schema.js'
import { serverSchema } from './server-schema.js'
import { metricsSchema, notifySchema, smtpSchema, telemetrySchema } from './telemetry-schema.js'
import { upstreamSchema } from './upstream-schema.js'

const plan = z.strictObject({
  price_usd: z
    .number()
    .min(0)
    .max(1_000_000)
    .optional()
    .describe(
      'US dollars per month. Default: 20 for `starter`, 50 for `pro`, 100 for `max`, else 0.',
    ),
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

/** The minimum is one hour, so that a conversation survives a pause. OpenAI keeps responses for 30 days. */
const escrow = z.strictObject({
  enabled: z
    .boolean()
    .default(true)
    .describe('Whether the gateway keeps reasoning state for clients that do not send it back.'),
  key: z
    .string()
    .regex(/^[!-~]{32,4096}$/, {
      error: 'must be 32 to 4,096 printable ASCII characters without spaces',
    })
    .refine((key) => !isGuessable(key), { error: GUESSABLE })
    .optional()
    .describe(
      'The secret that encrypts it, as `${NAME}` or `${file:PATH}`; the same for all gateways of one store. Default: a new one at each start, which makes earlier state unreadable.',
    ),
  ttl_seconds: whole(3_600, 2_592_000)
    .default(14_400)
    .describe('How long it is kept after its last use.'),
  max_entries: whole(1, 10_000_000)
    .default(100_000)
    .describe('Maximum number of replies kept in the store.'),
  max_bytes: whole(1_048_576, 4_294_967_296)
    .default(268_435_456)
    .describe('Maximum size in the store; one reply may use a 64th of it.'),
  memory_bytes: whole(0, 1_073_741_824)
    .default(16_777_216)
    .describe('Maximum size of the cache in the memory of each process.'),
})

/** The whole file. `resolve-config.ts` turns its values into a `Config`. */
export const fileSchema = z.strictObject({
  server: serverSchema.prefault({}).describe('Listeners and processes.'),
  store: text(4_096)
    .default('sqlite:./data/sluice.db')
    .describe(
      'The store of accounts, keys and usage. For one machine `sqlite:PATH`; a relative path starts at this file. For a fleet `redis://[USER:PASSWORD@]HOST[:PORT][/DB]`, `redis+sentinel://…HOST[:PORT],…/MASTER[/DB]` or `redis+cluster://…HOST[:PORT],…`, with `rediss` for TLS; options after `?`: `wait_replicas`, `timeout_ms`, `sentinel_user`, `sentinel_password`, `tls_ca`, `tls_cert`, `tls_key`.',
    ),
  auth: z
    .strictObject({
      fresh_seconds: whole(0, 86_400)
        .default(30)
        .describe('How long a key is cached before it is looked up again.'),
      stale_seconds: whole(0, 86_400)
        .default(300)
        .describe(
          'How long a cached key is accepted while the store does not reply; 0: not at all.',
        ),
    })
    .prefault({})
    .describe('How long API keys are cached.'),
  identity: identitySchema,
  escrow: escrow
    .prefault({})
    .describe(
      'Reasoning state (signed thinking, thought signatures, encrypted reasoning) that a model needs again with the next turn.',
    ),
  responses: z
    .strictObject({
      store_seconds: whole(0, 2_592_000)
        .default(3_600)
        .describe(
          'How long a response can be read by its id and continued with `previous_response_id`; 0: responses are not kept.',
        ),
    })
    .prefault({})
    .describe(
      'Stored responses of `POST /v1/responses`. They are encrypted with `escrow.key` and count towards the limits of `escrow`: one response with its conversation may use a 64th of `escrow.max_bytes`, up to 4 MiB, and one account a 16th of the limits in each process.',
    ),
  dashboard: dashboardSchema
    .prefault({})
    .describe('The web page where account holders create keys and see their usage.'),
  admin_api: z
    .strictObject({
      enabled: z.boolean().default(false).describe('Whether `/admin/v1/` is served.'),
      listen: z
        .enum(['data', 'ops'])
        .default('data')
        .describe(
          'The port that serves it: `data` (`server.port`) or `ops` (`server.ops_port`, loopback by default).',
        ),
    })
    .prefault({})
    .describe(
      'The admin API: accounts, members, keys, usage and the configuration by HTTP, for programs with a token (`sluice admin-tokens create`).',
    ),
  log: z
    .strictObject({
      level: z
        .enum(['debug', 'info', 'warn', 'error', 'silent'])
        .default('info')
        .describe('Minimum level of the lines that are written.'),
      file: text(4_096)
        .optional()
        .describe(
          'The file that all processes append to; the signal SIGUSR1 opens it again after it was renamed. A relative path starts at this file. Default: standard output.',
        ),
      sample_success: z
        .number()
        .min(0)
        .max(1)
        .default(1)
        .describe(
          'Share of successful requests that are logged, from 0 (none) to 1 (all). Failures, slow requests (`slow_ms`) and requests with more than one attempt are always logged.',
        ),
      slow_ms: whole(0, DAY_MS)
        .default(10_000)
        .describe(
          'A request is slow if its first content (or its whole reply, if it is not streamed) arrives later than this.',
        ),
    })
    .prefault({})
    .describe('The log.'),
  metrics: metricsSchema,
  telemetry: telemetrySchema,
  notify: notifySchema,
  smtp: smtpSchema,
  on_loss: z
    .enum(['report', 'reject'])
    .default('report')
    .describe(
      'What to do with a field that cannot be translated: report it, or refuse the request with 400.',
    ),
  on_disconnect: onDisconnectSchema
    .optional()
    .describe(
      'What to do with the upstream when the client disconnects. `cancel`: close the connection; the request is charged with the maximum that it may have cost. `drain`: read the reply to its end, so that its token count is exact. `drain_until_usage`: read it until the final token counts arrive. Default: `drain_until_usage` for requests under a budget, else `cancel`.',
    ),
  after_disconnect: afterDisconnectSchema
    .prefault({})
    .describe('Limits on reading replies after the client has disconnected.'),
  ledger: ledgerSchema.prefault({}).describe('The record of what each request used and cost.'),
  allow_synthetic_user: z
    .boolean()
    .default(false)
    .describe(
      'Whether the gateway inserts a fixed user message before a conversation that starts with an assistant message, for upstreams that require a user message first; otherwise it refuses the request with 400.',
    ),
  fetch_media: z
    .strictObject({
      enabled: z.boolean().default(false).describe('Whether the gateway fetches URLs.'),
      max_bytes: whole(1, 104_857_600)
        .default(10_485_760)
        .describe('Maximum size of an image or file; a larger one is refused with 400.'),
      max_per_request: whole(1, 1_000).default(16).describe('Maximum URLs of one request.'),
      timeout_ms: whole(1, DAY_MS)
        .default(10_000)
        .describe('Maximum time for one URL, including redirects and queueing.'),
      concurrency: whole(1, 1_024)
        .default(8)
        .describe('Maximum concurrent fetches of one process.'),
      allow_private_address: z
        .boolean()
        .default(false)
        .describe('Whether a URL may resolve to a loopback, private or link-local address.'),
    })
    .prefault({})
    .describe(
      'Images and files that a request names by URL, for upstreams that do not accept URLs: the gateway fetches them and sends them inline, or refuses the request with 400.',
    ),
  record: recordSchema.optional(),
  cache: cacheSchema.prefault({}).describe('Where the replies of routes with `cache` are kept.'),
  upstreams: z
    .record(name, upstreamSchema)
    .refine((value) => Object.keys(value).length > 0, { error: 'must have at least one entry' })
    .describe('The providers that the gateway sends requests to, by a name of your choice.'),
  routes: z
    .array(routeSchema)
    .min(1)
    .max(100_000)
    .describe(
      'Which upstreams serve which model: an exact `model` wins, then the longest `prefix`.',
    ),
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
