/**
 * What an assistant turn is known by, so that it is found again when a client sends it back.
 * Pure; knows no store and no account.
 *
 * A turn with calls has the id of its first one: providers never give one twice. Any other is known by
 * its words and by all that was said since the turn before it, which it names: the same "Done." of two
 * conversations is two turns, and a history that was cut or changed finds nothing that does not fit.
 */
import { createHash } from 'node:crypto'
import type { ReplyBlock } from '../chat/reply/fold.js'
import type { Message, ToolCall } from '../chat/request.js'

type AssistantMessage = Extract<Message, { role: 'assistant' }>

/** What a turn is known by, beside what was said before it. */
export interface Turn {
  readonly text: string
  readonly calls: readonly Pick<ToolCall, 'id' | 'name' | 'arguments'>[]
}

/** Names the turns of one conversation, first to last. */
export class TurnNames {
  private previous = ''
  private since: string[] = []

  /** Any message that is not the assistant's. */
  addMessage(message: Exclude<Message, AssistantMessage>): void {
    const said = message.parts.map((part) => (part.type === 'text' ? part.text : part.type))
    this.since.push(message.role, ...said)
  }

  /** The next turn of the assistant; its name. */
  addReply({ text, calls }: Turn): string {
    const [first] = calls
    const spoken =
      first === undefined || isMadeUp(first.id)
        ? [text.trim(), ...calls.flatMap((call) => [call.name, call.arguments])]
        : null
    const name = spoken === null ? `call ${first?.id ?? ''}` : `said ${this.digest(spoken)}`
    this.previous = name
    this.since = []
    return name
  }

  private digest(spoken: readonly string[]): string {
    const all = JSON.stringify([this.previous, this.since, spoken])
    return createHash('sha256').update(all).digest('base64url')
  }
}

/** The legacy form has no ids: the one in its place is made of the message's, and not unique. */
const MADE_UP = /^call_fn_\d+$/

function isMadeUp(id: string): boolean {
  return MADE_UP.test(id)
}

/** The turn that a message of the history is. */
export function turnOf(message: AssistantMessage): Turn {
  const text = message.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
  return { text, calls: message.toolCalls }
}

/** The turn that a reply will be; `legacy` where its one call goes out without its id. */
export function turnOfReply(blocks: readonly ReplyBlock[], legacy: boolean): Turn {
  const calls = blocks.flatMap((block) => {
    if (block.type !== 'tool') return []
    const text = block.json.trim() === '' ? '{}' : block.json
    return [{ id: legacy ? 'call_fn_0' : block.id, name: block.name, arguments: text }]
  })
  return { text: textOf(blocks), calls: legacy ? calls.slice(0, 1) : calls }
}

/** All that a reply says, as a client puts it together: refusals come after the text. */
export function textOf(blocks: readonly ReplyBlock[]): string {
  let text = ''
  let refusal = ''
  for (const block of blocks) {
    if (block.type === 'text') text += block.text
    else if (block.type === 'refusal') refusal += block.text
  }
  return text + refusal
}
