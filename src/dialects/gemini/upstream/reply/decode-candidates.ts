/**
 * Decodes several candidates of one reply, each with a decoder of its own.
 */
import type { EventSink } from '../../../../chat/event.js'
import type { JsonValue } from '../../../../chat/json.js'
import type { ChatRequest } from '../../../../chat/request.js'
import type { ChoicesDecoder } from '../../../dialect.js'
import { GeminiDecoder } from '../decode-stream.js'

/**
 * Decodes each candidate into its own sink. All sinks receive the usage, which is that of all candidates
 * together.
 */
export class CandidatesDecoder implements ChoicesDecoder {
  private readonly decoders: readonly GeminiDecoder[]

  constructor(request: ChatRequest, sinks: readonly EventSink[]) {
    this.decoders = sinks.map((sink, index) => new GeminiDecoder(request, sink, index))
  }

  take(body: JsonValue): void {
    for (const decoder of this.decoders) decoder.take(body)
  }

  frame(name: string, data: string): void {
    for (const decoder of this.decoders) decoder.frame(name, data)
  }

  end(): void {
    for (const decoder of this.decoders) decoder.end()
  }
}
