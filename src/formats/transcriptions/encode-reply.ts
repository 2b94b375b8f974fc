/** Transcripts to clients of OpenAI's format: JSON, text, subtitles or events. */
import type { JsonObject } from '../../base/json.js'
import type { MediaEvent, MediaWriter } from '../chat/media-event.js'
import type { ChatRequest } from '../chat/request.js'
import { transcribeTaskOf, type Segment, type TaskResult } from '../chat/task.js'
import type { Usage } from '../chat/usage.js'
import type { EncodedTask } from '../dialect.js'

const PLAIN = 'text/plain; charset=utf-8'

/** The whole reply; null if the result is no transcript, or lacks what its format needs. */
export function encodeTranscript(result: TaskResult, request: ChatRequest): EncodedTask | null {
  if (result.kind !== 'transcriptions') return null
  const { text, segments, usage } = result
  const { format } = transcribeTaskOf(request)
  const counts = usageBody(usage)
  const withUsage = counts === null ? {} : { usage: counts }
  if (request.stream) {
    const delta = { type: 'transcript.text.delta', delta: text }
    const speakers = format === 'diarized_json' ? speakerSegments(segments) : []
    return { body: [delta, ...speakers, doneEvent(text, usage)].map(eventText).join(''), type: null }
  }
  switch (format) {
    case 'text':
      return { body: `${text}\n`, type: PLAIN }
    case 'srt':
      return segments.length === 0 && text !== '' ? null : { body: srtOf(segments), type: PLAIN }
    case 'vtt':
      return segments.length === 0 && text !== '' ? null : { body: vttOf(segments), type: PLAIN }
    case 'verbose_json': {
      const numbered = segments.map(({ start, end, text: words }, id) => ({ id, start, end, text: words }))
      const body = { ...lengthOf(result), text, segments: numbered, ...withUsage }
      return { body: JSON.stringify({ task: 'transcribe', ...body }) }
    }
    case 'diarized_json': {
      const numbered = speakerSegments(segments)
      const { duration } = lengthOf(result)
      return {
        body: JSON.stringify({ task: 'transcribe', duration, text, segments: numbered, ...withUsage }),
      }
    }
    default:
      return { body: JSON.stringify({ text, ...withUsage }) }
  }
}

/** The segments with their speakers. */
function speakerSegments(segments: readonly Segment[]): JsonObject[] {
  return segments.map(({ start, end, text, speaker = '' }, at) => {
    return { type: 'transcript.text.segment', id: `seg_${at}`, start, end, speaker, text }
  })
}

function doneEvent(text: string, usage: Usage): JsonObject {
  const counts = usageBody(usage)
  return { type: 'transcript.text.done', text, ...(counts !== null && { usage: counts }) }
}

/** The length of the sound, as far as the upstream states it, and the language. */
function lengthOf({ usage, segments, language }: Extract<TaskResult, { kind: 'transcriptions' }>): {
  duration: number
  language: string
} {
  return { duration: usage.units?.audio_second ?? segments.at(-1)?.end ?? 0, language: language ?? '' }
}

function usageBody({ input, output, inputAudio, units }: Usage): JsonObject | null {
  const seconds = units?.audio_second
  if (seconds !== undefined) return { type: 'duration', seconds }
  if (input === undefined || output === undefined) return null
  const audio = inputAudio ?? 0
  return {
    type: 'tokens',
    input_tokens: input,
    input_token_details: { text_tokens: Math.max(0, input - audio), audio_tokens: audio },
    output_tokens: output,
    total_tokens: input + output,
  }
}

function srtOf(segments: readonly Segment[]): string {
  return segments
    .map(
      ({ start, end, text }, at) =>
        `${at + 1}\n${timeOf(start, ',')} --> ${timeOf(end, ',')}\n${text.trim()}\n\n`,
    )
    .join('')
}

function vttOf(segments: readonly Segment[]): string {
  const cues = segments.map(
    ({ start, end, text }) => `${timeOf(start, '.')} --> ${timeOf(end, '.')}\n${text.trim()}\n\n`,
  )
  return `WEBVTT\n\n${cues.join('')}`
}

/** `00:01:02,345` */
function timeOf(seconds: number, separator: string): string {
  const all = Math.max(0, Math.round(seconds * 1000))
  const two = (value: number): string => String(value).padStart(2, '0')
  const whole = Math.floor(all / 1000)
  const clock = `${two(Math.floor(whole / 3600))}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`
  return `${clock}${separator}${String(all % 1000).padStart(3, '0')}`
}

/** The writer of the client's stream. */
export function newTranscriptWriter(): MediaWriter {
  return {
    type: 'text/event-stream; charset=utf-8',
    isBytes: false,
    event: (event: MediaEvent) => {
      if (event.type === 'message') return eventText(event.body)
      return event.type === 'transcript' ? eventText(doneEvent(event.text, event.usage)) : ''
    },
  }
}

function eventText(body: JsonObject): string {
  return `data: ${JSON.stringify(body)}\n\n`
}
