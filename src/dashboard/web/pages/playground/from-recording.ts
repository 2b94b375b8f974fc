/**
 * A recorded conversation in the playground: its last message becomes the draft, and those before it turns
 * with their replies. Files, and tools with their calls, stay behind.
 */
import type { RecordingReply } from '../../../../control/dashboard/schema/schema.js'
import { keep } from './kept-state.js'
import type { Turn } from './turns.js'

/** A message of a recorded request as text. */
interface Message {
  readonly role: string
  readonly text: string
}

/** Replaces what the playground had for the user. */
export function keepRecording(
  user: string,
  { request, model }: Pick<RecordingReply, 'request' | 'model'>,
): void {
  const messages = messagesIn(request['messages'])
  const turns = messages.filter(({ role, text }) => ['user', 'assistant'].includes(role) && text !== '')
  const last = turns.findLastIndex(({ role }) => role === 'user')
  const system = messages.filter(({ role }) => ['system', 'developer'].includes(role)).map(({ text }) => text)
  keep(user, {
    turns: turns.slice(0, Math.max(0, last)).flatMap((message, at, all) => {
      const next = all[at + 1]
      if (message.role !== 'user') return []
      return [turnOf(message.text, next?.role === 'assistant' ? next.text : null, { at, model })]
    }),
    draft: { text: turns[last]?.text ?? '', files: [] },
    settings: { system: system.join('\n\n'), temperature: '', maxTokens: '', tools: '', schema: '' },
  })
}

function turnOf(text: string, reply: string | null, { at, model }: { at: number; model: string }): Turn {
  const id = `recorded-${at}`
  return {
    ...{ id, format: 'chat', asked: { text, files: [] }, results: [], isEdited: false },
    replies:
      reply === null
        ? []
        : [
            {
              ...{ id: `${id}-reply`, column: 0, model, text: reply, thinking: '', calls: [], isJson: false },
              ...{ isRunning: false, requestId: null, ended: null, problem: null, isStopped: false },
            },
          ],
  }
}

function messagesIn(value: unknown): Message[] {
  return objectsIn(value).map(({ role, parts }) => ({
    role: typeof role === 'string' ? role : '',
    text: objectsIn(parts)
      .flatMap(({ type, text }) => (type === 'text' && typeof text === 'string' ? [text] : []))
      .join('\n'),
  }))
}

/** The objects of a list of unknown form. */
export function objectsIn(value: unknown): Readonly<Record<string, unknown>>[] {
  const items: readonly unknown[] = Array.isArray(value) ? value : []
  return items.flatMap((item) => {
    return typeof item === 'object' && item !== null ? [Object.fromEntries(Object.entries(item))] : []
  })
}
