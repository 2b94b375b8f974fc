/**
 * What a deployment is for: LiteLLM's `mode`, and the operation that it becomes.
 *
 * Source: LiteLLM 1.110.2, `model_info.mode`, and the modes of its list of models.
 */
import type { JsonObject } from '../../../base/json.js'
import { PRESETS } from '../../../config/presets.js'
import { usualForms, type TaskForms, type TaskName } from '../../../formats/chat/operations.js'
import { NotCarried } from './address.js'

/** The operation of a deployment; `chat` is every kind of conversation. */
export type Served = 'chat' | 'embeddings' | TaskName

const MODES: Readonly<Record<string, Served>> = {
  chat: 'chat',
  completion: 'chat',
  responses: 'chat',
  embedding: 'embeddings',
  rerank: 'rerank',
  moderation: 'moderations',
  image_generation: 'images',
  audio_speech: 'speech',
  audio_transcription: 'transcriptions',
}

/** Modes of models by their names, where an entry names none: those of LiteLLM's own list. */
const MODES_BY_NAME: readonly (readonly [model: RegExp, mode: string])[] = [
  [/dall-e|gpt-image|imagen|stable-diffusion|flux/, 'image_generation'],
  [/whisper|transcribe/, 'audio_transcription'],
  [/(?:^|\/)tts-|-tts(?:-|$)/, 'audio_speech'],
  [/(?:^|\/)(?:sora|veo)-/, 'video_generation'],
  [/realtime/, 'realtime'],
  [/embed/, 'embedding'],
  [/rerank/, 'rerank'],
  [/moderation/, 'moderation'],
]

/** The operation of an entry. Throws `NotCarried` for a mode that only native access has. */
export function operationOf(info: JsonObject, model: string): Served {
  const named = MODES_BY_NAME.find(([pattern]) => pattern.test(model))?.[1] ?? 'chat'
  const mode = typeof info['mode'] === 'string' ? info['mode'] : named
  const served = Object.hasOwn(MODES, mode) ? MODES[mode] : undefined
  if (served === undefined) throw new NotCarried(`the mode ${mode}: use native access to the upstream`)
  return served
}

/** Throws `NotCarried` if the upstream does not serve the operation. */
export function checkServed(served: Served, model: string, upstream: JsonObject): void {
  if (served === 'chat' || served === 'embeddings') return
  const form = formsOf(upstream)[served]
  // Imagen has another method than Gemini's models that draw.
  if (form !== 'none' && !(form === 'gemini' && model.startsWith('imagen'))) return
  throw new NotCarried(`${served}, which the gateway does not serve there: use native access to the upstream`)
}

/** The forms of an upstream as the import writes it. */
function formsOf({ preset, dialect, platform }: JsonObject): TaskForms {
  const row = Object.entries(PRESETS).find(([name]) => name === preset)?.[1]
  if (row?.operations !== undefined) return row.operations
  const known = (['bedrock', 'vertex', 'azure'] as const).find((name) => name === platform) ?? null
  const own = typeof dialect === 'string' ? dialect : 'openai-chat'
  return usualForms({ dialect: row?.dialect ?? own, platform: known })
}
