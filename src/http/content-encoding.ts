/**
 * Compressed request bodies: the supported codings, and the stream that decodes each. Decoding runs in chunks
 * off the main thread, so that the reader can stop a body that grows too large.
 */
import { Transform, type Duplex, type TransformCallback } from 'node:stream'
import { Worker } from 'node:worker_threads'
import * as zlib from 'node:zlib'
import { programFile } from '../config/package-file.js'
import { GatewayError } from '../errors.js'
import { headerOf, type HttpRequest } from './message.js'
import { ZSTD_MAX_WINDOW_LOG } from './zstd-frames.js'
import type { ZstdJob } from './zstd-thread.js'

/** Supported values of a request's `content-encoding`, besides `identity`. */
export const CODINGS = ['gzip', 'deflate', 'br', 'zstd'] as const

export type Coding = (typeof CODINGS)[number]

/** Bytes of each output chunk. */
const CHUNK_BYTES = 64 * 1024

/**
 * The coding of the body; null if it has none. Throws `unsupported_media_type` for other codings and for
 * several.
 */
export function codingOf(req: HttpRequest): Coding | null {
  const value = headerOf(req, 'content-encoding')
  if (value === undefined) return null
  const name = value.trim().toLowerCase()
  if (name === 'identity' || name === '') return null
  const coding = CODINGS.find((each) => each === (name === 'x-gzip' ? 'gzip' : name))
  if (coding !== undefined) return coding
  throw new GatewayError(
    'unsupported_media_type',
    `The content-encoding of the body must be one of ${CODINGS.join(', ')}, or absent.`,
    { param: 'content-encoding' },
  )
}

/**
 * A stream from the coded bytes to the body. It fails with an `Error` if the bytes are invalid or truncated.
 * Decoding may stop after `maxBytes`.
 */
export function decoderFor(coding: Coding, maxBytes: number): Duplex {
  const options = { chunkSize: CHUNK_BYTES }
  switch (coding) {
    case 'gzip':
      return zlib.createGunzip(options)
    case 'deflate':
      return zlib.createInflate(options)
    case 'br':
      return zlib.createBrotliDecompress(options)
    case 'zstd':
      return zstdDecoder(CHUNK_BYTES, maxBytes)
    default:
      return coding satisfies never
  }
}

/** The part of `node:zlib` that Node 20 lacks. */
interface ZstdOfNode {
  readonly createZstdDecompress: (options: {
    readonly chunkSize: number
    readonly params: Readonly<Record<number, number>>
  }) => Duplex
  readonly constants: { readonly ZSTD_d_windowLogMax: number }
}

function hasZstd(module: object): module is ZstdOfNode {
  return 'createZstdDecompress' in module
}

function zstdDecoder(chunkSize: number, maxBytes: number): Duplex {
  const module: object = zlib
  if (!hasZstd(module)) return new ZstdDecoder(maxBytes)
  const params = { [module.constants.ZSTD_d_windowLogMax]: ZSTD_MAX_WINDOW_LOG }
  return module.createZstdDecompress({ chunkSize, params })
}

const THREAD = programFile('http/zstd-thread.js')
/** Heap of the thread, without the coded body and the output chunks. */
const HEAP = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8 }
/** A body of 32 MiB takes 0.3 s. */
const MAX_MS = 5_000
/** Bodies that are decoded concurrently; others wait. */
const MAX_THREADS = 4

let threads = 0
const waiting: (() => void)[] = []

/**
 * zstd for Node 20, whose `node:zlib` lacks it: collects the coded body, and decodes it with `fzstd` in a
 * thread, since one hostile block can occupy it for seconds. The thread ends with the body, or when the
 * stream is destroyed. Fails with an `Error` if the body cannot be decoded.
 */
class ZstdDecoder extends Transform {
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
