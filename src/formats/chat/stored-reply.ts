/**
 * Replies that the gateway stores so that later requests can refer to them, and how a format refers to them.
 */
import type { JsonObject, JsonValue } from '../../base/json.js'
import type { ChatRequest } from './request.js'

/** One item of a stored conversation. */
export interface StoredItem {
  readonly item: JsonValue
  /** The upstream that wrote the item; null if the client or the gateway wrote it. */
  readonly upstream: string | null
}

/** A stored reply with its conversation. */
export interface StoredReply {
  /** The whole conversation before the reply, in the client's format. */
  readonly input: readonly StoredItem[]
  /** The reply that the client received. */
  readonly reply: JsonObject
  /** The upstream whose bytes were forwarded; null if the gateway encoded the reply. */
  readonly upstream: string | null
}

/** A request with stored items in place of references. */
export interface ExpandedRequest {
  readonly request: ChatRequest
  readonly input: readonly StoredItem[]
  /** The top-level members that differ from the client's body. */
  readonly members: readonly string[]
  /**
   * The body for an upstream of the client's own format, without reasoning state of other upstreams; `drop`
   * is called with the path of each omitted item.
   */
  readonly bodyFor: (upstream: string | undefined, drop: (path: string) => void) => JsonObject
}

/** How a format refers to stored replies. Pure. */
export interface ReplyStorage {
  /** The field with the id of the reply that a request continues. */
  readonly previousParam: string
  /** The replies and items that the body refers to. Throws `GatewayError(malformed_request)`. */
  references(body: JsonObject): {
    readonly previous: string | null
    readonly items: readonly string[]
  }
  /** Whether the client requests that the reply is stored. */
  shouldStore(body: JsonObject): boolean
  /** The conversation of a body. */
  inputOf(body: JsonObject): StoredItem[]
  /** The items that a reply adds to the conversation. */
  outputOf(stored: Pick<StoredReply, 'reply' | 'upstream'>): StoredItem[]
  /** The id by which a request may refer to the item; null if it has none. */
  idOf(item: JsonValue): string | null
  /**
   * Inserts `history` before the conversation, and replaces references with the items of `found`, by id.
   * Throws `GatewayError(malformed_request)` for an unknown reference, and as `decodeRequest` does.
   */
  expand(
    body: JsonObject,
    history: readonly StoredItem[],
    found: ReadonlyMap<string, StoredItem>,
  ): ExpandedRequest
  /** The body of the reply to `GET …/{id}/input_items`. */
  inputPage(id: string, stored: StoredReply): JsonObject
  /** The body of the reply to `DELETE …/{id}`. */
  deletedReply(id: string): JsonObject
}
