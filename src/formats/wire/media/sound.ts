/** Requests for speech, and sound: its content types, and WAV's header for samples without one. */
import type { ChatRequest } from '../../chat/request.js'
import type { SoundFormat, SpeechTask } from '../../chat/task.js'
import { refused } from '../json/check-fields.js'
import type { Losses } from './one-turn.js'

/** The task of the request. Throws if the request has no text for speech. */
export function speechTaskOf({ task }: ChatRequest): SpeechTask {
  if (task?.kind !== 'speech') throw new Error('the request has no text for speech')
  return task
}

/** Reports the options that only OpenAI's speech has. */
export function dropSpeechOptions(request: ChatRequest, losses: Losses): void {
  const { instructions, speed } = speechTaskOf(request)
  if (instructions !== undefined) losses.drop('instructions', 'no-equivalent')
  if (speed !== undefined && speed !== 1) losses.drop('speed', 'no-equivalent')
  for (const key of Object.keys(request.rest)) losses.drop(key, 'no-equivalent')
}

/** Throws `untranslatable` if the vendor does not make the format. */
export function checkSoundFormat(format: SoundFormat, formats: readonly SoundFormat[], vendor: string): void {
  if (formats.includes(format)) return
  throw refused('response_format', `${vendor} does not make ${format}. Use ${formats.join(', ')}.`)
}

/** The content type of each format, as OpenAI names it. */
export const SOUND_TYPES: Readonly<Record<SoundFormat, string>> = {
  mp3: 'audio/mpeg',
  opus: 'audio/ogg',
  aac: 'audio/aac',
  flac: 'audio/flac',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
  ogg: 'audio/ogg',
  mulaw: 'audio/basic',
  alaw: 'audio/alaw',
}

/**
 * The formats of sound in a request, by OpenAI's names and those of other vendors of its format, with their
 * media types; the first one is that which Google lists.
 *
 * Sources: OpenRouter, "Audio Inputs"; Google, "Audio understanding" (Gemini API and Vertex AI), read
 * 2026-11-30.
 */
const SOUND_INPUTS = {
  wav: ['audio/wav', 'audio/x-wav', 'audio/wave', 'audio/vnd.wave'],
  mp3: ['audio/mp3', 'audio/mpeg'],
  aac: ['audio/aac', 'audio/x-aac'],
  aiff: ['audio/aiff', 'audio/x-aiff'],
  flac: ['audio/flac', 'audio/x-flac'],
  m4a: ['audio/m4a', 'audio/x-m4a', 'audio/mp4'],
  ogg: ['audio/ogg'],
  opus: ['audio/opus'],
  pcm16: ['audio/pcm', 'audio/l16'],
  webm: ['audio/webm'],
} as const satisfies Record<string, readonly [string, ...string[]]>

/** The names of these formats. */
export const SOUND_INPUT_FORMATS = Object.keys(SOUND_INPUTS)

const TYPES_BY_FORMAT: ReadonlyMap<string, string> = new Map(
  Object.entries(SOUND_INPUTS).map(([format, [type]]) => [format, type]),
)

const FORMATS_BY_TYPE: ReadonlyMap<string, string> = new Map(
  Object.entries(SOUND_INPUTS).flatMap(([format, types]) => types.map((type) => [type, format] as const)),
)

/** The media type of sound in the format; undefined for an unknown format. */
export function soundTypeOf(format: string): string | undefined {
  return TYPES_BY_FORMAT.get(format)
}

/** The format of sound of the media type; undefined for another type. */
export function soundFormatOf(mediaType: string): string | undefined {
  return FORMATS_BY_TYPE.get(mediaType)
}

/** Samples of 16 bits of one channel, little-endian. */
const SAMPLE_BYTES = 2
const HEADER_BYTES = 44

/** The length of data that is not known yet. */
const OPEN_LENGTH = 0xffff_ffff

/** The samples as a WAV file (Microsoft, "Multimedia Programming Interface": RIFF, `fmt `, `data`). */
export function wavOf(samples: Buffer, sampleRate: number): Buffer {
  return Buffer.concat([wavHeader(sampleRate, samples.length), samples])
}

/** The header of a WAV file; `null`: more samples follow. */
export function wavHeader(sampleRate: number, bytes: number | null): Buffer {
  const header = Buffer.alloc(HEADER_BYTES)
  header.write('RIFF', 0, 'latin1')
  header.writeUInt32LE(bytes === null ? OPEN_LENGTH : HEADER_BYTES - 8 + bytes, 4)
  header.write('WAVEfmt ', 8, 'latin1')
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(sampleRate, 24)
  header.writeUInt32LE(sampleRate * SAMPLE_BYTES, 28)
  header.writeUInt16LE(SAMPLE_BYTES, 32)
  header.writeUInt16LE(SAMPLE_BYTES * 8, 34)
  header.write('data', 36, 'latin1')
  header.writeUInt32LE(bytes ?? OPEN_LENGTH, 40)
  return header
}

/** Samples with their rate. */
interface Samples {
  readonly samples: Buffer
  readonly rate: number
}

/** The samples in a WAV file; null for other bytes. A size of data that is not known reaches to the end. */
export function samplesOf(file: Buffer): Samples | null {
  if (file.toString('latin1', 0, 4) !== 'RIFF' || file.toString('latin1', 8, 12) !== 'WAVE') return null
  let rate: number | null = null
  for (let at = 12; at + 8 <= file.length;) {
    const id = file.toString('latin1', at, at + 4)
    const size = file.readUInt32LE(at + 4)
    if (id === 'fmt ' && at + 16 <= file.length) rate = file.readUInt32LE(at + 12)
    if (id === 'data') return rate === null ? null : { samples: file.subarray(at + 8, at + 8 + size), rate }
    at += 8 + size + (size % 2)
  }
  return null
}
