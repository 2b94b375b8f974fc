/** Sends the bytes of files of the gateway to a client. */
import { beginReply, isClosed } from '../../http/respond.js'
import type { Exchange } from '../client-exchange.js'
import { sent } from '../phases/relay.js'
import type { Delivery } from '../phases/phase-results.js'

/** A reply that is sent while it is read. */
interface LongReply {
  readonly type: string
  readonly chunks: AsyncIterable<Buffer>
  /** Its size; absent: not known. */
  readonly bytes?: number
  /** Name, value, … of further headers. */
  readonly headers?: readonly string[]
}

/** Sends the reply as fast as the client takes it. */
export async function sendBytes(
  x: Exchange,
  { type, chunks, bytes, headers = [] }: LongReply,
): Promise<Delivery> {
  const { res } = x
  x.cancellation.check()
  const length = bytes === undefined ? [] : ['content-length', String(bytes)]
  beginReply(res, 200, ['content-type', type, ...length, 'x-request-id', x.id, ...headers])
  let sentBytes = 0
  if (x.req.method !== 'HEAD') {
    for await (const chunk of chunks) {
      if (isClosed(res)) break
      sentBytes += chunk.length
      if (!res.write(chunk)) await drained(x)
    }
  }
  const closed = new Promise<void>((resolve) => res.once('close', resolve))
  res.end()
  return sent(bytes ?? sentBytes, closed)
}

/** Resolves when the client can take more, or has left. */
function drained({ res }: Exchange): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      res.off('drain', done).off('close', done)
      resolve()
    }
    res.on('drain', done).on('close', done)
  })
}
