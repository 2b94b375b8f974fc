/**
 * Decodes several choices of one reply, each with a decoder of its own, for clients of other formats. Chat
 * clients get the upstream's own bytes.
 */
import type { EventSink } from '../../../../chat/event.js'
import {
  arrayOf,
  isObject,
  type JsonObject,
  type JsonValue,
  objectOf,
} from '../../../../chat/json.js'
import type { ChatRequest } from '../../../../chat/request.js'
import type { ChoicesDecoder } from '../../../dialect.js'
import { ChunkDecoder } from '../decode-stream.js'

/** One sink for each choice. Every sink gets the usage, which counts all choices together. */
export class ChoicesOfReply implements ChoicesDecoder {
  private readonly decoders: readonly ChunkDecoder[]

  constructor(request: ChatRequest, sinks: readonly EventSink[]) {
    this.decoders = sinks.map((sink) => new ChunkDecoder(request, sink))
  }

  take(body: JsonValue): void {
    if (Array.isArray(body)) for (const chunk of body) this.frame('', JSON.stringify(chunk))
    else
      for (const [at, each] of this.decoders.entries()) each.whole(onlyChoice(objectOf(body), at))
  }

  frame(name: string, data: string): void {
    const chunk = parsed(data)
    for (const [at, each] of this.decoders.entries()) {
      each.frame(name, chunk === null ? data : JSON.stringify(onlyChoice(chunk, at)))
    }
  }

  end(): void {
    for (const each of this.decoders) each.end()
  }
}

/** The chunk with one of its choices, which gets the index 0. */
function onlyChoice(chunk: JsonObject, position: number): JsonObject {
  const choices = arrayOf(chunk['choices'])
    .map(objectOf)
    .filter(({ index }) => (index ?? 0) === position)
  return { ...chunk, choices: choices.map((choice) => ({ ...choice, index: 0 })) }
}

/** Null for `[DONE]` and malformed frames. */
function parsed(data: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(data)
    return isObject(value) ? value : null
  } catch {
    return null
  }
}
