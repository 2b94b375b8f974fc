/**
 * The thread behind a `ZstdDecoder`: decodes one body, posts each piece as it comes, and `null` at the end.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { Decompress } from 'fzstd'
import { assertZstdFrames } from './zstd-frames.js'

/** What the thread is given: the whole coded body, and after how many bytes of output it stops. */
export interface ZstdOrder {
  readonly body: Uint8Array
  readonly maxBytes: number
}

/** `fzstd` decodes all that it is given: a few bytes of a bomb make 128 KiB each. */
const SLICE_BYTES = 1024

decode(workerData as ZstdOrder)

function decode({ body, maxBytes }: ZstdOrder): void {
  assertZstdFrames(body)
  let sent = 0
  const decoder = new Decompress((piece) => {
    if (piece.length === 0 || sent > maxBytes) return
    sent += piece.length
    // A copy: the decoder may go on using the piece.
    const copy = new Uint8Array(piece)
    parentPort?.postMessage(copy, [copy.buffer])
  })
  for (let at = 0; at < body.length && sent <= maxBytes; at += SLICE_BYTES) {
    const end = at + SLICE_BYTES
    decoder.push(body.subarray(at, end), end >= body.length)
  }
  parentPort?.postMessage(null)
}
