/**
 * Answers that are kept for clients that go on from them by name, and how a format names them.
 */
import type { JsonObject, JsonValue } from '../json.js'
import type { ChatRequest } from '../request.js'

/** One item of a conversation that is kept. */
export interface KeptItem {
  readonly item: JsonValue
  /** The upstream whose own words these are; null if the client or the gateway wrote them. */
  readonly upstream: string | null
}

/** An answer that is kept, with all that it answers. */
export interface KeptReply {
  /** The whole conversation up to the answer, in the client's format. */
  readonly input: readonly KeptItem[]
  /** The reply as the client got it. */
  readonly reply: JsonObject
  /** The upstream whose own bytes the reply is; null if the gateway wrote it. */
  readonly upstream: string | null
}

/** A request with kept answers in place of their names. */
export interface Expanded {
  readonly request: ChatRequest
  readonly input: readonly KeptItem[]
  /** The top-level members by which the body differs from the client's. */
  readonly members: readonly string[]
  /**
   * The body for an upstream of the client's own format, without state that this upstream cannot know; `drop` is called
   * with the path of what is left out.
   */
  readonly bodyFor: (upstream: string | undefined, drop: (path: string) => void) => JsonObject
}

/** How the format names answers that are kept. Pure. */
export interface ReplyStorage {
  /** The field that names the answer to go on from. */
  readonly previousParam: string
  /** What of kept answers the body names. Throws `GatewayError(malformed_request)`. */
  references(body: JsonObject): {
    readonly previous: string | null
    readonly items: readonly string[]
  }
  /** Whether the client wants the answer to be kept. */
  wants(body: JsonObject): boolean
  /** The conversation of a body. */
  inputOf(body: JsonObject): KeptItem[]
  /** What an answer adds to the conversation. */
  outputOf(kept: Pick<KeptReply, 'reply' | 'upstream'>): KeptItem[]
  /** The id by which a client may name the item; null if it has none. */
  idOf(item: JsonValue): string | null
  /**
   * Puts `history` before the conversation, and `found` in place of names. Throws `GatewayError(malformed_request)` for
   * a name that is not in it, and for what `decodeRequest` refuses.
   */
  expand(
    body: JsonObject,
    history: readonly KeptItem[],
    found: ReadonlyMap<string, KeptItem>,
  ): Expanded
  /** The answer to a question for the conversation. */
  list(id: string, kept: KeptReply): JsonObject
  /** The answer to a removal. */
  removed(id: string): JsonObject
}
