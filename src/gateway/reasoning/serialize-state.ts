/**
 * Serialises the reasoning state of a reply, and inserts it into the assistant message of a later request.
 * Pure.
 */
import type { ReplyBlock } from '../../formats/chat/fold.js'
import type { AssistantPart, ToolCall, AssistantMessage } from '../../formats/chat/request.js'
import { isObject, type JsonValue } from '../../base/json.js'
import { textOf } from './name-turns.js'

/** Whether a reply has state that its provider requires back and that chat clients may not send. */
export function hasState(blocks: readonly ReplyBlock[]): boolean {
  return blocks.some((block) => block.type === 'opaque' || 'signature' in block || 'redacted' in block)
}

/** The blocks as text. */
export function writeState(blocks: readonly ReplyBlock[]): string {
  return JSON.stringify({ v: 1, blocks })
}

/** The blocks of a text of `writeState`; null for another version. */
export function readState(text: string): ReplyBlock[] | null {
  const value = JSON.parse(text) as JsonValue
  if (!isObject(value) || value['v'] !== 1 || !Array.isArray(value['blocks'])) return null
  // The seal guarantees that `writeState` wrote the text.
  return value['blocks'] as unknown as ReplyBlock[]
}

/**
 * The message with the stored state of the dialect `family`. If the client sent other state of that dialect,
 * its message is returned unchanged. Otherwise the blocks get their original order, so that a turn is encoded
 * the same regardless of the state that the client sent.
 */
export function restored(
  message: AssistantMessage,
  blocks: readonly ReplyBlock[],
  family: string,
): AssistantMessage {
  const clientState = clientStateOf(message, family)
  if (clientState.size > 0 && !sameState(clientState, blocks)) return message
  const signatures = new Map<string, string>()
  for (const block of blocks) {
    if (block.type === 'tool' && block.signature !== undefined) {
      signatures.set(block.id, block.signature)
    }
  }
  return {
    ...message,
    parts: partsOf(message, blocks, family),
    toolCalls: message.toolCalls.map((call) => signed(call, signatures.get(call.id))),
  }
}

function signed(call: ToolCall, signature: string | undefined): ToolCall {
  return signature === undefined ? call : { ...call, signature }
}

/** The signatures of a dialect that the client sent. */
function clientStateOf(message: AssistantMessage, family: string): Set<string> {
  const clientState = new Set<string>()
  const add = (signature: string | undefined): void => {
    if (signature !== undefined) clientState.add(signature)
  }
  for (const part of message.parts) {
    if (part.type === 'thinking' && part.origin === family) add(part.redacted ?? part.signature)
    // Only Gemini signs texts and calls.
    else if (part.type === 'text' && family === 'gemini') add(part.signature)
  }
  if (family === 'gemini') for (const call of message.toolCalls) add(call.signature)
  return clientState
}

/** Whether all signatures of the client are in the stored state. */
function sameState(clientState: ReadonlySet<string>, blocks: readonly ReplyBlock[]): boolean {
  const stored = new Set<string | undefined>()
  for (const block of blocks) {
    if ('redacted' in block) stored.add(block.redacted)
    if ('signature' in block) stored.add(block.signature)
  }
  return [...clientState].every((signature) => stored.has(signature))
}

function partsOf(message: AssistantMessage, blocks: readonly ReplyBlock[], family: string): AssistantPart[] {
  const others = message.parts.filter((part) => part.type !== 'thinking')
  const text = others.map((part) => (part.type === 'text' ? part.text : '')).join('')
  const unchanged = text.trim() === textOf(blocks).trim()
  const parts = blocks.flatMap((block) => partOf(block, family, unchanged))
  if (!unchanged) return [...parts, ...others]
  const cache = message.parts.findLast((part) => part.type === 'text' && part.cache !== undefined)
  const last = parts.findLast((part) => part.type === 'text')
  if (cache?.type === 'text' && cache.cache !== undefined && last?.type === 'text') {
    last.cache = cache.cache
  }
  return parts
}

function partOf(block: ReplyBlock, family: string, withText: boolean): AssistantPart[] {
  switch (block.type) {
    case 'thinking': {
      const { text, signature, redacted } = block
      if (signature === undefined && redacted === undefined) return []
      const part: AssistantPart = { type: 'thinking', text, origin: family }
      if (signature !== undefined) part.signature = signature
      if (redacted !== undefined) part.redacted = redacted
      return [part]
    }
    case 'text': {
      const { text, signature } = block
      if (!withText || (text === '' && signature === undefined)) return []
      return [signature === undefined ? { type: 'text', text } : { type: 'text', text, signature }]
    }
    case 'refusal':
      return withText && block.text !== '' ? [{ type: 'text', text: block.text }] : []
    case 'opaque':
      return [{ type: 'opaque', provider: block.provider, block: block.block }]
    case 'tool':
    case 'image':
      return []
    default:
      return block satisfies never
  }
}
