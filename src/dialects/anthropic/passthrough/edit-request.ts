/**
 * Edits a client's body that passes through to an Anthropic upstream. All other bytes stay unchanged.
 */
import { arrayOf, isObject, type JsonObject, type JsonValue, stringOf } from '../../../chat/json.js'
import type { Edit } from '../../../wire/json/splice.js'
import { largeEdit } from '../../../wire/json/write-json.js'
import type { Losses } from '../../dialect.js'
import { wireId } from '../shared/constants.js'
import { isThinkingToken } from '../client/reply/thinking-token.js'

/** The edits that set the upstream's model name and remove other providers' reasoning from the history. */
export function edits(body: JsonObject, modelName: string, losses: Losses): Edit[] {
  const out: Edit[] = []
  if (body.model !== modelName) out.push({ key: 'model', json: JSON.stringify(modelName) })
  const messages = ownMessages(body.messages, losses)
  if (messages !== null) out.push(largeEdit('messages', messages))
  return out
}

/**
 * The messages without reasoning of other models, whose signature is the gateway's token, and with call ids
 * that Anthropic accepts; null if nothing changes. A message that becomes empty is removed.
 */
function ownMessages(value: JsonValue | undefined, losses: Losses): JsonValue[] | null {
  let out: JsonValue[] | null = null
  const messages = arrayOf(value)
  for (const [at, message] of messages.entries()) {
    const content = isObject(message) ? ownContent(message.content, losses) : null
    if (content === null) {
      out?.push(message)
      continue
    }
    out ??= messages.slice(0, at)
    if (isObject(message) && content.length > 0) out.push({ ...message, content })
  }
  return out
}

function ownContent(value: JsonValue | undefined, losses: Losses): JsonValue[] | null {
  if (!Array.isArray(value)) return null
  let out: JsonValue[] | null = null
  for (const [at, block] of value.entries()) {
    const own = isObject(block) ? ownBlock(block) : block
    if (own === block) {
      out?.push(block)
      continue
    }
    out ??= value.slice(0, at)
    if (own === null) losses.drop('messages.thinking', 'no-equivalent')
    else out.push(own)
  }
  return out
}

/** The same block if nothing changes; null if it is removed. */
function ownBlock(block: JsonObject): JsonObject | null {
  switch (block.type) {
    case 'thinking':
      return isThinkingToken(stringOf(block.signature) ?? '') ? null : block
    case 'redacted_thinking':
      return isThinkingToken(stringOf(block.data) ?? '') ? null : block
    case 'tool_use':
      return withId(block, 'id')
    case 'tool_result':
      return withId(block, 'tool_use_id')
    default:
      return block
  }
}

function withId(block: JsonObject, key: 'id' | 'tool_use_id'): JsonObject {
  const id = stringOf(block[key])
  return id === undefined || id === '' || wireId(id) === id
    ? block
    : { ...block, [key]: wireId(id) }
}
