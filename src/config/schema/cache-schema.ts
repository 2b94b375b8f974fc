/** The keys of caches: the exact cache of replies, and marks for the caches of providers. */
import * as z from 'zod'
import { CACHE_METHODS } from '../../formats/chat/operations.js'
import { section } from './section.js'
import { whole } from './value-types.js'

/** Replies above this size take too long to replay in one turn. */
const MAX_REPLY_BYTES = 4_194_304

/** `cache` of a route. */
export const routeCacheSchema = z
  .strictObject({
    ttl_seconds: whole(1, 31_536_000)
      .default(3_600)
      .describe('How long a reply is served after it was stored.'),
    scope: z
      .enum(['account', 'key', 'shared'])
      .default('account')
      .describe(
        'Whose requests a stored reply may answer: those of the same account, of the same API key, or of everyone (`shared`).',
      ),
    max_bytes: whole(1, MAX_REPLY_BYTES).default(1_048_576).describe('Larger replies are not stored.'),
    methods: z
      .array(z.enum(CACHE_METHODS))
      .min(1)
      .max(CACHE_METHODS.length)
      .default(['chat', 'embeddings'])
      .describe('The requests that are cached. `chat`: those of every chat format, and legacy completions.'),
    when: z
      .strictObject({
        temperature_max: z
          .number()
          .min(0)
          .max(2)
          .optional()
          .describe('Chats with a higher temperature are not cached; without a temperature they count as 1.'),
      })
      .refine(({ temperature_max }) => temperature_max !== undefined, {
        error: 'has no condition: add temperature_max, or leave it out',
      })
      .optional()
      .describe('Conditions of requests. Default: none.'),
    collapse: z
      .boolean()
      .default(false)
      .describe('Whether equal requests that run at the same time share one upstream request.'),
  })
  .describe(
    'Answers equal requests with a stored reply, `{}` for all defaults. Equal are requests with the same canonical content, in any client format, as a stream or whole. `x-sluice-cache` of the reply states what happened. Default: no cache.',
  )

/** `cache_control` of a route. */
export const cacheControlSchema = z
  .union(
    [
      z.literal('auto'),
      z.strictObject({
        mode: z.literal('auto').describe('The only mode.'),
        ttl: z
          .enum(['5m', '1h'])
          .default('5m')
          .describe("How long the provider keeps a prefix after its last use. Bedrock: always '5m'."),
      }),
    ],
    { error: "must be auto, or a map with mode: auto and ttl: '5m' or '1h'" },
  )
  .describe(
    "`auto`: marks prefixes of the prompt (tools, system text, older turns) for the provider's prompt cache, if the request has no mark of its own. Only for Anthropic's dialect and Converse. A prefix is marked when the same account sends it again within `ttl`, and only if it has at least the model's `cache_min_tokens`. Default: the gateway adds no marks.",
  )

/** `cache` at the top level. */
export const cacheSchema = z.strictObject({
  memory_bytes: whole(0, 17_179_869_184)
    .default(67_108_864)
    .describe(
      'Maximum size of the stored replies in the memory of each process; the least recently used ones are dropped first. 0: none.',
    ),
  store: z
    .boolean()
    .default(false)
    .describe(
      'Whether replies are also kept in the store, for all processes and gateways. They are encrypted with `escrow.key` and count towards `escrow.max_entries` and `escrow.max_bytes`.',
    ),
})

/** Null if the route has no cache. `temperatureMax`: null for any temperature. */
export function routeCacheOf(cache: z.output<typeof routeCacheSchema> | undefined) {
  if (cache === undefined) return null
  const { when, ...settings } = section(routeCacheSchema, cache)
  return { ...settings, temperatureMax: when?.temperature_max ?? null }
}

/** Null if the gateway adds no marks. */
export function cacheControlOf(control: z.output<typeof cacheControlSchema> | undefined) {
  if (control === undefined) return null
  return { ttl: control === 'auto' ? ('5m' as const) : control.ttl }
}
