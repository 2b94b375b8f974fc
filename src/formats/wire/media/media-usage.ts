/** The usage of replies with pictures, sound and transcripts: tokens by kind, or seconds of sound. */
import { numberOf, objectOf, type JsonObject } from '../../../base/json.js'
import type { Usage } from '../../chat/usage.js'
import { usageIn } from '../usage-meter.js'

/**
 * The counts of a reply or of its last event. A zero is a count that the upstream does not have: all sound
 * has a length.
 *
 * Sources: OpenAI API reference, "Audio"; Mistral API, "Audio Transcriptions", read 2026-11-29.
 */
export function mediaUsage(reply: JsonObject): Usage {
  const usage = usageIn(reply)
  const { seconds, prompt_audio_seconds: input } = objectOf(reply['usage'])
  const count = numberOf(seconds ?? input)
  return count === undefined || count <= 0 ? usage : { ...usage, units: { audio_second: count } }
}

/** The usage of a reply that is all sound, or all pictures, unless the upstream counts the kinds apart. */
export function allOfKind(usage: Usage, kind: 'outputAudio' | 'outputImage'): Usage {
  const { output, outputText, outputAudio, outputImage, reasoning = 0 } = usage
  const isCounted = (outputText ?? outputAudio ?? outputImage) !== undefined
  return output === undefined || isCounted ? usage : { ...usage, [kind]: Math.max(0, output - reasoning) }
}
