/**
 * Chooses the same target for the same conversation or API key, by weighted rendezvous hashing. It needs no
 * state, so all workers and gateways agree, and a change of weights or targets moves the minimum number of
 * keys. Pure.
 */
import { createHash } from 'node:crypto'
import type { ChatRequest, Message, UserPart } from '../chat/request.js'
import type { RouteConfig } from '../config/routes/route.js'
import type { RouteTarget } from './router.js'

/** Maximum hashed characters of a text or of inline media; the length of a longer one is hashed too. */
const MAX_CHARS = 65_536
/** Maximum hashed characters of all parts together. */
const MAX_TOTAL_CHARS = 1_048_576
/** A longer text that is not decoded yet stays encoded; its length is hashed instead. */
const MAX_DECODED_BYTES = 262_144

/**
 * The key for which the choice of a target is stable: a digest of the beginning of the conversation, which is
 * the same for all its turns, or the id of the API key. Null: no stable choice.
 */
export function stickyKeyOf(
  sticky: RouteConfig['sticky'],
  request: Pick<ChatRequest, 'messages'>,
  keyId: string | null,
): string | null {
  switch (sticky) {
    case 'none':
      return null
    case 'key':
      return keyId
    case 'conversation':
      return conversationKey(request.messages)
    default:
      return sticky satisfies never
  }
}

/** The system prompt and the first user message: the part of the prompt that every later turn repeats. */
function conversationKey(messages: readonly Message[]): string {
  const hash = createHash('sha256')
  let chars = 0
  for (const message of messages) {
    if (message.role === 'assistant' || message.role === 'tool') continue
    hash.update(`${message.role}\0`)
    for (const part of message.parts) {
      const text = textOf(part)
      chars += text.length + 1
      if (chars > MAX_TOTAL_CHARS) return hash.digest('base64')
      hash.update(text).update('\0')
    }
    if (message.role === 'user') break
  }
  return hash.digest('base64')
}

function textOf(part: UserPart): string {
  switch (part.type) {
    case 'text': {
      const { textBytes = 0 } = part
      return textBytes > MAX_DECODED_BYTES ? `text ${textBytes}` : beginning(part.text)
    }
    case 'audio':
      return beginning(part.data)
    case 'image':
    case 'file': {
      const { source } = part
      if (source.kind === 'base64') return beginning(source.data)
      return source.kind === 'url' ? source.url : source.id
    }
    default:
      return part satisfies never
  }
}

function beginning(text: string): string {
  return text.length <= MAX_CHARS ? text : `${text.slice(0, MAX_CHARS)}${text.length}`
}

/**
 * The target for a sticky key. Each target gets a share of the keys that is proportional to its weight; if
 * one is removed, only its own keys move. Undefined without targets.
 */
export function stickiest(
  targets: readonly RouteTarget[],
  stickyKey: string,
): RouteTarget | undefined {
  let best: RouteTarget | undefined
  let bestScore = -1
  for (const target of targets) {
    const score = -target.weight / Math.log(pointOf(stickyKey, nameOf(target)))
    if (score > bestScore) {
      best = target
      bestScore = score
    }
  }
  return best
}

function nameOf({ upstream, model }: RouteTarget): string {
  return model === null ? upstream.name : `${upstream.name} ${model}`
}

/** A number above 0 and below 1 that is uniform over keys and names. */
export function pointOf(stickyKey: string, name: string): number {
  const digest = createHash('sha256').update(`${stickyKey}\0${name}`).digest()
  return (digest.readUIntBE(0, 6) + 0.5) / 2 ** 48
}
