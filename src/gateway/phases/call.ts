/** A checked request, and the state of its body while it is read. */
import type { JsonObject } from '../../base/json.js'
import type { ModelFacts } from '../../formats/chat/model-facts.js'
import type { ChatRequest } from '../../formats/chat/request.js'
import type { ExpandedRequest } from '../../formats/chat/stored-reply.js'
import type { ResolvedEndpoint } from '../../formats/index.js'
import type { ParsedObject } from '../../formats/wire/json/parse-body.js'
import type { Edit } from '../../formats/wire/json/splice.js'
import type { ReplyObserver } from '../../formats/observed-format.js'
import type { ReplyJudge } from '../../policy/reply-guard.js'
import type { HeldMemory } from '../body-memory.js'
import type { StreamedForm } from '../streams/streamed-form.js'

/**
 * Stores a reply. `upstream`: name of the upstream whose own bytes it is; null if the gateway encoded it.
 * Never rejects.
 */
export type KeepReply = (reply: JsonObject, upstream: string | null) => Promise<void>

/** A parsed and checked request. */
export interface Call extends ResolvedEndpoint {
  /** The client's own bytes, for an upstream of the same format. */
  readonly raw: Buffer
  readonly members: ParsedObject['members']
  readonly body: JsonObject
  readonly request: ChatRequest
  /** The client's query without the question mark, for an upstream of the same format. */
  readonly query: string
  /** The edit of the client's own bytes that sets the gateway's maximum of output tokens. */
  readonly added?: (facts: ModelFacts) => Edit
  /** Total size of the media that were fetched for it. */
  readonly fetchedBytes?: number
  /** The stored responses that the client referenced, inserted before its own part of the conversation. */
  readonly history?: Pick<ExpandedRequest, 'members' | 'bodyFor'>
  /** Stores the reply; absent if it must not be stored. */
  readonly keep?: KeepReply
  /** Judges each reply; absent if no guardrail does. */
  guard?: ReplyJudge
  /** Guardrails changed the request, or it is of another format: the client's own bytes must not be sent. */
  readonly isRewritten?: true
  /** Stores the reasoning state of the reply of one candidate; absent if it has none. */
  readonly reasoning?: ReplyObserver
  /** The form, of which most has not arrived yet. */
  readonly streamed?: StreamedForm
}

const NO_MEMBERS: Call['members'] = []

/** The call of a request to an endpoint. By default it has no query, and a form has no members. */
export function callAt(
  { dialect, wire, clientCodec, format, endpoint }: ResolvedEndpoint,
  {
    raw,
    members = NO_MEMBERS,
    body,
    request,
    query = '',
  }: Pick<Call, 'raw' | 'body' | 'request'> & Partial<Pick<Call, 'members' | 'query'>>,
): Call {
  // Member by member, without a spread (docs/explanation/performance.md).
  return { dialect, wire, clientCodec, format, endpoint, raw, members, body, request, query }
}

/** The state of a body while it is read. */
export class Intake {
  /** The memory of the body; the caller must end it. */
  readonly held: HeldMemory
  /** Number of bytes received. */
  bytes = 0
  /** Null until the body is complete or refused. */
  tookMs: number | null = null

  constructor(held: HeldMemory) {
    this.held = held
  }
}
