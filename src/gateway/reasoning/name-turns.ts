/**
 * Names assistant turns, so that the state of a turn is found when a client sends the turn back. Pure.
 *
 * A turn with calls is named by the id of its first call, which is unique at all providers. Any other turn is
 * named by a hash of its text, of the messages since the previous assistant turn, and of the name of that
 * turn: the same "Done." in two conversations has two names, and a changed history matches no state.
 */
import { createHash } from 'node:crypto'
import type { ReplyBlock } from '../../formats/chat/fold.js'
import type { Message, ToolCall, AssistantMessage } from '../../formats/chat/request.js'
import { jsonSteps } from '../../formats/wire/json/write-json.js'
import type { Steps } from '../../base/steps.js'

/** Messages that are read in one step. */
const STEP_MESSAGES = 128
/** Bytes that are hashed in one step. */
const STEP_BYTES = 1024 * 1024

/** The text and calls of a turn. */
export interface Turn {
  readonly text: string
  readonly calls: readonly Pick<ToolCall, 'id' | 'name' | 'arguments'>[]
}

/** Names the turns of one conversation in sequence. */
export class TurnNames {
  private previous = ''
  private since: string[] = []

  private addMessage(message: Exclude<Message, AssistantMessage>): void {
    const texts = message.parts.map((part) => (part.type === 'text' ? part.text : part.type))
    this.since.push(message.role, ...texts)
  }

  /** Adds the messages of a conversation; `named` gets each assistant turn with its index. */
  *addMessages(
    messages: readonly Message[],
    named?: (message: AssistantMessage, index: number, name: string) => void,
  ): Steps<void> {
    for (const [index, message] of messages.entries()) {
      if (message.role !== 'assistant') this.addMessage(message)
      else {
        const name = yield* this.addReply(turnOf(message))
        named?.(message, index, name)
      }
      if (index % STEP_MESSAGES === STEP_MESSAGES - 1) yield
    }
  }

  /** Adds an assistant turn; returns its name. Several steps only for a long conversation. */
  *addReply({ text, calls }: Turn): Steps<string> {
    const [first] = calls
    const content =
      first === undefined || isLegacyId(first.id)
        ? [text.trim(), ...calls.flatMap((call) => [call.name, call.arguments])]
        : null
    const name = content === null ? `call ${first?.id ?? ''}` : `text ${yield* this.digest(content)}`
    this.previous = name
    this.since = []
    return name
  }

  private *digest(content: string[]): Steps<string> {
    const conversation = yield* jsonSteps([this.previous, this.since, content])
    const hash = createHash('sha256')
    for (let at = 0; at < conversation.length; at += STEP_BYTES) {
      if (at > 0) yield
      hash.update(conversation.subarray(at, at + STEP_BYTES))
    }
    return hash.digest('base64url')
  }
}

/**
 * Ids of legacy function calls, which the decoder derives from the index of the message. They are not unique.
 */
const LEGACY_ID = /^call_fn_\d+$/

function isLegacyId(id: string): boolean {
  return LEGACY_ID.test(id)
}

/** The turn of a message of the history. */
function turnOf(message: AssistantMessage): Turn {
  const text = message.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
  return { text, calls: message.toolCalls }
}

/** The turn of a reply. `legacy`: the client gets one call without its id. */
export function turnOfReply(blocks: readonly ReplyBlock[], legacy: boolean): Turn {
  const calls = blocks.flatMap((block) => {
    if (block.type !== 'tool') return []
    const text = block.json.trim() === '' ? '{}' : block.json
    return [{ id: legacy ? 'call_fn_0' : block.id, name: block.name, arguments: text }]
  })
  return { text: textOf(blocks), calls: legacy ? calls.slice(0, 1) : calls }
}

/** The text of a reply as chat clients send it back: refusals follow the text. */
export function textOf(blocks: readonly ReplyBlock[]): string {
  let text = ''
  let refusal = ''
  for (const block of blocks) {
    if (block.type === 'text') text += block.text
    else if (block.type === 'refusal') refusal += block.text
  }
  return text + refusal
}
