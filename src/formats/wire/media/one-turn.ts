/** Chats that are sent to an endpoint for pictures or sound, which takes no conversation. */
import type { ChatRequest, UserPart } from '../../chat/request.js'
import { refused } from '../json/check-fields.js'

/** Receives the paths of fields that the target format cannot express. */
export interface Losses {
  drop(path: string, why: 'no-equivalent'): void
}

/** What the model of such an endpoint does, in words of errors, and what it reads. */
export interface OneTurnModel {
  /** `A model that only draws` */
  readonly who: string
  /** `texts and pictures` */
  readonly takes: string
  readonly reads: (part: UserPart) => boolean
  /** What one reply has: `picture`. */
  readonly makes: string
  /** Fields of chats that the endpoint has too. */
  readonly keeps?: ReadonlySet<string>
}

/** Fields of chats that mean nothing at these endpoints, by their canonical names. */
const LOST = {
  temperature: 'temperature',
  topP: 'top_p',
  topK: 'top_k',
  stop: 'stop',
  seed: 'seed',
  frequencyPenalty: 'frequency_penalty',
  presencePenalty: 'presence_penalty',
  maxOutputTokens: 'max_tokens',
  reasoningEffort: 'reasoning_effort',
  logprobs: 'logprobs',
} as const satisfies Partial<Record<keyof ChatRequest, string>>

/** Throws `untranslatable` for what the reply would be another without; reports other losses. */
export function checkOneTurn(request: ChatRequest, model: OneTurnModel, losses: Losses): void {
  const { messages, tools, hosted = [], responseFormat, candidates = 1, rest } = request
  const { who, takes, reads, makes, keeps } = model
  const [message, second] = messages
  if (message?.role !== 'user' || second !== undefined) {
    throw refused('messages', `${who} takes one user turn, without instructions before it.`)
  }
  if (!message.parts.every(reads)) throw refused('messages[0]', `${who} takes ${takes}.`)
  if (tools.length + hosted.length > 0) throw refused('tools', `${who} calls no tools.`)
  if ((responseFormat?.type ?? 'text') !== 'text') {
    throw refused('response_format', `${who} writes no JSON.`)
  }
  if (candidates > 1) throw refused('n', `Send one request for each ${makes}.`)
  for (const [name, path] of Object.entries(LOST)) {
    if (Object.hasOwn(request, name) && keeps?.has(name) !== true) losses.drop(path, 'no-equivalent')
  }
  for (const key of Object.keys(rest)) losses.drop(key, 'no-equivalent')
}

/** The texts of the user. */
export function textOfTurn({ messages }: ChatRequest): string {
  const texts = partsOfTurn({ messages }).flatMap((part) => (part.type === 'text' ? [part.text] : []))
  return texts.join('\n')
}

/** The parts of the user's messages. */
export function partsOfTurn({ messages }: Pick<ChatRequest, 'messages'>): UserPart[] {
  return messages.flatMap(({ role, parts }) => (role === 'user' ? parts : []))
}
