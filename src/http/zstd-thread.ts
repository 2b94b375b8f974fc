/** The thread of a `ZstdDecoder`: decodes one body, posts each chunk, and `null` at the end. */
import { parentPort, workerData } from 'node:worker_threads'
import { Decompress } from 'fzstd'
import { assertZstdFrames } from './zstd-frames.js'

/** A job for the thread: the whole coded body, and the number of output bytes after which it stops. */
export interface ZstdJob {
  readonly body: Uint8Array
  readonly maxBytes: number
}

/** `fzstd` decodes each write completely: a few bytes of a decompression bomb make 128 KiB each. */
const SLICE_BYTES = 1024

decode(workerData as ZstdJob)

function decode({ body, maxBytes }: ZstdJob): void {
  assertZstdFrames(body)
  let sent = 0
  const decoder = new Decompress((chunk) => {
    if (chunk.length === 0 || sent > maxBytes) return
    sent += chunk.length
    // A copy, because the decoder may reuse the chunk.
    const copy = new Uint8Array(chunk)
    parentPort?.postMessage(copy, [copy.buffer])
  })
  for (let at = 0; at < body.length && sent <= maxBytes; at += SLICE_BYTES) {
    const end = at + SLICE_BYTES
    decoder.push(body.subarray(at, end), end >= body.length)
  }
  parentPort?.postMessage(null)
}
