/**
 * The configuration file's keys: types, bounds, defaults, units and descriptions, said once.
 * The editors' schema and `docs/reference/configuration.md` are made from it. Reads no file, knows no YAML.
 */
import { z } from 'zod'
import { dashboardSchema } from './dashboard-schema.js'
import { priceSchema } from './catalogue-schema.js'
import { GUESSABLE, isGuessable } from './guessable.js'
import { limitingSchema, limitSchema, planLimitsSchema } from './limits-schema.js'
import { afterDisconnectSchema, ledgerSchema, onDisconnectSchema } from './ledger-schema.js'
import { DAY_MS, modelText, name, text, whole } from './value-types.js'
import { modelsSchema } from '../upstreams/listed-models.js'
import { nativePriceSchema, nativeSchema } from '../upstreams/native.js'
import { PRESET_NAMES } from '../upstreams/presets.js'
import { routeSchema } from './route-schema.js'
import { http2Schema, proxySchema, upstreamTlsSchema } from '../upstreams/connection.js'
import { breakerSchema, probeSchema } from '../upstreams/health.js'
import { serverSchema } from './server-schema.js'
import { notifySchema, telemetrySchema } from './telemetry-schema.js'

const timeouts = z.strictObject({
  connect_ms: whole(1, DAY_MS).default(3_000).describe('Time for a connection, TLS included.'),
  first_byte_ms: whole(1, DAY_MS)
    .default(60_000)
    .describe('Time from the request sent to the first byte of a streamed reply.'),
  first_byte_whole_ms: whole(1, DAY_MS)
    .optional()
    .describe(
      'The same for a reply that is asked for whole, which providers send once it is complete. Left out: as `first_byte_ms` where that has been set, else 300000.',
    ),
  idle_ms: whole(1, DAY_MS)
    .default(60_000)
    .describe('Longest silence between two chunks of a reply.'),
  total_ms: whole(1, DAY_MS).default(900_000).describe('Time for the whole exchange.'),
})

const quirks = z
  .strictObject({
    drop: z.array(text(256)).max(256).default([]).describe('Keys to leave out.'),
    rename: z.record(text(256), text(256)).default({}).describe('Keys to rename: from, to.'),
    set: z.record(text(256), z.json()).default({}).describe('Keys to set, with their values.'),
    keep: z
      .array(text(256))
      .max(256)
      .default([])
      .describe('Keys that the preset drops or renames and that are to stay as they are.'),
    messages: z
      .strictObject({
        drop: z.array(text(256)).max(256).default([]).describe('Keys of a message to leave out.'),
        rename: z.record(text(256), text(256)).default({}).describe('Keys to rename: from, to.'),
        roles: z.record(text(64), text(64)).default({}).describe('Roles to rename: from, to.'),
      })
      .prefault({})
      .describe('The same for each entry of `messages`.'),
    replies: z
      .enum(['pass', 'rewrite'])
      .optional()
      .describe(
        'For a client of the same dialect. `pass`: the bytes of the reply go on as they are. `rewrite`: the reply is read and written again, for an upstream whose replies are not quite of the format. Left out: as the preset has it, else `pass`.',
      ),
  })
  .describe(
    'Edits to the keys of a request body, for an upstream that departs from its dialect. A key that a client sent and that is dropped is reported as lost. Placeholders are not read here. With a preset these are added to its own.',
  )

const apiKey = z.string().regex(/^[!-~]{1,4096}$/, {
  error: 'must be printable ASCII without spaces, at most 4,096 characters',
})

/** The dialects that the file may name. */
const DIALECTS = ['openai', 'openai-chat', 'openai-responses', 'anthropic', 'gemini'] as const

const upstream = z.strictObject({
  preset: z
    .enum(PRESET_NAMES)
    .optional()
    .describe(
      'A vendor that speaks chat completions: its `dialect`, `base_url`, `key_header` and `quirks`, as far as they are left out here.',
    ),
  dialect: z
    .enum(DIALECTS)
    .optional()
    .describe(
      'The wire format; required, save with a preset, which is `openai-chat`. `openai` chooses between `openai-chat` (chat completions) and `openai-responses` for each request, by what the catalogue knows of the model; naming one of the two forces it.',
    ),
  base_url: z
    .string()
    .max(2_048)
    .optional()
    .describe(
      'Where it is, with the version: `https://api.openai.com/v1`. No query, no credentials. Required, save with a preset that has one.',
    ),
  path: z
    .string()
    .regex(/^\/[^\s?#]{0,1023}$/, { error: 'must begin with / and have no query' })
    .optional()
    .describe(
      'Where chats are asked for, below `base_url`, instead of the dialect’s path; `{model}` stands for the model: `/deployments/{model}/chat/completions`.',
    ),
  query: z
    .record(text(256), text(1_024))
    .default({})
    .describe('Added to the address of every request: `{ api-version: 2024-10-21 }`.'),
  key_header: z
    .string()
    .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/, { error: 'is no header name' })
    .optional()
    .describe('The header that carries `api_key` as it is; left out: as the dialect has it.'),
  api_key: apiKey
    .optional()
    .describe(
      'Its key, as `${VARIABLE}` or `${file:/path}`. If the variable is not set, the upstream is unconfigured: a request that has no other target is answered 503 with the name of the variable. Left out, with `api_keys`: the upstream needs no key.',
    ),
  api_keys: z
    .array(apiKey)
    .max(64)
    .optional()
    .describe(
      'Several keys, instead of `api_key`; requests are spread over them. A key that is answered 401, 403 or 429 rests (`Retry-After`; else 60 seconds after 401 and 403, 10 seconds after 429) and the request is sent with the next one at once. An only key never rests. Keys whose variable is not set are left out.',
    ),
  headers: z
    .record(
      z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/, { error: 'is no header name' }),
      z.string().regex(/^[\t -~]{0,8192}$/, {
        error: 'must be printable ASCII, at most 8,192 characters',
      }),
    )
    .default({})
    .describe('Headers added to every request.'),
  timeouts: timeouts.prefault({}).describe('How long to wait.'),
  max_connections: whole(1, 65_535)
    .default(1_024)
    .describe(
      'Most connections of one worker; a request beyond them waits for one, for `connect_ms` at most.',
    ),
  tls: upstreamTlsSchema.optional().describe('For an upstream with certificates of its own.'),
  http2: http2Schema,
  proxy: proxySchema,
  native: nativeSchema,
  native_usd_per_request: nativePriceSchema,
  allow_betas: z
    .array(z.string().regex(/^[\w.-]{1,64}$/, 'must be the name of a beta feature'))
    .max(256)
    .optional()
    .describe(
      'Beta features that clients of the Messages format may ask an Anthropic upstream for, as named in `anthropic-beta`; others are reported as lost. Left out: all; `[]`: none.',
    ),
  allow_private_address: z
    .boolean()
    .optional()
    .describe(
      'Whether `base_url` may lead to a loopback, private or link-local address. Where left out: true if its host is itself such an address or `localhost`, else false.',
    ),
  quirks: quirks.prefault({}),
  models: modelsSchema,
  discover: z
    .boolean()
    .default(false)
    .describe(
      'Whether `GET /v1/models` also lists the models that the upstream itself lists at `GET {base_url}/models`, if a route takes them. The list is read at start, after a change of the configuration and every 5 minutes; a failure is a warning in the log. At most 1 MiB and 1,000 models.',
    ),
  completions: z
    .boolean()
    .optional()
    .describe(
      'Whether it has the legacy `/completions`, to which requests for `/v1/completions` then go as they are; else they are asked for as chats. Left out: as the preset has it, else false. OpenAI’s models that have nothing else are always asked there.',
    ),
  prices: z
    .record(modelText, priceSchema)
    .default({})
    .describe(
      'What this upstream takes for a model, instead of the catalogue’s price; `"*"` is every model that is not named here: `{ "*": { input: 0, output: 0 } }` for one of your own.',
    ),
  on_disconnect: onDisconnectSchema
    .optional()
    .describe('As the key of the same name at the top; left out: as there.'),
  breaker: breakerSchema,
  probe: probeSchema.optional(),
})

const plan = (price: number, keys: number | 'unlimited', title: string) =>
  z
    .strictObject({
      price_usd: z.number().min(0).max(1_000_000).default(price).describe('US dollars a month.'),
      max_keys: z
        .union([z.literal('unlimited'), whole(0, 1_000_000)], {
          error: 'must be `unlimited` or a whole number from 0 to 1,000,000',
        })
        .default(keys)
        .describe('Most keys that an account may have at once: a number, or `unlimited`.'),
      limits: planLimitsSchema,
    })
    .prefault({})
    .describe(title)

/** The least time is an hour: people leave agents alone over lunch. OpenAI keeps responses for 30 days. */
const escrow = z.strictObject({
  enabled: z
    .boolean()
    .default(true)
    .describe('Whether reasoning state is kept for clients that do not send it back.'),
  key: z
    .string()
    .regex(/^[!-~]{32,4096}$/, {
      error: 'must be 32 to 4,096 printable ASCII characters without spaces',
    })
    .refine((key) => !isGuessable(key), { error: GUESSABLE })
    .optional()
    .describe(
      'The secret that it is sealed with, as `${VARIABLE}` or `${file:/path}`; the same for all gateways of one store. Left out: made at each start, and what was kept before cannot be read any more.',
    ),
  ttl_seconds: whole(3_600, 2_592_000)
    .default(14_400)
    .describe('How long it is kept after it was last needed.'),
  max_entries: whole(1, 10_000_000).default(100_000).describe('Most answers kept in the store.'),
  max_bytes: whole(1_048_576, 4_294_967_296)
    .default(268_435_456)
    .describe('Most bytes kept in the store; one answer may have a 64th of them.'),
  memory_bytes: whole(0, 1_073_741_824)
    .default(16_777_216)
    .describe('Most bytes that each process keeps in memory as well.'),
})

/** The whole file. What it yields is turned into a `Config` by `resolve.ts`. */
export const fileSchema = z.strictObject({
  server: serverSchema.prefault({}).describe('Listeners and processes.'),
  store: text(4_096)
    .default('sqlite:./data/sluice.db')
    .describe(
      'Where accounts, keys and usage are kept. `sqlite:` and a file (a relative one starts at this file): one machine. For a fleet `redis://[USER:PASSWORD@]HOST[:PORT][/DB]`, `redis+sentinel://…HOST[:PORT],…/MASTER[/DB]` or `redis+cluster://…HOST[:PORT],…`, with `rediss` for TLS; options after `?`: `wait_replicas`, `timeout_ms`, `sentinel_user`, `sentinel_password`, `tls_ca`, `tls_cert`, `tls_key`.',
    ),
  auth: z
    .strictObject({
      fresh_seconds: whole(0, 86_400)
        .default(30)
        .describe('How long a key that was looked up is believed without another look.'),
      stale_seconds: whole(0, 86_400)
        .default(300)
        .describe('How long it is believed while the store does not answer; 0 never.'),
    })
    .prefault({})
    .describe('How long keys are remembered.'),
  escrow: escrow
    .prefault({})
    .describe(
      'Signed thinking, thought signatures and sealed reasoning of models that want them back with the next turn.',
    ),
  responses: z
    .strictObject({
      store_seconds: whole(0, 2_592_000)
        .default(3_600)
        .describe(
          'How long a response can be read by its id, and gone on from by `previous_response_id`; 0: none is kept.',
        ),
    })
    .prefault({})
    .describe(
      'Responses of clients of `POST /v1/responses` that are kept, sealed with `escrow.key` and within the bounds of `escrow`: one response with its conversation may have a 64th of `escrow.max_bytes`, 4 MiB at the most, one account a 16th of the bounds for each process.',
    ),
  dashboard: dashboardSchema
    .prefault({})
    .describe('The web page where account holders make keys and see what they use.'),
  log: z
    .strictObject({
      level: z
        .enum(['debug', 'info', 'warn', 'error', 'silent'])
        .default('info')
        .describe('Least severe line that is written.'),
      sample_success: z
        .number()
        .min(0)
        .max(1)
        .default(1)
        .describe(
          'Share of the successful requests whose line is written, from 0 (none) to 1 (all). Failures, slow requests (`slow_ms`) and requests that needed more than one attempt always have their line.',
        ),
      slow_ms: whole(0, DAY_MS)
        .default(10_000)
        .describe(
          'A request is slow if its first content, or its whole reply if it is not streamed, comes later than this.',
        ),
    })
    .prefault({})
    .describe('The log.'),
  telemetry: telemetrySchema,
  notify: notifySchema,
  on_loss: z
    .enum(['report', 'reject'])
    .default('report')
    .describe('What to do when translation cannot carry a field: report it, or refuse with 400.'),
  on_disconnect: onDisconnectSchema
    .default('cancel')
    .describe(
      'What to do with the upstream when the client leaves. `cancel`: its connection is closed. `drain`: its answer is read to the end, so that the count of its tokens is exact. `drain_until_usage`: it is read until the counts have come.',
    ),
  after_disconnect: afterDisconnectSchema
    .prefault({})
    .describe('How much is read on after clients have left.'),
  ledger: ledgerSchema.prefault({}).describe('The record of what each request used and cost.'),
  allow_synthetic_user: z
    .boolean()
    .default(false)
    .describe(
      'Whether a fixed user message is put before a conversation that begins with an assistant’s, for upstreams that want a user’s first; otherwise it is refused with 400.',
    ),
  fetch_media: z
    .strictObject({
      enabled: z.boolean().default(false).describe('Whether the gateway fetches at all.'),
      max_bytes: whole(1, 104_857_600)
        .default(10_485_760)
        .describe('Largest picture or file; a larger one is answered 400.'),
      max_per_request: whole(1, 1_000).default(16).describe('Most URLs of one request.'),
      timeout_ms: whole(1, DAY_MS)
        .default(10_000)
        .describe('Time for one, redirects and waiting for its turn included.'),
      concurrency: whole(1, 1_024).default(8).describe('Fetches at once in one process.'),
      allow_private_address: z
        .boolean()
        .default(false)
        .describe('Whether a URL may lead to a loopback, private or link-local address.'),
    })
    .prefault({})
    .describe(
      'Pictures and files that a request names by URL, for upstreams that cannot read URLs: fetched and sent inline, or refused with 400.',
    ),
  upstreams: z
    .record(name, upstream)
    .refine((value) => Object.keys(value).length > 0, { error: 'must have at least one entry' })
    .describe('Whom the gateway calls, by a name of your choice.'),
  routes: z
    .array(routeSchema)
    .min(1)
    .max(100_000)
    .describe(
      'Which upstreams serve which model: first by exact `model`, then by longest `prefix`.',
    ),
  models: text(4_096)
    .optional()
    .describe(
      'The catalogue: what `/v1/models` lists, with prices and limits. A relative path starts at this file. ' +
        'Default: `models.yaml` beside this file, or the catalogue of the package if there is none.',
    ),
  plans: z
    .strictObject({
      starter: plan(20, 5, 'The plan `starter`.'),
      pro: plan(50, 20, 'The plan `pro`.'),
      max: plan(100, 'unlimited', 'The plan `max`.'),
    })
    .prefault({})
    .describe('What account holders may have.'),
  limits: z
    .array(limitSchema)
    .max(10_000)
    .default([])
    .describe(
      'Rules that limit use. A request falls under every rule whose `plan`, `account`, `key`, `model`, `prefix` and `upstream`, as far as they are given, fit it; it runs if all of them let it.',
    ),
  limiting: limitingSchema,
})

/** The file after checking, in its own spelling, defaults filled in. */
export type FileValues = z.output<typeof fileSchema>
