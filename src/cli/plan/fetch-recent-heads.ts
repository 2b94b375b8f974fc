/** Fetches the heads of the last requests from the running gateway, and validates the reply. */
import { z } from 'zod'
import type { JsonObject } from '../../formats/chat/json.js'
import type { ServerConfig } from '../../config/config.js'
import { originOf } from '../running-gateway.js'
import { mergedHeads, type RequestHead } from '../../gateway/report/recent-requests.js'

/** The outcome. `absent`: nothing listens on the ops port. */
export type RecentHeads =
  | { readonly kind: 'heads'; readonly heads: readonly RequestHead[]; readonly fileHash: string }
  | { readonly kind: 'absent'; readonly message: string }
  | { readonly kind: 'failed'; readonly message: string }

const text = z.string().max(256)
const count = z.number()
const json = z.custom<JsonObject>((value) => typeof value === 'object' && value !== null)
const dialect = z.enum(['openai-chat', 'openai-responses', 'anthropic', 'gemini'])

const settings = z.object({
  includeUsage: z.boolean().exactOptional(),
  parallelToolCalls: z.boolean().exactOptional(),
  legacyFunctions: z.boolean().exactOptional(),
  maxOutputTokens: count.exactOptional(),
  temperature: count.exactOptional(),
  topP: count.exactOptional(),
  topK: count.exactOptional(),
  frequencyPenalty: count.exactOptional(),
  presencePenalty: count.exactOptional(),
  candidates: count.exactOptional(),
  logprobs: z.boolean().exactOptional(),
  topLogprobs: count.exactOptional(),
  reasoningEffort: text.exactOptional(),
  verbosity: text.exactOptional(),
  serviceTier: text.exactOptional(),
  hidesThoughts: z.boolean().exactOptional(),
  includeReasoningState: z.boolean().exactOptional(),
  stops: z.int().min(0).max(1_000).exactOptional(),
  hasSeed: z.boolean().exactOptional(),
  hasUserId: z.boolean().exactOptional(),
  toolChoice: text.exactOptional(),
  format: text.exactOptional(),
})

const sketch = z.object({
  turns: z.array(z.array(text)),
  ends: z.array(text),
  tools: z.array(text),
  settings,
  rest: json,
  native: z.array(z.object({ path: text, isRefused: z.boolean() })),
})

const head = z.object({
  atMs: count,
  keyId: text,
  accountId: text,
  labels: z.record(text, text),
  format: z.enum(['chat', 'completions', 'messages', 'responses', 'gemini', 'embeddings']),
  dialect,
  wire: z.union([
    dialect,
    z.enum(['openai-completions', 'openai-embeddings', 'gemini-embeddings', 'gemini-embedding']),
  ]),
  model: text,
  stream: z.boolean(),
  bodyBytes: count,
  promptTokens: count,
  usage: z.object({
    input: count.exactOptional(),
    output: count.exactOptional(),
    cacheRead: count.exactOptional(),
    cacheWrite: count.exactOptional(),
    cacheWrite1h: count.exactOptional(),
    reasoning: count.exactOptional(),
  }),
  tier: text.nullable(),
  outcome: text,
  sketch,
})

const page = z.object({ requests: z.array(head) })
const configPage = z.object({ file_hash: z.string() })

const TIMEOUT_MS = 10_000

/** Fetches from the ops port of the configuration. Never rejects. */
export async function fetchRecentHeads(server: ServerConfig): Promise<RecentHeads> {
  const origin = originOf(server.opsHost, server.opsPort)
  const { adminToken } = server
  const headers = adminToken === null ? {} : { authorization: `Bearer ${adminToken}` }
  try {
    const config = configPage.parse(await get(`${origin}/config`, {}))
    const { requests } = page.parse(await get(`${origin}/recent-requests`, headers))
    return { kind: 'heads', heads: mergedHeads([requests]), fileHash: config.file_hash }
  } catch (error) {
    return failureOf(error, origin)
  }
}

async function get(url: string, headers: Record<string, string>): Promise<unknown> {
  const reply = await fetch(url, { headers, signal: AbortSignal.timeout(TIMEOUT_MS) })
  if (!reply.ok) throw new Error(`it replied ${reply.status} to ${new URL(url).pathname}`)
  return reply.json()
}

function failureOf(error: unknown, origin: string): RecentHeads {
  const cause = error instanceof Error ? error.cause : undefined
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (code === 'ECONNREFUSED') {
    return { kind: 'absent', message: `No gateway listens on ${origin}` }
  }
  const reason = error instanceof z.ZodError ? 'its reply has the format of another version' : code
  const why = reason === '' && error instanceof Error ? error.message : reason
  return { kind: 'failed', message: `The gateway's ops port ${origin} cannot be used: ${why}` }
}
