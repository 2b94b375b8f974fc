/**
 * Requests and replies of operations whose reply is neither a chat nor vectors. The texts of such a request
 * are also its messages, for limits, guardrails and estimates.
 */
import type { JsonValue } from '../../base/json.js'
import type { OutputSize } from './output-size.js'
import type { UploadPart } from './upload.js'
import type { Usage } from './usage.js'

/** One document to rank. */
export interface RankedDocument {
  /** The text that is ranked, for upstreams that take texts only. */
  readonly text: string
  /** As the client sent it: the text, or an object. */
  readonly source: JsonValue
}

/** Ranks documents by a query. */
export interface RankTask {
  readonly kind: 'rerank'
  readonly query: string
  readonly documents: readonly RankedDocument[]
  /** The number of results; absent: all documents. */
  readonly topN?: number
  readonly returnDocuments: boolean
  /** Members of documents that are ranked, in order. */
  readonly rankFields?: readonly string[]
  /** Tokens of a document that are read. */
  readonly maxTokensPerDocument?: number
  readonly maxChunksPerDocument?: number
  readonly priority?: number
  readonly truncation?: boolean
}

/** A part of an input to moderate. */
export type ModeratedPart =
  { readonly type: 'text'; readonly text: string } | { readonly type: 'image'; readonly url: string }

/** Judges inputs by the categories of a moderation model. */
export interface ModerateTask {
  readonly kind: 'moderations'
  /** The parts of each input; each input has one result. */
  readonly inputs: readonly (readonly ModeratedPart[])[]
  /** The client sent one text instead of a list. */
  readonly isSingle: boolean
}

/** Formats of sound, by OpenAI's names and those of its vendors. */
export const SOUND_FORMATS = ['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm', 'ogg', 'mulaw', 'alaw'] as const
export type SoundFormat = (typeof SOUND_FORMATS)[number]

/** Makes speech of a text. */
export interface SpeechTask {
  readonly kind: 'speech'
  readonly input: string
  /** The name of a voice, or the id of one of the account. */
  readonly voice: { readonly name: string } | { readonly id: string }
  readonly instructions?: string
  readonly format: SoundFormat
  readonly speed?: number
}

/** Draws pictures, or changes those of the request. */
export interface DrawTask {
  readonly kind: 'images' | 'image_edits'
  readonly prompt: string
  readonly count: number
  /** Incomplete pictures that a stream has before each whole one. */
  readonly partial: number
  /** `1024x1024`, or `auto`. */
  readonly size: string
  readonly quality: string
  /** All fields but `model` and `prompt`, as the client sent them; of a file its name. */
  readonly fields: Readonly<Record<string, JsonValue>>
  /** The client's form; absent for a body of JSON. */
  readonly parts?: readonly UploadPart[]
}

/** One picture: base64, or the address where it is. */
export interface Picture {
  readonly data: string | null
  readonly url: string | null
  readonly revisedPrompt: string | null
}

/** Writes down the words of a sound, in its language or in English. */
export interface TranscribeTask {
  readonly kind: 'transcriptions' | 'translations'
  /** The client's form. */
  readonly parts: readonly UploadPart[]
  /** The texts that guardrails judge, by the index of their part. */
  readonly texts: readonly { readonly at: number; readonly text: string }[]
  readonly format: string
  readonly length: { readonly most: number | null; readonly isExact: boolean }
}

/** A part of a transcript, in seconds. */
export interface Segment {
  readonly start: number
  readonly end: number
  readonly text: string
  /** Absent if the upstream does not distinguish speakers. */
  readonly speaker?: string
}

export type Task = RankTask | ModerateTask | SpeechTask | DrawTask | TranscribeTask

/** A document's place in the result, best first. */
export interface Rank {
  /** The index of the document in the request. */
  readonly index: number
  readonly score: number
}

/** The verdict on one input. */
export interface Verdict {
  readonly flagged: boolean
  /** Categories that the upstream judged; others are absent. */
  readonly categories: Readonly<Record<string, boolean>>
  readonly scores: Readonly<Record<string, number>>
}

interface ResultFacts {
  readonly usage: Usage
  /** The model that served the request, as the upstream names it. */
  readonly model: string | null
  /** The size of what a chat model wrote; absent for other upstreams. */
  readonly outputSize?: OutputSize
}

/** The reply to a task. */
export type TaskResult = ResultFacts &
  (
    | { readonly kind: 'rerank'; readonly ranks: readonly Rank[] }
    | { readonly kind: 'moderations'; readonly verdicts: readonly Verdict[] }
    | {
        readonly kind: 'images'
        readonly pictures: readonly Picture[]
        readonly createdAtSeconds: number | null
        /** `png`; null if it is not known. */
        readonly format: string | null
      }
    | {
        readonly kind: 'transcriptions'
        readonly text: string
        readonly segments: readonly Segment[]
        /** Null if it is not known. */
        readonly language: string | null
      }
    /** Whole sound; streams do not pass here. */
    | { readonly kind: 'speech'; readonly sound: Buffer; readonly format: SoundFormat }
  )

/** The texts of the task in order, which are also the parts of its message. */
export function textsOfTask(task: Task): string[] {
  switch (task.kind) {
    case 'rerank':
      return [task.query, ...task.documents.map(({ text }) => text)]
    case 'moderations':
      return task.inputs.flatMap((parts) =>
        parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])),
      )
    case 'images':
    case 'image_edits':
      return [task.prompt]
    case 'transcriptions':
    case 'translations':
      return task.texts.map(({ text }) => text)
    case 'speech':
      return task.instructions === undefined ? [task.input] : [task.input, task.instructions]
    default:
      return task satisfies never
  }
}

/** The task with other texts, in the same order. */
export function withTaskTexts(task: Task, texts: readonly string[]): Task {
  let next = 0
  const take = (before: string): string => texts[next++] ?? before
  switch (task.kind) {
    case 'rerank': {
      const query = take(task.query)
      const documents = task.documents.map((document): RankedDocument => {
        const text = take(document.text)
        return text === document.text ? document : { text, source: text }
      })
      return { ...task, query, documents }
    }
    case 'moderations': {
      const inputs = task.inputs.map((parts) =>
        parts.map((part) => (part.type === 'text' ? { ...part, text: take(part.text) } : part)),
      )
      return { ...task, inputs }
    }
    case 'transcriptions':
    case 'translations':
      return { ...task, texts: task.texts.map(({ at, text }) => ({ at, text: take(text) })) }
    case 'images':
    case 'image_edits':
      return { ...task, prompt: take(task.prompt) }
    case 'speech': {
      const input = take(task.input)
      const { instructions } = task
      return { ...task, input, ...(instructions !== undefined && { instructions: take(instructions) }) }
    }
    default:
      return task satisfies never
  }
}

/** Whether the task draws or changes pictures. */
export function drawsPictures(task: Task | undefined): task is DrawTask {
  return task?.kind === 'images' || task?.kind === 'image_edits'
}

/** Whether the task writes down the words of a sound. */
export function transcribes(task: Task | undefined): task is TranscribeTask {
  return task?.kind === 'transcriptions' || task?.kind === 'translations'
}

/** The parts of the client's form; none for a body of JSON. */
export function partsOfTask({ task }: { readonly task?: Task }): readonly UploadPart[] {
  return task !== undefined && 'parts' in task ? (task.parts ?? []) : []
}

/** The task of a request for pictures. Throws if the request draws nothing. */
export function drawTaskOf({ task }: { readonly task?: Task }): DrawTask {
  if (!drawsPictures(task)) throw new Error('the request draws nothing')
  return task
}

/** Quality and size as prices name them: those of the reply, else of the request; empty if unknown. */
export function madeAs(
  { size, quality }: Pick<DrawTask, 'size' | 'quality'>,
  made: { readonly size: string | undefined; readonly quality: string | undefined },
): string {
  const known = (value: string): string => (value === 'auto' ? '' : value)
  return `${known(made.quality ?? quality)}/${known(made.size ?? size)}`
}

/** The task of a request with sound. Throws for another task. */
export function transcribeTaskOf({ task }: { readonly task?: Task }): TranscribeTask {
  if (transcribes(task)) return task
  throw new Error('the request has no sound')
}
