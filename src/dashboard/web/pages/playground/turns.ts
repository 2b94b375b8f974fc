/** The turns of a conversation in the playground: the messages, and the replies of one model or two. */
import type { Ended } from '../../api/chat.js'
import type { Problem } from '../../api/client.js'
import type { Format } from '../../format/request-formats.js'
import type { Attachment, ToolCall, ToolResult } from './request-body.js'

/** Settings of requests, besides the messages, as the user typed them. */
export interface Settings {
  readonly system: string
  readonly temperature: string
  readonly maxTokens: string
  /** Tool definitions and the schema of the reply, JSON. */
  readonly tools: string
  readonly schema: string
}

/** What the user is writing. */
export interface Draft {
  readonly text: string
  readonly files: readonly Attachment[]
}

/** The reply of one model. */
export interface Reply {
  /** Also the client's id of the request. */
  readonly id: string
  /** 0, or 1 for the second model. */
  readonly column: number
  readonly model: string
  readonly text: string
  readonly thinking: string
  readonly calls: readonly ToolCall[]
  /** A schema was set: the text is JSON. */
  readonly isJson: boolean
  readonly isRunning: boolean
  /** Null before the head of the reply. */
  readonly requestId: string | null
  /** Null until the reply is complete. */
  readonly ended: Ended | null
  /** Why the reply is missing or incomplete. */
  readonly problem: Problem | null
  /** The user stopped it. */
  readonly isStopped: boolean
}

/** A message, or results of tools, and the replies to it. */
export interface Turn {
  readonly id: string
  readonly format: Format
  readonly asked: Draft
  /** Not empty: the turn answers calls of the turn before, in the column of its only reply. */
  readonly results: readonly ToolResult[]
  readonly replies: readonly Reply[]
  /** The message was edited after its reply. */
  readonly isEdited: boolean
}
