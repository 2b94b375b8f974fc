/**
 * The operations of clients as data, one row each: what the pipeline reads instead of comparing paths. Paths
 * are in `match-endpoint.ts`, codecs in `index.ts`; `operations` of an upstream overrides the forms.
 */

/** Operations whose upstream form is a setting of the upstream, not its dialect. */
export const TASK_NAMES = [
  'rerank',
  'moderations',
  'images',
  'image_edits',
  'transcriptions',
  'translations',
  'speech',
] as const
export type TaskName = (typeof TASK_NAMES)[number]

/** What the path and method of a request stand for. */
export type Operation =
  | 'chat'
  | 'completions'
  | 'embeddings'
  | 'count'
  | 'models'
  | 'stored'
  | 'stored-input'
  | 'files'
  | 'batches'
  | TaskName

/** Formats of clients, by the names of the metrics label and the ledger column `ingress`. */
export type ClientFormat =
  'chat' | 'completions' | 'messages' | 'responses' | 'gemini' | 'embeddings' | 'files' | 'batches' | TaskName

/** Kinds of requests that `cache.methods` names. */
export const CACHE_METHODS = ['chat', 'embeddings', 'rerank', 'moderations'] as const
type CacheMethod = (typeof CACHE_METHODS)[number]

interface OperationRow {
  /**
   * Whether its requests leave ledger entries; model lists and stored responses cost nothing. `changes`:
   * those that read leave none, because clients read the state of a batch every few seconds.
   */
  readonly isRecorded: boolean | 'changes'
  /** The method of `cache.methods`; null: never answered from the cache. */
  readonly cacheMethod: CacheMethod | null
  /** `gen_ai.operation.name` of OpenTelemetry's conventions; null if there is none. */
  readonly spanName: string | null
  /** The noun in messages: `No upstream … serves rerank`. */
  readonly title: string
  /** Replies that cost so much that no second copy of a request runs beside it: no hedges. */
  readonly isCostly?: true
  /** Guardrails judge the texts of its replies. */
  readonly judgesReply?: true
  /** The part of its replies that no guardrail can read. */
  readonly unseenReply?: 'pictures' | 'sound'
  /** The body is a multipart form. */
  readonly isUpload?: true
  /** Fields that must come before the files of a form that is passed on while it arrives. */
  readonly earlyFields?: readonly string[]
  /** The body may be JSON instead of a form. */
  readonly takesJson?: true
}

const UPLOAD = { isRecorded: true, cacheMethod: null, isCostly: true, isUpload: true } as const

/** All operations. */
export const OPERATIONS: Readonly<Record<Operation, OperationRow>> = {
  chat: { isRecorded: true, cacheMethod: 'chat', spanName: 'chat', title: 'chat', judgesReply: true },
  completions: {
    isRecorded: true,
    cacheMethod: 'chat',
    spanName: 'text_completion',
    title: 'completions',
    judgesReply: true,
  },
  embeddings: { isRecorded: true, cacheMethod: 'embeddings', spanName: 'embeddings', title: 'embeddings' },
  rerank: { isRecorded: true, cacheMethod: 'rerank', spanName: 'rerank', title: 'rerank' },
  moderations: { isRecorded: true, cacheMethod: 'moderations', spanName: 'moderation', title: 'moderations' },
  images: {
    isRecorded: true,
    cacheMethod: null,
    spanName: 'image_generation',
    title: 'images',
    isCostly: true,
    judgesReply: true,
    unseenReply: 'pictures',
  },
  image_edits: {
    ...UPLOAD,
    spanName: 'image_generation',
    title: 'image edits',
    judgesReply: true,
    unseenReply: 'pictures',
    takesJson: true,
    earlyFields: ['prompt', 'n', 'size', 'quality', 'partial_images', 'stream'],
  },
  transcriptions: { ...UPLOAD, spanName: 'transcription', title: 'transcriptions', judgesReply: true },
  translations: { ...UPLOAD, spanName: 'transcription', title: 'translations', judgesReply: true },
  speech: {
    isRecorded: true,
    cacheMethod: null,
    spanName: 'speech',
    title: 'speech',
    isCostly: true,
    unseenReply: 'sound',
  },
  count: { isRecorded: true, cacheMethod: null, spanName: null, title: 'token counting' },
  files: { isRecorded: 'changes', cacheMethod: null, spanName: null, title: 'files' },
  batches: { isRecorded: 'changes', cacheMethod: null, spanName: null, title: 'batches' },
  models: { isRecorded: false, cacheMethod: null, spanName: null, title: 'models' },
  stored: { isRecorded: false, cacheMethod: null, spanName: null, title: 'stored responses' },
  'stored-input': { isRecorded: false, cacheMethod: null, spanName: null, title: 'stored responses' },
}

/** The names of operations that upstreams serve, with those of OpenTelemetry's conventions. */
export const OPERATION_NAMES: readonly string[] = [
  ...new Set(served().flatMap(([operation, spanName]) => [operation, spanName])),
]

/** The operation of this name; null if no upstream serves one. Several share a name of OpenTelemetry's. */
export function operationNamed(name: string): Operation | null {
  const rows = served()
  const row = rows.find(([operation]) => operation === name) ?? rows.find(([, spanName]) => spanName === name)
  return row?.[0] ?? null
}

/** Operations with the name of their spans, in the order of the table. */
function served(): [operation: Operation, spanName: string][] {
  return Object.keys(OPERATIONS)
    .filter(isOperation)
    .flatMap((operation): [Operation, string][] => {
      const { spanName } = OPERATIONS[operation]
      return spanName === null ? [] : [[operation, spanName]]
    })
}

function isOperation(name: string): name is Operation {
  return Object.hasOwn(OPERATIONS, name)
}

/** Whether recordings have its requests: a form has bytes that are not text. */
export function isRecordable(operation: Operation): boolean {
  return OPERATIONS[operation].isUpload !== true
}

/** Whether a shadow gets copies of its requests: a form may be passed on while it arrives. */
export function isShadowable(operation: Operation): boolean {
  return OPERATIONS[operation].isUpload !== true && operation !== 'count'
}

/** Whether the form of the operation is a setting of the upstream. */
export function isTaskName(operation: Operation): operation is TaskName {
  return Object.hasOwn(TASK_FORMS, operation)
}

/**
 * The forms in which upstreams serve each task. `cohere-v1` is Cohere's first version, which other vendors
 * copied.
 */
export const TASK_FORMS = {
  rerank: ['cohere', 'cohere-v1', 'jina', 'voyage', 'vllm', 'tei', 'sglang', 'deepinfra', 'bedrock'],
  moderations: ['openai', 'mistral', 'chat'],
  images: ['openai', 'gemini'],
  image_edits: ['openai', 'gemini'],
  transcriptions: ['openai', 'mistral', 'gemini'],
  translations: ['openai'],
  speech: ['openai', 'mistral', 'gemini'],
} as const satisfies Readonly<Record<TaskName, readonly string[]>>

/** The form of each task at one upstream; `none`: it does not serve the task. */
export type TaskForms = {
  readonly [Task in TaskName]: (typeof TASK_FORMS)[Task][number] | 'none'
}

/** An upstream that serves no task. */
export const NO_TASKS: TaskForms = {
  rerank: 'none',
  moderations: 'none',
  images: 'none',
  image_edits: 'none',
  transcriptions: 'none',
  translations: 'none',
  speech: 'none',
}

/** The forms in which batches run: an upstream's API for batches, or one request for each line. */
export const BATCH_FORMS = ['openai', 'mistral', 'anthropic', 'gemini', 'queue'] as const
/** One of `BATCH_FORMS`; `none`: batches are refused. */
export type BatchForm = (typeof BATCH_FORMS)[number] | 'none'

/** Presets of vendors with OpenAI's API for batches. */
const OPENAI_BATCHES: readonly (string | null)[] = [
  null,
  'openai',
  'azure',
  'groq',
  'together',
  'fireworks',
  'litellm',
]

/** The form of batches at an upstream whose file sets none. Jobs of clouds use buckets. */
export function usualBatchForm({ dialect, platform }: ServedBy, preset: string | null): BatchForm {
  if (preset === 'mistral') return 'mistral'
  if (dialect.startsWith('openai')) return OPENAI_BATCHES.includes(preset) ? 'openai' : 'queue'
  if (platform !== null || dialect === 'converse') return 'none'
  return dialect === 'anthropic' || dialect === 'gemini' ? dialect : 'queue'
}

/** Pictures and sound in OpenAI's formats. */
export const OPENAI_MEDIA = {
  images: 'openai',
  image_edits: 'openai',
  transcriptions: 'openai',
  translations: 'openai',
  speech: 'openai',
} as const satisfies Partial<TaskForms>
const GEMINI_MEDIA = {
  images: 'gemini',
  image_edits: 'gemini',
  transcriptions: 'gemini',
  speech: 'gemini',
} as const satisfies Partial<TaskForms>

/** The settings of an upstream that decide about its forms. */
interface ServedBy {
  readonly dialect: string
  readonly platform: 'bedrock' | 'vertex' | 'azure' | null
}

/** The forms of an upstream whose preset has none and whose file sets none. */
export function usualForms({ dialect, platform }: ServedBy): TaskForms {
  const isOpenAi = dialect.startsWith('openai')
  if (platform === 'azure') return isOpenAi ? { ...NO_TASKS, ...OPENAI_MEDIA, rerank: 'cohere' } : NO_TASKS
  if (platform === 'bedrock') return dialect === 'converse' ? { ...NO_TASKS, rerank: 'bedrock' } : NO_TASKS
  if (dialect === 'gemini') return { ...NO_TASKS, ...GEMINI_MEDIA }
  if (platform !== null || !isOpenAi) return NO_TASKS
  return { ...NO_TASKS, ...OPENAI_MEDIA, moderations: 'openai' }
}
