/** Reads a stream of a transcript whole, for a reply that is judged before the client gets any of it. */
import { numberOf, stringOf } from '../base/json.js'
import type { Steps } from '../base/steps.js'
import type { WireError } from '../errors.js'
import type { MediaEvent, MediaReader } from './chat/media-event.js'
import type { Segment, TaskResult } from './chat/task.js'
import { MediaStream } from './media-stream.js'

/** The transcript in the events, or the error with which they end. Takes one chunk in each step. */
export function* foldTranscript(
  chunks: readonly Buffer[],
  reader: MediaReader,
): Steps<TaskResult | WireError> {
  const fold = new TranscriptFold()
  const stream = new MediaStream({ reader, writer: fold })
  for (const chunk of chunks) {
    stream.write(chunk)
    yield
  }
  stream.end()
  if (stream.error !== null) return stream.error
  const { text, segments } = fold
  return { kind: 'transcriptions', text, segments, language: null, usage: stream.usage, model: reader.model }
}

/** Takes the events instead of a client. */
class TranscriptFold {
  readonly type = ''
  readonly isBytes = false
  readonly segments: Segment[] = []
  private deltas = ''
  private whole: string | null = null

  get text(): string {
    return this.whole ?? this.deltas
  }

  event(event: MediaEvent): string {
    if (event.type === 'transcript') this.whole = event.text
    if (event.type !== 'message') return ''
    const { body } = event
    if (body['type'] === 'transcript.text.delta') this.deltas += stringOf(body['delta']) ?? ''
    else if (body['type'] === 'transcript.text.done') this.whole = stringOf(body['text']) ?? null
    else {
      const [start, end, text] = [numberOf(body['start']), numberOf(body['end']), stringOf(body['text'])]
      const speaker = stringOf(body['speaker'])
      if (start !== undefined && end !== undefined && text !== undefined) {
        this.segments.push({ start, end, text, ...(speaker !== undefined && { speaker }) })
      }
    }
    return ''
  }
}
