/** Decodes the events of a streamed reply in each client format, for the playground. Pure. */
import type { Format } from '../format/request-formats.js'

/** The content that an event adds to the reply. */
export interface Progress {
  readonly text?: string
  readonly thinking?: string
  readonly finish?: string
  /** The reply is complete. */
  readonly done?: true
  /** The reason for a truncated reply. */
  readonly error?: string
}

/** Decodes one event of a format; `data` is the JSON of a server-sent event, or the whole reply. */
export type ReadEvent = (data: string) => Progress

/** Access to a JSON object by path: `at('choices', 0, 'delta')`. */
function reader(data: string): (...path: (string | number)[]) => unknown {
  const root: unknown = JSON.parse(data)
  return (...path) =>
    path.reduce<unknown>((value, name) => {
      if (Array.isArray(value) && typeof name === 'number') return (value as unknown[])[name]
      if (typeof value !== 'object' || value === null) return undefined
      return Object.entries(value).find(([key]) => key === name)?.[1]
    }, root)
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function finishOf(value: unknown): Pick<Progress, 'finish'> {
  return typeof value === 'string' ? { finish: value } : {}
}

function chatEvent(data: string): Progress {
  if (data === '[DONE]') return { done: true }
  const at = reader(data)
  if (at('error') !== undefined) return { error: text(at('error', 'message')) }
  return {
    text: text(at('choices', 0, 'delta', 'content')),
    thinking: text(at('choices', 0, 'delta', 'reasoning_content')),
    ...finishOf(at('choices', 0, 'finish_reason')),
  }
}

function responsesEvent(data: string): Progress {
  const at = reader(data)
  switch (at('type')) {
    case 'response.output_text.delta':
      return { text: text(at('delta')) }
    case 'response.reasoning_summary_text.delta':
    case 'response.reasoning_text.delta':
      return { thinking: text(at('delta')) }
    case 'response.completed':
      return { done: true, finish: 'completed' }
    case 'response.incomplete':
      return { done: true, ...finishOf(at('response', 'incomplete_details', 'reason')) }
    case 'response.failed':
      return { error: text(at('response', 'error', 'message')) }
    case 'error':
      return { error: text(at('message')) }
    default:
      return {}
  }
}

function messagesEvent(data: string): Progress {
  const at = reader(data)
  switch (at('type')) {
    case 'content_block_delta':
      return { text: text(at('delta', 'text')), thinking: text(at('delta', 'thinking')) }
    case 'message_delta':
      return finishOf(at('delta', 'stop_reason'))
    case 'message_stop':
      return { done: true }
    case 'error':
      return { error: text(at('error', 'message')) }
    default:
      return {}
  }
}

/** The playground requests whole replies in this format. */
function geminiReply(data: string): Progress {
  const at = reader(data)
  const parts = at('candidates', 0, 'content', 'parts')
  const all = (isThought: boolean): string =>
    (Array.isArray(parts) ? (parts as unknown[]) : [])
      .map((_, index) => {
        const thought = at('candidates', 0, 'content', 'parts', index, 'thought') === true
        return thought === isThought
          ? text(at('candidates', 0, 'content', 'parts', index, 'text'))
          : ''
      })
      .join('')
  const finish = finishOf(at('candidates', 0, 'finishReason'))
  return { text: all(false), thinking: all(true), done: true, ...finish }
}

/** The reader of each format. */
export const READERS: Readonly<Record<Format, ReadEvent>> = {
  chat: chatEvent,
  responses: responsesEvent,
  messages: messagesEvent,
  gemini: geminiReply,
}
