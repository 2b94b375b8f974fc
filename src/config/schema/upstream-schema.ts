/**
 * The keys of one upstream. Part of `config-file-schema.ts`; `resolve-upstream.ts` checks and resolves
 * the values.
 */
import { DAY_MS } from '../../base/time-units.js'
import * as z from 'zod'
import { ALLOWED_TOOL, MAX_ALLOWED_TOOLS } from '../../formats/chat/hosted-tools.js'
import { BATCH_FORMS, TASK_FORMS } from '../../formats/chat/operations.js'
import {
  http2Schema,
  proxySchema,
  upstreamTlsSchema,
  breakerSchema,
  probeSchema,
  modelsSchema,
  nativePriceSchema,
  nativeSharingSchema,
  nativeSchema,
} from '../upstream-settings.js'
import { DIALECTS, platformKeys } from '../platform-settings.js'
import { PRESET_NAMES } from '../presets.js'
import { pricesSchema } from './catalogue-schema.js'
import { guardrailNames } from './guardrails-schema.js'
import { onDisconnectSchema } from './ledger-schema.js'
import { section } from './section.js'
import { modelText, text, whole } from './value-types.js'

/** Defaults for a streamed reply and for a whole reply, which arrives when it is complete. */
const DEFAULT_FIRST_BYTE_MS = 60_000
const DEFAULT_FIRST_BYTE_WHOLE_MS = 300_000

const timeouts = z.strictObject({
  connect_ms: whole(1, DAY_MS).default(3_000).describe('Maximum time to open a connection, including TLS.'),
  first_byte_ms: whole(1, DAY_MS)
    .default(DEFAULT_FIRST_BYTE_MS)
    .describe('Maximum time from sending the request to the first byte of a streamed reply.'),
  first_byte_whole_ms: whole(1, DAY_MS)
    .optional()
    .describe(
      'The same for a reply that is not streamed, which providers send when it is complete. Default: `first_byte_ms` if that is set, else 300000.',
    ),
  idle_ms: whole(1, DAY_MS).default(60_000).describe('Maximum time between two chunks of a reply.'),
  total_ms: whole(1, DAY_MS).default(900_000).describe('Maximum time for the whole exchange.'),
})

/** Time limits of one attempt. */
export function timeoutsOf(values: z.output<typeof timeouts>) {
  const { first_byte_ms: firstByteMs, first_byte_whole_ms: wholeMs } = values
  // A `first_byte_ms` in the file applies to whole replies too.
  const defaultMs = firstByteMs === DEFAULT_FIRST_BYTE_MS ? DEFAULT_FIRST_BYTE_WHOLE_MS : firstByteMs
  return { ...section(timeouts, values), firstByteWholeMs: wholeMs ?? defaultMs }
}

const quirks = z
  .strictObject({
    drop: z.array(text(256)).max(256).default([]).describe('Keys to remove.'),
    rename: z.record(text(256), text(256)).default({}).describe('Keys to rename: from, to.'),
    set: z.record(text(256), z.json()).default({}).describe('Keys to set, with their values.'),
    keep: z
      .array(text(256))
      .max(256)
      .default([])
      .describe('Keys that stay unchanged although the preset drops or renames them.'),
    messages: z
      .strictObject({
        drop: z.array(text(256)).max(256).default([]).describe('Keys of a message to remove.'),
        rename: z.record(text(256), text(256)).default({}).describe('Keys to rename: from, to.'),
        roles: z.record(text(64), text(64)).default({}).describe('Roles to rename: from, to.'),
      })
      .prefault({})
      .describe('The same for each entry of `messages`.'),
    replies: z
      .enum(['pass', 'rewrite'])
      .optional()
      .describe(
        'For a client of the same dialect. `pass`: the bytes of the reply pass through unchanged. `rewrite`: the reply is decoded and encoded again, for an upstream whose replies deviate from the format. Default: the value of the preset, else `pass`.',
      ),
  })
  .describe(
    "Edits to the keys of a request body, for an upstream that deviates from its dialect. A dropped key is reported as lost if the client sent it. Placeholders are not replaced here. A preset's own quirks are applied as well.",
  )

const apiKey = z
  .string()
  .min(1)
  .regex(/^[!-~]{1,4096}$/, {
    error: 'must be printable ASCII without spaces, at most 4,096 characters',
  })

const operations = z
  .strictObject({
    rerank: z
      .enum([...TASK_FORMS.rerank, 'none'])
      .exactOptional()
      .describe('Ranking of documents. `cohere` is `/v2/rerank`, `cohere-v1` is `/v1/rerank`.'),
    moderations: z
      .enum([...TASK_FORMS.moderations, 'none'])
      .exactOptional()
      .describe(
        'Moderation of texts and pictures. `chat`: a chat model of the upstream judges them ([how](../how-to/rerank-and-moderate.md#moderation-by-a-chat-model)).',
      ),
    images: z
      .enum([...TASK_FORMS.images, 'none'])
      .exactOptional()
      .describe('Pictures from text.'),
    image_edits: z
      .enum([...TASK_FORMS.image_edits, 'none'])
      .exactOptional()
      .describe('Pictures from pictures and text.'),
    transcriptions: z
      .enum([...TASK_FORMS.transcriptions, 'none'])
      .exactOptional()
      .describe('Text from sound.'),
    translations: z
      .enum([...TASK_FORMS.translations, 'none'])
      .exactOptional()
      .describe('English text from sound.'),
    speech: z
      .enum([...TASK_FORMS.speech, 'none'])
      .exactOptional()
      .describe('Speech from text.'),
    batch: z
      .enum([...BATCH_FORMS, 'none'])
      .exactOptional()
      .describe(
        'Batches of `POST /v1/batches`: the API for batches that the upstream has, or `queue`: the gateway sends the lines one by one ([table](../how-to/run-batches.md#which-upstream-runs-what)).',
      ),
  })
  .describe(
    'The form in which the upstream serves an operation beside chat and embeddings, or `none`: it does not serve it, and requests go to other targets of the route. Default: that of the preset, the platform or the dialect ([table](../how-to/rerank-and-moderate.md#which-upstream-serves-what)).',
  )

/** One entry of `upstreams`. */
export const upstreamSchema = z.strictObject({
  preset: z
    .enum(PRESET_NAMES)
    .optional()
    .describe(
      'A vendor: supplies `dialect`, `base_url`, `api_key`, `key_header` and `quirks` if they are not set here. The key is the first variable of the preset that is set.',
    ),
  dialect: z
    .enum(DIALECTS)
    .optional()
    .describe(
      "The wire format; required without a preset (most use `openai-chat`). `openai` chooses `openai-chat` (chat completions) or `openai-responses` for each request by the model's entry in the catalogue; naming one of the two forces it. `converse` is the format of Bedrock's Converse.",
    ),
  ...platformKeys,
  base_url: z
    .string()
    .max(2_048)
    .optional()
    .describe(
      "The URL of the service with its version, such as `https://api.openai.com/v1`, without query and credentials. Required unless the preset or the platform has one; it replaces the host of a platform (a VPC endpoint, FIPS), without the platform's path.",
    ),
  path: z
    .string()
    .regex(/^\/[^\s?#]{0,1023}$/, { error: 'must start with / and have no query' })
    .optional()
    .describe(
      "Path of chat requests below `base_url`, instead of the dialect's path; `{model}` is replaced by the model: `/deployments/{model}/chat/completions`.",
    ),
  query: z
    .record(text(256), text(1_024))
    .default({})
    .describe('Query parameters added to the URL of every request: `{ api-version: 2024-10-21 }`.'),
  key_header: z
    .string()
    .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/, { error: 'must be a header name' })
    .optional()
    .describe("The header that carries `api_key` without a prefix. Default: the dialect's own header."),
  api_key: apiKey
    .optional()
    .describe(
      'The API key, as `${NAME}` or `${file:PATH}`. If the variable is not set, the upstream is unconfigured: a request without another target gets 503 with the name of the variable. Without `api_key` and `api_keys` the upstream needs no key, or has that of its preset.',
    ),
  api_keys: z
    .array(apiKey)
    .max(64)
    .optional()
    .describe(
      'Several keys, instead of `api_key`; requests are spread over them. After 401, 403 or 429 a key cools down (`Retry-After`; else 60 seconds after 401 and 403, 10 seconds after 429) and the gateway sends the request with the next key at once. A single key never cools down. Keys whose variable is not set are ignored.',
    ),
  headers: z
    .record(
      z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/, { error: 'must be a header name' }),
      z.string().regex(/^[\t -~]{0,8192}$/, {
        error: 'must be printable ASCII, at most 8,192 characters',
      }),
    )
    .default({})
    .describe('Headers added to every request.'),
  timeouts: timeouts.prefault({}).describe('Time limits of one attempt.'),
  max_connections: whole(1, 65_535)
    .default(1_024)
    .describe(
      'Maximum connections of one worker; further requests wait for a free one, at most `connect_ms`.',
    ),
  tls: upstreamTlsSchema
    .optional()
    .describe('TLS settings for an upstream with a private certificate authority or client certificates.'),
  http2: http2Schema,
  proxy: proxySchema,
  native: nativeSchema,
  native_usd_per_request: nativePriceSchema,
  native_sharing: nativeSharingSchema,
  guardrails: guardrailNames
    .optional()
    .describe(
      'Names under `guardrails` that judge native requests and their replies; `[]`: none, on purpose. Required for an upstream with `native` if a route with guardrails uses it, or a guardrail has `apply_to`. With a list that is not empty, `native` may have only POST rules for chats, completions, responses, embeddings, messages, and the methods of Gemini for content, tokens and embeddings.',
    ),
  allow_betas: z
    .array(z.string().regex(/^[\w.-]{1,64}$/, 'must be the name of a beta feature'))
    .max(256)
    .optional()
    .describe(
      'Beta features that clients of the Messages format may request from an Anthropic upstream, as named in `anthropic-beta`; others are reported as lost, with the fields that belong to them. Default: all, on `platform` those that the cloud takes; `[]`: none.',
    ),
  allow_buckets: z
    .array(
      z.string().regex(/^(?:gs|s3|bq):\/\/[\w.-]+(?:\/[^\s*?]*)?$/, {
        error: 'must be a bucket with or without a folder, such as gs://bucket/folder or s3://bucket',
      }),
    )
    .max(256)
    .default([])
    .describe(
      'Buckets, folders and objects that requests on `platform: vertex` or `bedrock` may name: `[ "gs://bucket/folder", "s3://bucket" ]`. The cloud reads them with the identity of the gateway, so that all others are refused (400), for every key.',
    ),
  allow_tools: z
    .union([z.literal('*'), z.array(z.string().regex(ALLOWED_TOOL)).max(MAX_ALLOWED_TOOLS)], {
      error: `must be "*" or a list of at most ${MAX_ALLOWED_TOOLS} names of tools, such as web_search`,
    })
    .optional()
    .describe(
      'Tools and options of the provider that requests may use, `"*"` for all: the type without a date (`web_search`, `web_fetch`, `code_interpreter`, `code_execution`, `file_search`, `image_generation`, …); `web_search` also for `web_search_options` and Google\'s search, `mcp` also for `mcp_servers`; `speed`, `inference_geo` and `service_tier` for values that cost more. Others get 403. A key\'s own list takes precedence. Default: none of those that cost extra or reach other models or hosts for keys with a budget or a list of models, all for other keys. Tools that the client runs need no entry. On `platform`, what the cloud reads or calls with the identity of the gateway (`retrieval`, `model_armor_config`, `data_sources`, `guardrail_config`, …) needs an entry of its own here, for every key; others get 400, and `"*"` does not include them.',
    ),
  allow_private_address: z
    .boolean()
    .optional()
    .describe(
      'Whether `base_url` may resolve to a loopback, private or link-local address. Default: true if its host is itself such an address or `localhost`, else false.',
    ),
  quirks: quirks.prefault({}),
  models: modelsSchema,
  discover: z
    .boolean()
    .default(false)
    .describe(
      'Whether `GET /v1/models` also lists the models of `GET {base_url}/models` that match a route. The gateway reads this list at start, after a change of the configuration and every 5 minutes; it logs a failure as a warning. At most 1 MiB and 1,000 models.',
    ),
  operations: operations.prefault({}),
  completions: z
    .boolean()
    .optional()
    .describe(
      "Whether it has the legacy endpoint `/completions`. If so, requests for `/v1/completions` are sent there unchanged; otherwise as chat requests. Default: the value of the preset, else false. OpenAI's completion-only models always use it.",
    ),
  prices: z
    .record(modelText, pricesSchema)
    .default({})
    .describe(
      'Prices of this upstream by model, instead of the catalogue\'s; `"*"` is every model that is not named here: `{ "*": { input: 0, output: 0 } }` for a self-hosted one. A price is a map, or a list of maps with `from: DATE`, as in the catalogue.',
    ),
  on_disconnect: onDisconnectSchema.optional().describe('Overrides the top-level key of the same name.'),
  breaker: breakerSchema,
  probe: probeSchema.optional(),
})
