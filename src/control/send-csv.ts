/** Replies that are CSV files, written while they are read, so that memory use is constant. */
import { adminTurns } from '../base/turn-queue.js'
import type { Writable } from 'node:stream'
import { createGzip } from 'node:zlib'
import { headerOf, type HttpResponse } from '../http/message.js'
import { beginReply, isClosed } from '../http/respond.js'
import { accepts } from './compress.js'
import type { ControlExchange } from './control-router.js'

/** A file to send. */
interface CsvFile {
  /** Without `.csv`. */
  readonly name: string
  /** The header line, then the other lines; several lines each. */
  readonly parts: AsyncIterable<string>
  /** Further headers: name, value, …. */
  readonly headers?: readonly string[]
  /** The file may be compressed; it has no secret then. */
  readonly mayZip: boolean
}

/** The name of a file of everything up to now: `audit-2026-11-29`. */
export function datedName(kind: string, nowMs: number): string {
  return `${kind}-${new Date(nowMs).toISOString().slice(0, 10)}`
}

/**
 * Sends a file. The first part is read before the reply begins, so that a failure has a status; a later one
 * truncates the file, which browsers report as a failed download.
 */
export async function sendCsv(
  { req, res, requestId }: ControlExchange,
  { name, parts, headers = [], mayZip }: CsvFile,
): Promise<void> {
  const iterator = parts[Symbol.asyncIterator]()
  let part = await iterator.next()
  const isZipped = mayZip && accepts('gzip', headerOf(req, 'accept-encoding'))
  beginReply(res, 200, [
    ...['content-type', 'text/csv; charset=utf-8', 'x-request-id', requestId],
    ...['content-disposition', `attachment; filename="${name}.csv"`, 'cache-control', 'no-store'],
    ...(mayZip ? ['vary', 'accept-encoding'] : []),
    ...(isZipped ? ['content-encoding', 'gzip'] : []),
    ...headers,
  ])
  const zip = isZipped ? createGzip({ level: 1 }) : null
  zip?.pipe(res)
  const out = zip ?? res
  while (part.done !== true && !isClosed(res) && req.method !== 'HEAD') {
    if (!out.write(part.value)) await drained(out, res)
    // Other requests are served between two parts.
    await adminTurns.next()
    part = await iterator.next()
  }
  // Nothing more is read for a client that has disconnected, or that asked for the head.
  if (part.done !== true) await iterator.return?.()
  out.end()
}

/** Resolves when the client has read enough, or has disconnected. */
function drained(out: Writable, res: HttpResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      out.off('drain', done)
      res.off('close', done)
      resolve()
    }
    if (isClosed(res)) resolve()
    else {
      out.once('drain', done)
      res.once('close', done)
    }
  })
}
