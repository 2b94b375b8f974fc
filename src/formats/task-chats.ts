/**
 * Chats at endpoints for pictures and sound: Google's clients use `generateContent` for them, while
 * models of other vendors that only do this have endpoints of their own.
 */
import type { ModelFacts } from './chat/model-facts.js'
import type { TaskForms, TaskName } from './chat/operations.js'
import type { ChatRequest } from './chat/request.js'
import type { Task } from './chat/task.js'
import type { WireFormat } from './dialect.js'
import { drawTaskIn, picturesIn } from './images/chat-clients.js'
import { speechTaskIn } from './speech/chat-clients.js'
import { partsOfTurn } from './wire/media/one-turn.js'
import { transcribeTaskIn } from './transcriptions/chat-clients.js'

/** The formats of such chats, with the tasks that they become. */
const TASKS = {
  'chat-images': drawTaskIn,
  'chat-image-edits': drawTaskIn,
  'chat-speech': speechTaskIn,
  'chat-mistral-speech': speechTaskIn,
  'chat-transcriptions': transcribeTaskIn,
  'chat-mistral-transcriptions': transcribeTaskIn,
} as const satisfies Partial<Record<WireFormat, (request: ChatRequest) => Task>>
type TaskChatFormat = keyof typeof TASKS

/** The formats by the task and its form at the upstream. */
const FORMATS: Partial<Record<TaskName, Readonly<Partial<Record<string, TaskChatFormat>>>>> = {
  images: { openai: 'chat-images' },
  image_edits: { openai: 'chat-image-edits' },
  speech: { openai: 'chat-speech', mistral: 'chat-mistral-speech' },
  transcriptions: { openai: 'chat-transcriptions', mistral: 'chat-mistral-transcriptions' },
}

/** Whether requests of the format are chats at an endpoint for pictures or sound. */
export function isTaskChat(wire: WireFormat | null): wire is TaskChatFormat {
  return wire !== null && Object.hasOwn(TASKS, wire)
}

/** The task of a chat in such a format. */
export function taskInChat(request: ChatRequest, wire: TaskChatFormat): Task {
  return TASKS[wire](request)
}

/** A request whose format at an upstream is chosen. */
interface ChatAtUpstream {
  readonly request: ChatRequest
  readonly client: WireFormat
  /** The facts of the model that is requested. */
  readonly facts: ModelFacts
  readonly forms: TaskForms
}

/** The format of such a chat; null for any other, and if the upstream has another form of the endpoint. */
export function taskChatFormat({ request, client, facts, forms }: ChatAtUpstream): TaskChatFormat | null {
  if (client !== 'gemini') return null
  const task = taskOf(request, facts)
  return task === null ? null : (FORMATS[task]?.[forms[task]] ?? null)
}

/** Names of models that write down sound, which are often served without a catalogue's entry. */
const TRANSCRIBER = /whisper|transcribe/i

/**
 * The only task of a model: as the catalogue lists it, or, of an unknown one, as its client requests it.
 */
function taskOf(request: ChatRequest, { id, contextWindow, operations }: ModelFacts): TaskName | null {
  const { replyModalities = [], mediaSettings } = request
  const isUnknown = contextWindow === undefined && operations === undefined
  const does = (task: TaskName, isRequested: boolean): boolean =>
    operations?.includes(task) ?? (isUnknown && isRequested)
  if (does('images', replyModalities.includes('image'))) {
    return picturesIn(request).length > 0 ? 'image_edits' : 'images'
  }
  if (does('speech', replyModalities.includes('audio'))) return 'speech'
  const isNamed = TRANSCRIBER.test(id) && partsOfTurn(request).some(({ type }) => type !== 'text')
  const hasSettings = mediaSettings?.audioTranscriptionConfig !== undefined
  return does('transcriptions', isNamed || hasSettings) ? 'transcriptions' : null
}
