/**
 * zstd for Node 20, whose `node:zlib` lacks it: `fzstd` in a thread, since one hostile block can occupy it
 * for seconds. The thread ends with the body, or when the stream is destroyed.
 */
import { Transform, type TransformCallback } from 'node:stream'
import { Worker } from 'node:worker_threads'
import type { ZstdJob } from './zstd-thread.js'

const THREAD = new URL('./zstd-thread.js', import.meta.url)
/** Heap of the thread, without the coded body and the output chunks. */
const HEAP = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8 }
/** A body of 32 MiB takes 0.3 s. */
const MAX_MS = 5_000
/** Bodies that are decoded concurrently; others wait. */
const MAX_THREADS = 4

let threads = 0
const waiting: (() => void)[] = []

/** Collects the coded body and emits the decoded one. Fails with an `Error` if it cannot be decoded. */
export class ZstdDecoder extends Transform {
  private readonly maxBytes: number
  private readonly chunks: Buffer[] = []
  private thread: Worker | null = null

  /** `maxBytes`: after this many bytes at most one more chunk is emitted. */
  constructor(maxBytes: number) {
    super()
    this.maxBytes = maxBytes
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.chunks.push(chunk)
    done()
  }

  override _flush(done: TransformCallback): void {
    const start = (): void => this.start(done)
    if (threads < MAX_THREADS) start()
    else waiting.push(start)
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    void this.thread?.terminate()
    done(error)
  }

  private start(done: TransformCallback): void {
    if (this.destroyed) {
      waiting.shift()?.()
      return
    }
    const body = new Uint8Array(Buffer.concat(this.chunks))
    this.chunks.length = 0
    const job: ZstdJob = { body, maxBytes: this.maxBytes }
    const options = { resourceLimits: HEAP, execArgv: [], transferList: [body.buffer] }
    const thread = new Worker(THREAD, { workerData: job, ...options })
    threads += 1
    this.thread = thread
    const timer = setTimeout(() => void thread.terminate(), MAX_MS)
    let problem: Error | null = new Error('the zstd body takes too long to decode')
    thread.on('message', (chunk: unknown) => {
      if (chunk instanceof Uint8Array) this.push(Buffer.from(chunk.buffer))
      else problem = null
    })
    thread.once('error', (error) => (problem = error instanceof Error ? error : problem))
    thread.once('exit', () => {
      threads -= 1
      clearTimeout(timer)
      this.thread = null
      waiting.shift()?.()
      if (!this.destroyed) done(problem)
    })
  }
}
