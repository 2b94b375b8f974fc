/** Speech to clients of OpenAI's format: the bytes of the sound, or events. */
import type { MediaEvent, MediaWriter } from '../chat/media-event.js'
import type { ChatRequest } from '../chat/request.js'
import type { TaskResult } from '../chat/task.js'
import type { Usage } from '../chat/usage.js'
import type { EncodedTask } from '../dialect.js'
import { SOUND_TYPES, speechTaskOf } from '../wire/media/sound.js'

/** The whole reply; null if the result is no sound. */
export function encodeSpeech(result: TaskResult, request: ChatRequest): EncodedTask | null {
  if (result.kind !== 'speech') return null
  const { sound, format, usage } = result
  if (!request.stream) return { body: sound, type: SOUND_TYPES[format] }
  const events = [soundEvent(sound), doneEvent(usage)]
  return { body: events.join(''), type: null }
}

/** The writer of the client's stream. */
export function newSpeechWriter(request: ChatRequest): MediaWriter {
  const { format } = speechTaskOf(request)
  const writeBytes = (event: MediaEvent): string | Buffer => (event.type === 'sound' ? event.data : '')
  return request.stream
    ? { type: 'text/event-stream; charset=utf-8', isBytes: false, event: writeEvent }
    : { type: SOUND_TYPES[format], isBytes: true, event: writeBytes }
}

function writeEvent(event: MediaEvent): string {
  if (event.type === 'sound') return soundEvent(event.data)
  return event.type === 'done' ? doneEvent(event.usage) : ''
}

function soundEvent(data: Buffer): string {
  return `data: {"type":"speech.audio.delta","audio":"${data.toString('base64')}"}\n\n`
}

/** Members that the upstream does not report are left out. */
function doneEvent({ input, output }: Usage): string {
  const usage = {
    ...(input !== undefined && { input_tokens: input }),
    ...(output !== undefined && { output_tokens: output }),
    ...(input !== undefined && output !== undefined && { total_tokens: input + output }),
  }
  const done = { type: 'speech.audio.done', ...(Object.keys(usage).length > 0 && { usage }) }
  return `data: ${JSON.stringify(done)}\n\n`
}
