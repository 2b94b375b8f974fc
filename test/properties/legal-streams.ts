/** Generates grammatical streams of canonical events with seeded randomness. */
import { logprobOf, type ChatEvent, type FinishReason } from '../../src/formats/chat/event.js'

const TEXTS = ['a', ' ', '\n', 'é\u{1F600}', '"\\', '</s>', '\u2028', 'data: [DONE]', '\ud83d', 'null', '']
const ARGUMENTS = ['{}', '{"a":1}', '{"n":12345678901234567890}', '{"s":"}{"}', '{"é":[1,{"x":null}]}']
const REASONS: readonly FinishReason[] = ['stop', 'length', 'tool-use', 'filter', 'pause', 'other']
const WORDS = ['text', 'thinking', 'refusal'] as const

/** The options of generated streams. */
export interface Shape {
  /**
   * True for streams that chat completions can represent: no opaque block, no two adjacent blocks of a kind,
   * which would be merged, and only finish reasons of that format.
   */
  readonly isRepresentable: boolean
}

/** A whole stream, from start to finish. */
export function legalStream(
  roll: (n: number) => number,
  { isRepresentable }: Shape = { isRepresentable: false },
): ChatEvent[] {
  const events: ChatEvent[] = [{ type: 'start', id: 'up', model: 'up-model' }]
  const pick = <T>(from: readonly T[], other: T): T => from[roll(from.length)] ?? other
  let last = ''
  const cited: number[] = []
  const blocks = roll(6)
  for (let index = 0; index < blocks; index += 1) {
    const kinds = [
      'tool',
      'tool',
      'image',
      ...WORDS.filter((kind) => !isRepresentable || kind !== last),
    ] as const
    const kind = isRepresentable || roll(8) > 0 ? pick(kinds, 'tool') : 'opaque'
    last = kind
    if (kind === 'opaque') events.push({ type: kind, index, provider: 'anthropic', block: { index } })
    else if (kind === 'image') events.push({ type: kind, index, url: `data:image/png;base64,${index}` })
    else if (kind === 'tool') events.push(...call(index, pick(ARGUMENTS, '{}'), roll))
    else {
      events.push({ type: `${kind}-start`, index })
      for (let count = roll(4); count >= 0; count -= 1) {
        events.push({ type: `${kind}-delta`, index, text: pick(TEXTS, '') })
        if (kind === 'text' && !isRepresentable && roll(6) === 0) {
          events.push({ type: 'citation', index, citation: { url: 'https://a.example/' } })
        }
        if (kind === 'text' && !isRepresentable && roll(6) === 0) {
          events.push({ type: 'logprobs', index, tokens: [{ ...logprobOf('a', -0.5), top: [] }] })
        }
      }
      // A block without text does not exist in formats that have text only.
      if (isRepresentable) events.push({ type: `${kind}-delta`, index, text: 'x' })
      events.push({ type: `${kind}-end`, index })
      if (kind === 'text' && !isRepresentable) cited.push(index)
    }
    if (cited.length > 0 && roll(6) === 0) {
      events.push({ type: 'citation', index: pick(cited, 0), citation: { title: 'late' } })
    }
    if (!isRepresentable && roll(4) === 0) events.push({ type: 'usage', usage: { input: roll(100) } })
  }
  events.push({ type: 'usage', usage: { input: roll(1000), output: 1 + roll(999), reasoning: 1 } })
  const reasons = isRepresentable ? REASONS.slice(0, 4) : REASONS
  events.push({ type: 'finish', reason: pick(reasons, 'stop'), raw: null })
  return events
}

function call(index: number, json: string, roll: (n: number) => number): ChatEvent[] {
  const cut = roll(json.length)
  return [
    { type: 'tool-start', index, id: `call_${index}`, name: `f_${index}` },
    { type: 'tool-delta', index, json: json.slice(0, cut) },
    { type: 'tool-delta', index, json: json.slice(cut) },
    { type: 'tool-end', index },
  ]
}
