/** Sends one request of `sluice doctor` through the gateway of a rehearsal, below the cost ceiling. */
import { isObject, type JsonObject } from '../../base/json.js'
import type { Reply, ToolBlock } from '../../formats/chat/fold.js'
import type { ChatRequest } from '../../formats/chat/request.js'
import { decodeRequest } from '../../formats/openai-chat/client/decode-request.js'
import { decodeEmbeddings } from '../../formats/openai-chat/embeddings.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import type { Format } from '../rehearse/client-format.js'
import type { CostCeiling } from '../rehearse/rehearsal-client.js'
import type { RehearsalGateway } from '../rehearse/rehearsal-gateway.js'

/** A reply that the upstream completed. */
export interface ProbeReply {
  readonly text: string
  readonly calls: readonly Pick<ToolBlock, 'name' | 'json'>[]
  readonly hasReasoning: boolean
  readonly entry: LedgerEntry | null
}

/** The outcome of a request: a reply, or a refusal with the upstream's words. */
export type Probed =
  | { readonly reply: ProbeReply }
  | {
      readonly reply: null
      /** The status of the upstream; null if it sent none. */
      readonly status: number | null
      readonly message: string
      /** Whether the gateway refused the request, because the upstream's dialect lacks the feature. */
      readonly isUntranslatable: boolean
    }

/** What OpenAI's mini models count for an image with `detail: low`, more than any other vendor. */
const LOW_DETAIL_TOKENS = 2_900

/** What a request needs to be sent. */
interface Probing {
  readonly gateway: RehearsalGateway
  readonly format: Format
  readonly ceiling: CostCeiling
  readonly timeoutMs: number
}

/** Sends a request of `POST /v1/chat/completions`. Throws `CeilingReached`. */
export async function probeChat(body: JsonObject, probing: Probing): Promise<Probed> {
  const request = decodeRequest(body)
  return send('/v1/chat/completions', { body, request }, probing)
}

/** Sends a request of `POST /v1/embeddings`. Throws `CeilingReached`. */
export async function probeEmbeddings(body: JsonObject, probing: Probing): Promise<Probed> {
  const request = decodeEmbeddings(body)
  return send('/v1/embeddings', { body, request }, probing)
}

async function send(
  path: string,
  { body, request }: { readonly body: JsonObject; readonly request: ChatRequest },
  { gateway, format, ceiling, timeoutMs }: Probing,
): Promise<Probed> {
  const reserved = ceiling.reserve(request, LOW_DETAIL_TOKENS)
  let entry: LedgerEntry | null = null
  try {
    const response = await fetch(`${gateway.origin}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${gateway.secret}` },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
    })
    const text = await response.text()
    entry = await gateway.entry(response.headers.get('x-request-id') ?? '')
    if (response.status !== 200) {
      const { kind, message } = format.errorIn(text, response.status)
      const status = entry?.upstreamStatus ?? null
      return { reply: null, status, message, isUntranslatable: kind === 'untranslatable' }
    }
    if (request.embedding !== undefined) return { reply: { text, calls: [], hasReasoning: false, entry } }
    const read = replyIn(text, request, format)
    if (read.reply === null) {
      const status = entry?.upstreamStatus ?? response.status
      return { reply: null, status, message: read.failure, isUntranslatable: false }
    }
    return { reply: { ...partsOf(read.reply), entry } }
  } catch (error) {
    if (!(error instanceof Error)) throw error
    const message =
      error.name === 'TimeoutError'
        ? `no complete reply within ${timeoutMs} ms`
        : 'the connection closed before the end of the reply'
    return { reply: null, status: null, message, isUntranslatable: false }
  } finally {
    ceiling.settle(reserved, entry)
  }
}

function replyIn(text: string, request: ChatRequest, format: Format) {
  if (request.stream) {
    const stream = format.stream(request)
    stream.write(Buffer.from(text))
    stream.end()
    return stream.reading
  }
  const value: unknown = JSON.parse(text)
  return format.decode(isObject(value) ? value : {}, request)
}

function partsOf({ blocks }: Reply): Omit<ProbeReply, 'entry'> {
  return {
    text: blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join(''),
    calls: blocks.filter((block) => block.type === 'tool'),
    hasReasoning: blocks.some(({ type }) => type === 'thinking'),
  }
}
