/** Judges the texts in the whole reply to a task: transcripts, and the prompts that a vendor has revised. */
import { arrayOf, isObject, numberOf, stringOf, type JsonObject, type JsonValue } from '../../base/json.js'
import type { WireError } from '../../errors.js'
import type { ChatEvent } from '../../formats/chat/event.js'
import type { TaskResult } from '../../formats/chat/task.js'
import { JudgedTranscript, type MaskedPart } from '../../formats/transcriptions/masked-transcript.js'
import type { EventGuard, ReplyResult } from '../../formats/translated-stream.js'

/** The reply after a mask. */
interface MaskedReply {
  readonly read: TaskResult
  /** The body of the upstream with the same texts; null if there is none that the client could get. */
  readonly body: JsonObject | null
}

/** The texts of a reply, and the reply with others in their places. */
interface ReplyTexts {
  readonly texts: readonly string[]
  masked(texts: readonly string[]): MaskedReply
}

/** The texts of a reply that are judged; null if it has none. `body`: what the client would get unchanged. */
export function textsOfReply(read: TaskResult, body: JsonValue): ReplyTexts | null {
  if (read.kind === 'transcriptions') {
    return isObject(body) ? ownTranscript(read, body) : encodedTranscript(read)
  }
  return read.kind === 'images' ? revisedPrompts(read, body) : null
}

type Transcript = Extract<TaskResult, { kind: 'transcriptions' }>
type Pictures = Extract<TaskResult, { kind: 'images' }>

function encodedTranscript(read: Transcript): ReplyTexts {
  const judged = new JudgedTranscript(read.text, [read.segments.map(({ text }) => text)])
  return {
    texts: judged.texts,
    masked: (texts) => {
      const [parts = []] = judged.masked(texts)
      const segments = parts.flatMap(({ first, last, text }) => {
        const segment = read.segments[first]
        return segment === undefined
          ? []
          : [{ ...segment, end: read.segments[last]?.end ?? segment.end, text }]
      })
      return { read: { ...read, text: texts[0] ?? '', segments }, body: null }
    },
  }
}

/** Members of a transcript without its text: others, such as tokens and probabilities, may have it. */
const KEPT = ['task', 'model', 'language', 'languages', 'duration', 'usage', 'x_groq']

function ownTranscript(read: Transcript, body: JsonObject): ReplyTexts {
  const segments = arrayOf(body['segments']).filter(isObject)
  const words = arrayOf(body['words']).filter(isObject)
  const textsIn = (list: readonly JsonObject[], key: string): string[] =>
    list.map((each) => stringOf(each[key]) ?? '')
  const judged = new JudgedTranscript(read.text, [textsIn(segments, 'text'), textsIn(words, 'word')])
  return {
    texts: judged.texts,
    masked: (texts) => {
      const [maskedSegments = [], maskedWords = []] = judged.masked(texts)
      const kept = Object.entries(body).filter(([key]) => KEPT.includes(key))
      const masked = {
        ...Object.fromEntries(kept),
        text: texts[0] ?? '',
        ...(segments.length > 0 && { segments: maskedItems(segments, maskedSegments, 'text') }),
        ...(words.length > 0 && { words: maskedItems(words, maskedWords, 'word') }),
      }
      return { read: { ...read, text: masked.text }, body: masked }
    },
  }
}

/** The items with their times, ids and speakers; other members may have the text, too. */
function maskedItems(
  items: readonly JsonObject[],
  masked: readonly MaskedPart[],
  key: 'text' | 'word',
): JsonObject[] {
  return masked.map(({ first, last, text }) => {
    const item = items[first] ?? {}
    const kept = Object.entries(item).filter(
      ([name, value]) => typeof value === 'number' || name === 'id' || name === 'type' || name === 'speaker',
    )
    const end = numberOf(items[last]?.['end'])
    return { ...Object.fromEntries(kept), ...(end !== undefined && { end }), [key]: text }
  })
}

function revisedPrompts(read: Pictures, body: JsonValue): ReplyTexts | null {
  const places = read.pictures.flatMap(({ revisedPrompt }, at) => (revisedPrompt === null ? [] : [at]))
  if (places.length === 0) return null
  return {
    texts: places.map((at) => read.pictures[at]?.revisedPrompt ?? ''),
    masked: (texts) => {
      const by = new Map(places.map((at, index) => [at, texts[index] ?? '']))
      const pictures = read.pictures.map((each, at) => ({ ...each, revisedPrompt: by.get(at) ?? null }))
      const own = isObject(body) ? body : null
      const data = arrayOf(own?.['data'])
        .filter(isObject)
        .map((each, at) => {
          const text = by.get(at)
          return text === undefined ? each : { ...each, revised_prompt: text }
        })
      return { read: { ...read, pictures }, body: own === null ? null : { ...own, data } }
    },
  }
}

/** The texts after the guardrails, or why the client gets none. */
type JudgedReplyTexts =
  | { readonly texts: readonly string[] }
  | { readonly error: WireError; readonly blocked: ReplyResult['blocked'] }

/** Runs the texts through the guardrails as the text blocks of one reply. */
export async function judgedTexts(texts: readonly string[], guard: EventGuard): Promise<JudgedReplyTexts> {
  const events = texts.flatMap((text, index): ChatEvent[] => [
    { type: 'text-start', index },
    { type: 'text-delta', index, text },
    { type: 'text-end', index },
  ])
  const judged = texts.map(() => '')
  const errors: WireError[] = []
  const judging = guard.take([...events, { type: 'finish', reason: 'stop', raw: null }], (released) => {
    for (const event of released) {
      if (event.type === 'text-delta') judged[event.index] = (judged[event.index] ?? '') + event.text
      else if (event.type === 'error') errors.push(event.error)
    }
  })
  if (judging !== null) await judging
  const [error] = errors
  return error === undefined ? { texts: judged } : { error, blocked: guard.blocked }
}
