/** Sends a conversation of the playground to a model in any client format, and streams the reply. */
import type { Format } from '../format/request-formats.js'
import { call, CallFailed, urlOf } from './client.js'

/** A request to a model. */
export interface Chat {
  readonly format: Format
  readonly model: string
  /** In the format. */
  readonly body: object
  /** By which the ledger entry is found if the reply has no head. */
  readonly clientRequestId: string
}

/** The end of a reply. */
export interface Ended {
  /** Fields that could not be translated. */
  readonly lost: readonly string[]
  readonly finish: string | null
}

/** A part of a call of a tool: parts with the same `at` belong together, and `args` are joined. */
export interface CallPart {
  readonly at: number
  readonly id?: string
  readonly name?: string
  readonly args?: string
}

/** A fragment of the reply, of the thinking before it, or of calls of tools. */
export interface Fragment {
  readonly text: string
  readonly thinking: string
  readonly calls: readonly CallPart[]
}

/** Called as the reply arrives. */
interface Listener {
  readonly signal: AbortSignal
  /** The head of the reply. */
  readonly onHead: (requestId: string | null) => void
  readonly onFragment: (fragment: Fragment) => void
}

/** Streams a reply. Throws `CallFailed` if it is refused or truncated. */
export async function chat(
  { format, model, body, clientRequestId }: Chat,
  { signal, onHead, onFragment }: Listener,
): Promise<Ended> {
  const response = await call('POST', pathOf(format, model), {
    ...{ signal, clientRequestId },
    body: streamed(format, body),
  })
  const requestId = response.headers.get('x-request-id')
  onHead(requestId)
  const lost = (response.headers.get('x-sluice-lost') ?? '').split(',').map((path) => path.trim())
  const end: { finish: string | null; isDone: boolean } = { finish: null, isDone: false }
  const take = (progress: Progress): void => {
    if (progress.error !== undefined) throw broken(progress.error, requestId)
    const { text = '', thinking = '', calls = [] } = progress
    if (text !== '' || thinking !== '' || calls.length > 0) onFragment({ text, thinking, calls })
    end.finish = progress.finish ?? end.finish
    end.isDone ||= progress.done === true
  }
  const read = READERS[format]
  if (format === 'gemini') take(read(await response.text()))
  else for await (const data of framesOf(response)) take(read(data))
  if (!end.isDone) throw broken('The reply ended before it was complete.', requestId)
  return { finish: end.finish, lost: lost.filter((path) => path !== '') }
}

function pathOf(format: Format, model: string): string {
  const named = new URLSearchParams(window.location.search).get('account')
  // Of all accounts it runs as the user's own.
  const account = named === 'all' ? null : named
  return urlOf(`/playground/${format}`, format === 'gemini' ? { model, account } : { account })
}

function streamed(format: Format, body: object): object {
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
  readonly calls?: readonly CallPart[]
  readonly finish?: string
  /** The reply is complete. */
  readonly done?: true
  /** The reason for a truncated reply. */
  readonly error?: string
}

/** Decodes one event of a format; `data` is the JSON of a server-sent event, or the whole reply. */
type ReadEvent = (data: string) => Progress

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

function number(value: unknown): number {
  return typeof value === 'number' ? value : 0
}

/** `value` if it is an array, else an empty array. */
export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : []
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
    calls: list(at('choices', 0, 'delta', 'tool_calls')).map((_, index) => {
      const part = (...path: string[]): unknown => at('choices', 0, 'delta', 'tool_calls', index, ...path)
      const place = part('index')
      return {
        at: typeof place === 'number' ? place : index,
        id: text(part('id')),
        name: text(part('function', 'name')),
        args: text(part('function', 'arguments')),
      }
    }),
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
    case 'response.output_item.done': {
      if (at('item', 'type') !== 'function_call') return {}
      const member = (name: string): string => text(at('item', name))
      const names = { id: member('call_id'), name: member('name') }
      return { calls: [{ at: number(at('output_index')), ...names, args: member('arguments') }] }
    }
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
    case 'content_block_start': {
      if (at('content_block', 'type') !== 'tool_use') return {}
      const [id, name] = [text(at('content_block', 'id')), text(at('content_block', 'name'))]
      return { calls: [{ at: number(at('index')), id, name }] }
    }
    case 'content_block_delta': {
      const args = text(at('delta', 'partial_json'))
      return {
        text: text(at('delta', 'text')),
        thinking: text(at('delta', 'thinking')),
        ...(args === '' ? {} : { calls: [{ at: number(at('index')), args }] }),
      }
    }
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
  const parts = list(at('candidates', 0, 'content', 'parts')).map((_, index) => {
    const part = (...path: string[]): unknown => at('candidates', 0, 'content', 'parts', index, ...path)
    return {
      isThought: part('thought') === true,
      text: text(part('text')),
      call: {
        at: index,
        id: text(part('functionCall', 'id')),
        name: text(part('functionCall', 'name')),
      },
      args: part('functionCall', 'args'),
    }
  })
  const all = (isThought: boolean): string =>
    parts.map((part) => (part.isThought === isThought ? part.text : '')).join('')
  const calls = parts
    .filter(({ call: { name } }) => name !== '')
    .map(({ call, args }) => ({ ...call, args: JSON.stringify(args ?? {}) }))
  const finish = finishOf(at('candidates', 0, 'finishReason'))
  return { text: all(false), thinking: all(true), calls, done: true, ...finish }
}

/** Decodes the events of a streamed reply, by client format, for the playground. Pure. */
const READERS: Readonly<Record<Format, ReadEvent>> = {
  chat: chatEvent,
  responses: responsesEvent,
  messages: messagesEvent,
  gemini: geminiReply,
}
