/**
 * The end of an answer whose request body has not been read.
 * Closing on unread bytes resets the connection, and with it the answer that the client has not read
 * yet; so the rest is read and thrown away for a moment, with the whole answer already sent.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'

/** nginx's lingering_timeout is 5 s; a client on a slow line gets a reset after this. */
const LINGER_MS = 1000

/**
 * Ends a response whose head and whole body are written: at once where the request has been read,
 * else when the client has stopped sending or been given time.
 */
export function endLingering(req: IncomingMessage, res: ServerResponse): void {
  if (req.complete) {
    res.end()
    return
  }
  const end = (): void => {
    clearTimeout(timer)
    res.end()
  }
  const timer = setTimeout(end, LINGER_MS)
  req.unpipe()
  req.once('end', end).once('close', end).resume()
}
