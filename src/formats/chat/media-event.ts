/** Streams of pictures, sound and transcripts between the upstream's format and the client's. Pure. */
import type { JsonObject } from '../../base/json.js'
import type { WireError } from '../../errors.js'
import type { Usage } from './usage.js'

/** One event of a stream. `done` is the last one of a complete stream. */
export type MediaEvent =
  | { readonly type: 'sound'; readonly data: Buffer }
  /** An event of OpenAI's format, which clients get unchanged. */
  | { readonly type: 'message'; readonly body: JsonObject }
  /** A whole picture as base64. */
  | { readonly type: 'picture'; readonly data: string; readonly format: string; readonly usage: Usage }
  /** The whole transcript. */
  | { readonly type: 'transcript'; readonly text: string; readonly usage: Usage }
  | { readonly type: 'done'; readonly usage: Usage }
  | { readonly type: 'error'; readonly error: WireError }

/** Reads the events of an upstream's stream. */
export interface MediaReader {
  /** The events in one frame. */
  frame(body: JsonObject): readonly MediaEvent[]
  /** The events when the upstream's stream ends without an error. */
  end(): readonly MediaEvent[]
  /** The model that serves the request, as the upstream names it; null if unknown. */
  readonly model: string | null
}

/** Writes the client's stream. */
export interface MediaWriter {
  /** The content type. */
  readonly type: string
  /** Whether the stream is bytes, into which no comment and no error can be written. */
  readonly isBytes: boolean
  event(event: MediaEvent): string | Buffer
}
