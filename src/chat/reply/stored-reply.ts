/**
 * Answers that are kept for clients that go on from them by name, and how a format names them.
 */
import type { JsonObject, JsonValue } from '../json.js'
import type { ChatRequest } from '../request.js'

/** One item of a conversation that is kept. */
export interface StoredItem {
  readonly item: JsonValue
  /** The upstream whose own words these are; null if the client or the gateway wrote them. */
  readonly upstream: string | null
}

/** An answer that is kept, with all that it answers. */
export interface StoredReply {
  /** The whole conversation up to the answer, in the client's format. */
  readonly input: readonly StoredItem[]
  /** The reply as the client got it. */
  readonly reply: JsonObject
  /** The upstream whose own bytes the reply is; null if the gateway wrote it. */
  readonly upstream: string | null
}

/** A request with kept answers in place of their names. */
export interface ExpandedRequest {
  readonly request: ChatRequest
  readonly input: readonly StoredItem[]
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
  shouldStore(body: JsonObject): boolean
  /** The conversation of a body. */
  inputOf(body: JsonObject): StoredItem[]
  /** What an answer adds to the conversation. */
  outputOf(kept: Pick<StoredReply, 'reply' | 'upstream'>): StoredItem[]
  /** The id by which a client may name the item; null if it has none. */
  idOf(item: JsonValue): string | null
  /**
   * Puts `history` before the conversation, and `found` in place of names. Throws `GatewayError(malformed_request)` for
   * a name that is not in it, and for what `decodeRequest` refuses.
   */
  expand(
    body: JsonObject,
    history: readonly StoredItem[],
    found: ReadonlyMap<string, StoredItem>,
  ): ExpandedRequest
  /** The answer to a question for the conversation. */
  inputPage(id: string, kept: StoredReply): JsonObject
  /** The answer to a removal. */
  deletedReply(id: string): JsonObject
}
