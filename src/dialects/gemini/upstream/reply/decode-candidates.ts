/**
 * Several candidates of one answer, each read by a decoder of its own.
 * Knows nothing of what a candidate holds.
 */
import type { EventSink } from '../../../../chat/event.js'
import type { JsonValue } from '../../../../chat/json.js'
import type { ChatRequest } from '../../../../chat/request.js'
import type { ChoicesDecoder } from '../../../dialect.js'
import { GeminiDecoder } from '../decode-stream.js'

/** One sink for each candidate; all of them hear the counts, which are those of all together. */
export class CandidatesDecoder implements ChoicesDecoder {
  private readonly decoders: readonly GeminiDecoder[]

  constructor(request: ChatRequest, sinks: readonly EventSink[]) {
    this.decoders = sinks.map((sink, place) => new GeminiDecoder(request, sink, place))
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
