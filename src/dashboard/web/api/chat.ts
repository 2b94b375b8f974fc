/** Sends a conversation of the playground to a model in any client format, and streams the reply. */
import { inFormat, type Format, type FormatRequest } from '../format/request-formats.js'
import { call, CallFailed, urlOf } from './client.js'
import { READERS, type Progress } from './reply-readers.js'

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
  return urlOf(`/playground/${format}`, format === 'gemini' ? { model } : {})
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
