/** Turns of lists of blocks, as Anthropic's Messages and Bedrock's Converse have them. */
import type { JsonObject } from '../../base/json.js'
import type { Message } from '../chat/request.js'

/** A turn. */
export interface WireMessage {
  role: 'user' | 'assistant' | 'system'
  content: JsonObject[]
}

/** The `system` and `messages` members of a request. */
export interface Conversation {
  readonly system: JsonObject[]
  readonly messages: WireMessage[]
}

/** The messages with this role. */
export type MessageOf<Role extends Message['role']> = Extract<Message, { role: Role }>

/** True for text that both APIs reject as a block: empty or only white space. */
export function isBlank(text: string): boolean {
  return text.trim() === ''
}
