/**
 * The kinds of tokens beside text that a request and its reply may have: sound and pictures, which may cost
 * many times as much as text.
 */
import { arrayOf } from '../../base/json.js'
import type { ModelFacts } from '../../formats/chat/model-facts.js'
import type { ChatRequest, MediaSource, Message, OpaquePart } from '../../formats/chat/request.js'
import type { Task } from '../../formats/chat/task.js'
import { contentsOf, filesIn } from '../../ledger/measure-media.js'
import { TEXT_ONLY, type MediaKind } from '../../ledger/price.js'

/** Kinds of tokens of one request. */
export interface RequestKinds {
  /** Kinds that the request has or requests: a price without them is unknown. */
  readonly certain: readonly MediaKind[]
  /** Kinds that it may have besides: what the gateway cannot see may be sound. */
  readonly possible: readonly MediaKind[]
}

/** The kinds of a request whose tokens are all text. */
export const TEXT_KINDS: RequestKinds = { certain: TEXT_ONLY, possible: TEXT_ONLY }

type MessagePart = Message['parts'][number]

interface SentRequest {
  readonly request: ChatRequest
  /** Facts of the model that it is sent to. */
  readonly facts: ModelFacts
  /** It has input that the gateway cannot see. */
  readonly hasUnseen: boolean
  /** Client and upstream use the same format. A translated request has a reply in text. */
  readonly isPassedOn: boolean
}

/** The kinds of a request at an upstream. */
export function kindsOf({ request, facts, hasUnseen, isPassedOn }: SentRequest): RequestKinds {
  if (request.task !== undefined) return kindsOfTask(request.task)
  const certain = new Set<MediaKind>()
  const open = new Set(hasUnseen ? UNSEEN_KINDS : TEXT_ONLY)
  for (const { role, parts } of request.messages) {
    for (const part of parts) {
      if (part.type === 'opaque') {
        if (part.block['type'] === 'audio') certain.add('inputAudio')
        for (const data of filesIn(part.block)) addContents(certain, open, data)
      } else if (role === 'user' || role === 'tool') addKinds(certain, part)
      if (readsContents(part, facts)) addContents(certain, open, part.source.data)
    }
  }
  const modalities = isPassedOn ? modalitiesOf(request) : null
  for (const modality of modalities ?? []) {
    if (modality === 'text') continue
    // One that the gateway does not have, such as video, has no price either: it counts as all that it has.
    if (modality !== 'image') certain.add('outputAudio')
    if (modality !== 'audio') certain.add('outputImage')
  }
  if (modalities === null) for (const kind of REPLY_KINDS) open.add(kind)
  const possible = possibleAt([...open], facts)
  return certain.size === 0 && possible.length === 0 ? TEXT_KINDS : { certain: [...certain], possible }
}

/** Vendors that reduce every image to a known maximum of tokens, and refuse other files as images. */
export const IMAGE_VENDORS: ReadonlySet<string> = new Set(['anthropic', 'openai'])

/** Whether an inline file may be read as what its bytes are, not as what the client declares. */
function readsContents(
  part: MessagePart,
  { family }: ModelFacts,
): part is MessagePart & { readonly source: Extract<MediaSource, { kind: 'base64' }> } {
  if (part.type !== 'image' && part.type !== 'file') return false
  if (part.source.kind !== 'base64') return false
  return part.type === 'file' || !IMAGE_VENDORS.has(family)
}

function addContents(certain: Set<MediaKind>, open: Set<MediaKind>, data: string): void {
  const contents = contentsOf(data)
  if (contents === 'sound' || contents === 'video') certain.add('inputAudio')
  if (contents === 'picture' || contents === 'pdf' || contents === 'video') certain.add('inputImage')
  if (contents === 'video') certain.add('inputVideo')
  if (contents === 'unknown') for (const kind of UNSEEN_KINDS) open.add(kind)
}

const UNSEEN_KINDS: readonly MediaKind[] = ['inputAudio', 'inputImage', 'inputVideo']
const REPLY_KINDS: readonly MediaKind[] = ['outputAudio', 'outputImage']

/**
 * Those of the kinds that a model with these facts may use without being asked. OpenAI's models reply in text
 * unless the request names other kinds; those of Google that make pictures do so without being asked.
 */
export function possibleAt(kinds: readonly MediaKind[], facts: ModelFacts): readonly MediaKind[] {
  if (kinds.length === 0) return TEXT_ONLY
  return kinds.filter((kind) =>
    REPLY_KINDS.includes(kind) ? facts.family !== 'openai' : facts.audioInput !== false,
  )
}

function kindsOfTask(task: Task): RequestKinds {
  switch (task.kind) {
    case 'rerank':
    case 'moderations':
      return TEXT_KINDS
    case 'images':
      return { certain: ['outputImage'], possible: TEXT_ONLY }
    case 'image_edits':
      return { certain: ['inputImage', 'outputImage'], possible: TEXT_ONLY }
    case 'transcriptions':
    case 'translations':
      return { certain: ['inputAudio'], possible: TEXT_ONLY }
    case 'speech':
      return { certain: ['outputAudio'], possible: TEXT_ONLY }
    default:
      return task satisfies never
  }
}

function addKinds(kinds: Set<MediaKind>, part: Exclude<MessagePart, OpaquePart>): void {
  if (part.type === 'audio') kinds.add('inputAudio')
  else if (part.type === 'image') kinds.add('inputImage')
  else if (part.type === 'file') {
    const mediaType = mediaTypeOf(part.source)
    // The sound of a video is counted as sound.
    if (/^(?:audio|video)\//.test(mediaType)) kinds.add('inputAudio')
    if (/^(?:image|video)\/|\/pdf$/.test(mediaType)) kinds.add('inputImage')
    if (mediaType.startsWith('video/')) kinds.add('inputVideo')
  }
}

/** The media type of inline data; '' if it is not known. */
function mediaTypeOf(source: MediaSource): string {
  return source.kind === 'base64' ? source.mediaType : ''
}

/** The kinds of the reply that the request names, in lower case; null if it names none. */
function modalitiesOf({ rest, replyModalities }: ChatRequest): readonly string[] | null {
  const { modalities } = rest
  const named = replyModalities ?? arrayOf(modalities).map(String)
  const kinds = named.filter((kind) => kind !== 'modality_unspecified')
  return kinds.length === 0 ? null : kinds
}
