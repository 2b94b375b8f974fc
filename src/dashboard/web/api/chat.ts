/** Sends a conversation of the playground to a model in any client format, and streams the reply. */
import { inFormat, type Format, type FormatRequest } from '../format/request-formats.js'
import { call, CallFailed, urlOf } from './client.js'

/** A conversation, its model and its format. */
export interface Chat {
  readonly format: Format
  readonly model: string
  readonly request: FormatRequest
}

/** The end of a reply. */
export interface Ended {
  readonly requestId: string | null
  /** Fields that could not be translated. */
  readonly lost: readonly string[]
  readonly finish: string | null
}

/** A fragment of the reply, or of the thinking before it. */
export interface Fragment {
  readonly text: string
  readonly thinking: string
}

/** Streams a reply. Throws `CallFailed` if it is refused or truncated. */
export async function chat(
  { format, model, request }: Chat,
  signal: AbortSignal,
  onFragment: (fragment: Fragment) => void,
): Promise<Ended> {
  const response = await call('POST', pathOf(format, model), {
    body: bodyOf(format, model, request),
    signal,
  })
  const requestId = response.headers.get('x-request-id')
  const lost = (response.headers.get('x-sluice-lost') ?? '').split(',').map((path) => path.trim())
  const end: { finish: string | null; isDone: boolean } = { finish: null, isDone: false }
  const take = (progress: Progress): void => {
    if (progress.error !== undefined) throw broken(progress.error, requestId)
    const { text = '', thinking = '' } = progress
    if (text !== '' || thinking !== '') onFragment({ text, thinking })
    end.finish = progress.finish ?? end.finish
    end.isDone ||= progress.done === true
  }
  const read = READERS[format]
  if (format === 'gemini') take(read(await response.text()))
  else for await (const data of framesOf(response)) take(read(data))
  if (!end.isDone) throw broken('The reply ended before it was complete.', requestId)
  return { requestId, finish: end.finish, lost: lost.filter((path) => path !== '') }
}

function pathOf(format: Format, model: string): string {
  const account = new URLSearchParams(window.location.search).get('account')
  return urlOf(`/playground/${format}`, format === 'gemini' ? { model, account } : { account })
}

function bodyOf(format: Format, model: string, request: FormatRequest): object {
  const { body } = inFormat(format, { base: '', model, key: '' }, request)
  if (format === 'gemini') return body
  // The playground sends the whole conversation with each request.
  return { ...body, stream: true, ...(format === 'responses' ? { store: false } : {}) }
}

function broken(message: string, requestId: string | null): CallFailed {
  const id = requestId === null ? {} : { requestId }
  return new CallFailed({ message, status: 200, kind: 'stream', ...id })
}

/** The data of each server-sent event. Each has one line. */
async function* framesOf(response: Response): AsyncGenerator<string> {
  if (response.body === null) return
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const lines = (rest + value).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (line.startsWith('data:')) yield line.slice(5).trim()
    }
  }
}

/** The content that an event adds to the reply. */
interface Progress {
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

/**
 * The reader of each format.
 *
 * Decodes the events of a streamed reply in each client format, for the playground. Pure.
 */
const READERS: Readonly<Record<Format, ReadEvent>> = {
  chat: chatEvent,
  responses: responsesEvent,
  messages: messagesEvent,
  gemini: geminiReply,
}
