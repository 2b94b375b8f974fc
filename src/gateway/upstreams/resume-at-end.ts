/**
 * Lets a connection end while its reply is paused, as a slow client makes it. If the reply has `connection:
 * close`, undici asserts at the end of the connection that its parser is not paused, and the failed assertion
 * would end the process.
 */
import { subscribe } from 'node:diagnostics_channel'
import { Socket } from 'node:net'

/** What undici keeps for the replies of a connection. */
interface Parser {
  paused: boolean
  readonly ptr: number
  readonly llhttp: { llhttp_resume(ptr: number): void }
  resume(): void
}

/** The description of the symbol under which a socket has its parser. */
const PARSER = 'parser'

subscribe('undici:client:connected', (message) => {
  if (typeof message !== 'object' || message === null || !('socket' in message)) return
  const { socket } = message
  if (!(socket instanceof Socket)) return
  // Before the listeners of undici.
  socket.prependListener('end', () => {
    const parser = parserOf(socket)
    if (parser !== null) finishPaused(parser)
  })
  // What is left of the reply is lost, and the request fails.
  for (const event of ['error', 'close']) {
    socket.prependListener(event, () => {
      const parser = parserOf(socket)
      if (parser !== null) parser.paused = false
    })
  }
})

/** All of the reply is with its reader when a socket reports its end: only the parser has to go on. */
function finishPaused(parser: Parser): void {
  if (isPaused(parser)) parser.resume()
  if (!isPaused(parser)) return
  // The reply ends with the connection, and an empty part of it was not taken.
  parser.llhttp.llhttp_resume(parser.ptr)
  parser.paused = false
}

function isPaused({ paused }: Parser): boolean {
  return paused
}

function parserOf(socket: Socket): Parser | null {
  const symbol = Object.getOwnPropertySymbols(socket).find(({ description }) => description === PARSER)
  const parser: unknown = symbol === undefined ? null : Reflect.get(socket, symbol)
  return isParser(parser) ? parser : null
}

function isParser(value: unknown): value is Parser {
  if (typeof value !== 'object' || value === null) return false
  if (!('paused' in value && 'ptr' in value && 'resume' in value && 'llhttp' in value)) return false
  const { ptr, resume, llhttp } = value
  if (typeof ptr !== 'number' || typeof resume !== 'function') return false
  return typeof llhttp === 'object' && llhttp !== null && 'llhttp_resume' in llhttp
}
