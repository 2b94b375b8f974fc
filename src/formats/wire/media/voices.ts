/**
 * Voices of Gemini's speech, and those of OpenAI of a similar pitch.
 *
 * Source: Gemini API, "Speech generation", "Voice options", read 2026-11-29.
 */

const VOICES: ReadonlySet<string> = new Set(
  (
    'Zephyr Puck Charon Kore Fenrir Leda Orus Aoede Callirrhoe Autonoe Enceladus Iapetus Umbriel Algieba ' +
    'Despina Erinome Algenib Rasalgethi Laomedeia Achernar Alnilam Schedar Gacrux Pulcherrima Achird ' +
    'Zubenelgenubi Vindemiatrix Sadachbia Sadaltager Sulafat'
  ).split(' '),
)

/** A voice of Gemini for each of OpenAI's, of a similar pitch. */
const SIMILAR: ReadonlyMap<string, string> = new Map([
  ['alloy', 'Kore'],
  ['ash', 'Charon'],
  ['ballad', 'Algieba'],
  ['coral', 'Aoede'],
  ['echo', 'Puck'],
  ['fable', 'Sadachbia'],
  ['onyx', 'Orus'],
  ['nova', 'Leda'],
  ['sage', 'Sulafat'],
  ['shimmer', 'Zephyr'],
  ['verse', 'Fenrir'],
  ['marin', 'Despina'],
  ['cedar', 'Iapetus'],
])
const BACK: ReadonlyMap<string, string> = new Map([...SIMILAR].map(([own, google]) => [google, own]))
/** OpenAI's voice for those of Gemini without a similar one. */
const USUAL = 'alloy'

/** Whether Gemini has a voice of this name. */
export function isGeminiVoice(name: string): boolean {
  return VOICES.has(name)
}

/** Gemini's voice that is similar to one of OpenAI's; undefined for any other name. */
export function geminiVoiceLike(name: string): string | undefined {
  return SIMILAR.get(name)
}

/** OpenAI's voice in place of one of Gemini's; null for any other name. */
export function openAiVoice(name: string): string | null {
  return BACK.get(name) ?? (VOICES.has(name) ? USUAL : null)
}
