/**
 * The interfaces of codecs for streams: decoders, encoders, and taps, which watch a stream that passes
 * through.
 */
import type { EventSink, FinishReason } from '../chat/event.js'
import type { JsonObject, JsonValue } from '../chat/json.js'
import type { OutputSize } from '../chat/reply/output-size.js'
import type { Usage } from '../chat/usage.js'
import type { WireError } from '../errors.js'
import type { FrameSink } from '../wire/frames/framer-types.js'

/**
 * Decodes the frames of a stream: `frame` is called any number of times, then `end` once. Emits a grammatical
 * event stream for any frames.
 */
export interface StreamDecoder extends FrameSink {
  end(): void
  /** The stream ended before its terminator, so that counts after its content may be missing. */
  readonly wasCut?: boolean
}

/** A decoder for several choices, of streams and of whole bodies. */
export interface ChoicesDecoder extends StreamDecoder {
  /** Takes a whole body, or an array of all chunks of a stream. */
  take(body: JsonValue): void
}

/** Encodes the events of a stream, which must be in the order of the grammar. */
export interface StreamEncoder extends EventSink {
  /** Returns and removes the frames so far. */
  take(): string
  /**
   * The frame that ends the stream in an error; absent if `encodeStreamError` needs nothing of the stream.
   */
  failed?(error: WireError): string | null
  /** The whole reply as JSON text, once it has finished, if the format's last frame repeats it. */
  readonly response?: string | null
}

/** The part of a request that a tap needs. */
export interface TapRequest {
  /** Whether the client requested the usage frame. */
  includeUsage: boolean
  /** Called with the whole reply if the format's last frame repeats it, before that frame is forwarded. */
  onWhole?: ((reply: JsonObject) => void) | undefined
}

/** The facts that a tap collects. */
export interface TapResult {
  readonly usage: Usage
  readonly reason: FinishReason | null
  /** An error that the upstream sent with status 200. */
  readonly error: WireError | null
  /** The model that served the reply, as the upstream names it. */
  readonly model: string | null
  /** The vendor's service tier of the reply; null if unknown. */
  readonly tier: string | null
  /** The size of the output so far; for a whole reply only if it has no usage. */
  readonly outputSize: OutputSize
}

/** Watches a stream that passes through unchanged. */
export interface StreamTap extends TapResult {
  /**
   * False for a frame that must not reach the client: an error, or a frame that only the gateway requested.
   */
  frame(name: string, data: string): boolean
  /** The part of the last frame that only the gateway requested; empty if there is none. */
  readonly excess: string
  /** A frame that the upstream omitted, to be sent before the last frame; empty if there is none. */
  readonly missingFrame: string
  /** The stream has content, so the request must not be retried. */
  readonly hasContent: boolean
  /** The format's own terminator arrived, so an end of file completes the reply. */
  readonly isComplete: boolean
  /** Every choice that began has a finish reason, so an end of file truncates none. */
  readonly isFinished: boolean
  /** The terminator, which the gateway sends after a finished stream without one. */
  readonly terminator: string
  /**
   * The frame that ends the stream in an error; absent if `encodeStreamError` needs nothing of the stream.
   */
  failed?(error: WireError): string | null
}
