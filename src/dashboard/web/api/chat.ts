/** A conversation with a model through the playground, in any client format: sent whole, answered piece by piece. */
import { inFormat, type Format, type FormatRequest } from '../format/request-formats.js'
import { call, CallFailed, urlOf } from './client.js'
import { READERS, type Progress } from './reply-readers.js'

/** What is asked. */
export interface Chat {
  readonly format: Format
  readonly model: string
  readonly request: FormatRequest
}

/** How a reply ended. */
export interface Ended {
  readonly requestId: string | null
  /** Fields that could not be translated. */
  readonly lost: readonly string[]
  readonly finish: string | null
}

/** A piece of the reply, or of the thinking before it. */
export interface Piece {
  readonly text: string
  readonly thinking: string
}

/** Streams a reply. Throws `CallFailed` if it is refused or cut. */
export async function chat(
  { format, model, request }: Chat,
  signal: AbortSignal,
  onPiece: (piece: Piece) => void,
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
    if (text !== '' || thinking !== '') onPiece({ text, thinking })
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
  // The playground sends the whole conversation each time.
  return { ...body, stream: true, ...(format === 'responses' ? { store: false } : {}) }
}

function broken(message: string, requestId: string | null): CallFailed {
  const id = requestId === null ? {} : { requestId }
  return new CallFailed({ message, status: 200, kind: 'stream', ...id })
}

/** The data of each event of a stream of server-sent events, one line each. */
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
