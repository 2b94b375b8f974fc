/**
 * Collects a request body: takes chunks, and emits one checked value when the body is complete. The whole
 * body is buffered, so that a framing error at its end reaches no upstream and a second attempt is possible.
 */
import { Transform, type TransformCallback } from 'node:stream'

/** The checks of a body. Both functions throw to refuse it. */
interface RequestSteps<T> {
  /** Checks a chunk, and reserves room for it, before it is kept. */
  take(chunk: Buffer): void
  /** Parses and validates the complete body, whose chunks it may free. */
  check(chunks: Buffer[]): T
  /** The value of a body that is not collected to its end; null while it is. Absent: all are. */
  readonly early?: (chunks: readonly Buffer[]) => T | null
}

/** Emits `data` with the checked value once, or `error` with what a step threw. */
export class RequestTransform<T> extends Transform {
  private readonly steps: RequestSteps<T>
  private readonly chunks: Buffer[] = []

  constructor(steps: RequestSteps<T>) {
    super({ readableObjectMode: true })
    this.steps = steps
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    try {
      this.steps.take(chunk)
    } catch (error) {
      done(asError(error))
      return
    }
    this.chunks.push(chunk)
    let early: T | null
    try {
      early = this.steps.early?.(this.chunks) ?? null
    } catch (error) {
      done(asError(error))
      return
    }
    if (early === null) done()
    else done(null, early)
  }

  override _flush(done: TransformCallback): void {
    let value: T
    try {
      value = this.steps.check(this.chunks.splice(0))
    } catch (error) {
      done(asError(error))
      return
    }
    done(null, value)
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
