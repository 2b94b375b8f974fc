/** A conversation with a model through the playground: sent whole, answered piece by piece. */
import { call, CallFailed } from './client.js'

/** One message. */
export interface Message {
  readonly role: 'system' | 'user' | 'assistant'
  readonly content: string
}

/** What is asked, in the words of the chat completions API. */
export interface ChatBody {
  readonly model: string
  readonly messages: readonly Message[]
  readonly stream: true
  readonly temperature?: number
  readonly max_completion_tokens?: number
}

/** What an answer was, once it has ended. */
export interface Ended {
  readonly requestId: string | null
  /** What translation could not carry. */
  readonly lost: readonly string[]
  readonly finish: string | null
}

/** A piece of the answer or of the thinking before it. */
export interface Piece {
  readonly text: string
  readonly thinking: string
}

/** Streams an answer. Throws `CallFailed` where it is refused or cut. */
export async function chat(
  body: ChatBody,
  signal: AbortSignal,
  onPiece: (piece: Piece) => void,
): Promise<Ended> {
  const response = await call('POST', '/playground/chat', { body, signal })
  const requestId = response.headers.get('x-request-id')
  const lost = (response.headers.get('x-sluice-lost') ?? '').split(',').map((path) => path.trim())
  let finish: string | null = null
  let done = false
  for await (const data of framesOf(response)) {
    if (data === '[DONE]') {
      done = true
      continue
    }
    const chunk = JSON.parse(data) as Chunk
    if (chunk.error !== undefined) throw failed(chunk.error.message, requestId)
    const choice = chunk.choices?.[0]
    finish = choice?.finish_reason ?? finish
    const { content, reasoning_content: thinking } = choice?.delta ?? {}
    if (content || thinking) onPiece({ text: content ?? '', thinking: thinking ?? '' })
  }
  if (!done) throw failed('The answer was cut: the connection ended before it did.', requestId)
  return { requestId, finish, lost: lost.filter((path) => path !== '') }
}

/** What is read of a chunk; the gateway wrote it by the same API. */
interface Chunk {
  readonly error?: { readonly message: string }
  readonly choices?: readonly {
    readonly delta?: {
      readonly content?: string | null
      readonly reasoning_content?: string | null
    }
    readonly finish_reason?: string | null
  }[]
}

function failed(message: string, requestId: string | null): CallFailed {
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
