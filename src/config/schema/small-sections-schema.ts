/**
 * The keys of the sections without a file of their own: cached keys, reasoning state, stored responses, the
 * admin API, the log, losses, and media by URL. Part of `config-file-schema.ts`.
 */
import { DAY_MS } from '../../base/time-units.js'
import * as z from 'zod'
import { GUESSABLE, isGuessable, text, whole } from './value-types.js'

/** `auth:` */
export const authSchema = z
  .strictObject({
    fresh_seconds: whole(0, 86_400)
      .default(30)
      .describe('How long a key is cached before it is looked up again.'),
    stale_seconds: whole(0, 86_400)
      .default(300)
      .describe('How long a cached key is accepted while the store does not reply; 0: not at all.'),
    accept_imported_keys: z
      .boolean()
      .default(false)
      .describe(
        'Whether keys of another gateway are accepted, which `sluice apply` has imported by their SHA-256 (`imported: true`): apps keep the keys that they have, 8 to 512 visible ASCII characters with any prefix. false: only keys that this gateway made are looked up.',
      ),
  })
  .prefault({})
  .describe('How long API keys are cached, and which are accepted.')

/** `escrow:` At least an hour, so that a conversation survives a pause; OpenAI keeps responses 30 days. */
export const escrowSchema = z
  .strictObject({
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
    ttl_seconds: whole(3_600, 2_592_000).default(14_400).describe('How long it is kept after its last use.'),
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
  .prefault({})
  .describe(
    'Reasoning state (signed thinking, thought signatures, encrypted reasoning) that a model needs again with the next turn.',
  )

/** `responses:` */
export const responsesSchema = z
  .strictObject({
    store_seconds: whole(0, 2_592_000)
      .default(3_600)
      .describe(
        'How long a response can be read by its id and continued with `previous_response_id`; 0: responses are not kept.',
      ),
    websocket: z
      .boolean()
      .default(true)
      .describe(
        'Whether `GET /v1/responses` opens a WebSocket, on which Codex sends its turns; `false`: 426, after which it uses HTTP.',
      ),
  })
  .prefault({})
  .describe(
    'Stored responses of `POST /v1/responses`. They are encrypted with `escrow.key` and count towards the limits of `escrow`: one response with its conversation may use a 64th of `escrow.max_bytes`, up to 4 MiB, and one account a 16th of the limits in each process.',
  )

/** `admin_api:` */
export const adminApiSchema = z
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
  )

/** `log:` */
export const logSchema = z
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
  .describe('The log.')

/** `on_loss:` */
export const onLossSchema = z
  .enum(['report', 'reject'])
  .default('report')
  .describe('What to do with a field that cannot be translated: report it, or refuse the request with 400.')

/** `fetch_media:` */
export const fetchMediaSchema = z
  .strictObject({
    enabled: z.boolean().default(false).describe('Whether the gateway fetches URLs.'),
    max_bytes: whole(1, 104_857_600)
      .default(10_485_760)
      .describe('Maximum size of an image or file; a larger one is refused with 400.'),
    max_per_request: whole(1, 1_000).default(16).describe('Maximum URLs of one request.'),
    timeout_ms: whole(1, DAY_MS)
      .default(10_000)
      .describe('Maximum time for one URL, including redirects and queueing.'),
    concurrency: whole(1, 1_024).default(8).describe('Maximum concurrent fetches of one process.'),
    allow_private_address: z
      .boolean()
      .default(false)
      .describe('Whether a URL may resolve to a loopback, private or link-local address.'),
  })
  .prefault({})
  .describe(
    'Images and files that a request names by URL, for upstreams that do not accept URLs: the gateway fetches them and sends them inline, or refuses the request with 400.',
  )
