/**
 * The ledger entry of one request: account, model, upstream, tokens and cost. Contains no text of the
 * conversation. `entrySchema` is the one table of its fields: the type, the column and the documentation of
 * each. The engines, the text of an entry, exports and the dashboard's API read it.
 */
import * as z from 'zod'
import { isOutcome, type Outcome } from '../errors.js'
import { isObject, objectOf } from '../base/json.js'

/**
 * `ok`, or the kind of the error; `lost`: the process exited before the request was settled. Batches have
 * `failed`, `expired` and `cancelled` besides.
 */
export type EntryOutcome = Outcome

/** The storage of a field. */
interface Storage {
  /** The column of the table `ledger_entries`. */
  readonly column: string
  /** The documentation of the column in `sluice usage export`; null if the export does not have it. */
  readonly means: string | null
}

const storage = z.registry<Storage>()

function field<Type extends z.ZodType>(type: Type, column: string, means: string | null = null): Type {
  storage.add(type, { column, means })
  return type
}

function list<Item extends z.ZodType>(item: Item): z.ZodReadonly<z.ZodArray<Item>> {
  return z.array(item).readonly()
}

const text = () => z.string()
const textOrNull = () => z.string().nullable()
const number = () => z.number()
const numberOrNull = () => z.number().nullable()
/** Absent in entries of earlier versions. */
const laterText = () => textOrNull().default(null)
const laterNumber = () => numberOrNull().default(null)
const optional = () => z.number().exactOptional()
const dialect = () => z.enum(['openai-chat', 'openai-responses', 'anthropic', 'gemini', 'converse'])

/** Tokens as in `Usage`; an omitted count was not reported. */
const entryUsageSchema = z.object({
  input: field(optional(), 'input_tokens', 'Prompt tokens, cached ones included.'),
  output: field(optional(), 'output_tokens', 'Reply tokens, reasoning included.'),
  cacheRead: field(optional(), 'cache_read_tokens', 'Prompt tokens read from a cache.'),
  cacheWrite: field(optional(), 'cache_write_tokens', 'Prompt tokens written to a cache.'),
  cacheWrite1h: field(optional(), 'cache_write_1h_tokens', 'Those of them written for one hour.'),
  reasoning: field(optional(), 'reasoning_tokens', 'Reply tokens spent on reasoning.'),
})

/** The stages of a request in order, in ms; absent if the stage was not reached. Stored as one list. */
export const STAGES = {
  authenticate: optional(),
  receive: optional(),
  route: optional(),
  admit: optional(),
  connect: optional(),
  /** From the request sent to the upstream's first byte. */
  firstByte: optional(),
  translate: optional(),
  /** From the first content to the end. */
  relay: optional(),
  /** Judgements of guardrails. After the others, because stored lists have them in this order. */
  guard: optional(),
} as const

/** The stages, and what spans several of them. */
export const entryHopsSchema = z.object({
  ...STAGES,
  /** From the arrival of the request to the first content for the client; spans several stages. */
  firstContent: field(optional(), 'first_content_ms', 'Until the first content left.'),
  /** Not a stage. */
  overhead: field(optional(), 'overhead_ms', "The gateway's own part of the time."),
})

/** What explains an outcome; null if it is unknown. */
const explanationSchema = z.object({
  /** `chat`, `messages`, …; null if the path has none. */
  ingress: field(
    laterText(),
    'ingress',
    'The format of the client (`messages`), or the endpoint that has one of its own (`images`).',
  ),
  /** Without any of the prompt; at most 500 characters. */
  errorMessage: field(laterText(), 'error_message', 'The error message that the client got.'),
  /** `key:… requests_per_minute` */
  limit: field(laterText(), 'limit', 'The limit that refused it, with scope and window.'),
  upstreamStatus: field(laterNumber(), 'upstream_status', 'The HTTP status of the last upstream.'),
  upstreamRequestId: field(laterText(), 'upstream_request_id', "The upstream's id of the request."),
  attempted: field(laterText(), 'attempted', 'Each attempt in order, `upstream:outcome`.'),
  shadowOf: field(laterText(), 'shadow_of', 'The request that this one repeats for comparison.'),
  labels: field(laterText(), 'labels', '`k=v`, separated by spaces.'),
  /** `x-request-id` or `x-client-request-id`. */
  clientRequestId: field(laterText(), 'client_request_id', "The client's id of the request."),
  /** Until its first content or its failure, in ms, in the order of `attempted`. */
  attemptMs: field(list(number()).nullable().default(null), 'attempt_ms'),
  /** The `retry-after` of the client's reply. */
  retryAfterSeconds: field(laterNumber(), 'retry_after_seconds'),
  /** `priceVersionOf`; null if no price was used. */
  priceVersion: field(laterText(), 'price_version', 'The prices that the cost was computed with.'),
  gateway: field(laterText(), 'gateway', 'The name of the gateway, `server.name`.'),
  /** `shownHash`; generations are numbered by each gateway for itself. */
  generationHash: field(
    laterText(),
    'generation_hash',
    'The hash of that generation, as `sluice generations list` prints it.',
  ),
  cacheHit: field(
    z.boolean().nullable().default(null),
    'cache_hit',
    'Whether the exact cache answered it; empty if its route has no cache.',
  ),
  savedNanoUsd: field(
    laterNumber(),
    'saved_nano_usd',
    'What the reply from the cache would have cost, in billionths of a US dollar.',
  ),
  /** At the time of the request, so that sums of a closed month never change. */
  accountPath: field(
    laterText(),
    'account_path',
    'The names of the accounts from the top of the tree to this one, `/` between them.',
  ),
  identity: field(
    laterText(),
    'identity',
    'The name of the workload identity; empty for requests with a key.',
  ),
  /** `pii:mask topics:error`; never a text. */
  guardrails: field(laterText(), 'guardrails', 'What guardrails did, `NAME:VERDICT`, separated by spaces.'),
  cacheMarks: field(
    laterNumber(),
    'cache_marks',
    "Marks for the provider's prompt cache that the gateway added; empty without `cache_control`.",
  ),
  cacheMarksSavedNanoUsd: field(
    laterNumber(),
    'cache_marks_saved_nano_usd',
    'What these marks saved, in billionths of a US dollar; may be negative.',
  ),
  recorded: field(
    z.boolean().nullable().default(null),
    'recorded',
    '`true` if the request was recorded (`record`); else empty.',
  ),
  dimensions: field(
    laterText(),
    'dimensions',
    'The values of `dimensions`, `k=v` separated by spaces, values percent-encoded.',
  ),
  program: field(
    laterText(),
    'program',
    'The program of the client, by its user agent: a closed set of names, `other` or `none`.',
  ),
  user: field(laterText(), 'user', 'The person who signed in; empty for requests with a key.'),
  /** `unitsText`. */
  units: field(
    laterText(),
    'units',
    'Units other than text tokens, `k=v` separated by spaces: pictures, seconds of sound, characters, searches, and kinds of tokens.',
  ),
  batch: field(
    laterText(),
    'batch',
    'The id of the batch: in the entry of a batch, and in those of its lines that were sent as requests.',
  ),
})

/** The account and the key of shadow requests in the ledger, so that they do not count for any customer. */
export const SHADOW_ACCOUNT = 'shadow'

/** The fields in the order of the columns. New ones go to the end. */
export const entrySchema = z.object({
  requestId: field(text(), 'request_id', 'The id of the response header `x-request-id`.'),
  /** ms since 1970; exported as a time. */
  atMs: field(number(), 'at_ms', 'When the request arrived, UTC.'),
  durationMs: field(number(), 'duration_ms', 'From then until the entry was made.'),
  accountId: field(text(), 'account_id', 'The account.'),
  keyId: field(text(), 'key_id', 'The API key, or `playground`.'),
  /** Null if the body could not be read. At most 256 characters. */
  modelAsked: field(textOrNull(), 'model_asked', 'The model that the client requested.'),
  /** Null if no request was sent. */
  modelAnswered: field(
    textOrNull(),
    'model_answered',
    'The model that the upstream reports, else the requested one.',
  ),
  /** An id of the catalogue, else a route, else `other`; a closed set. */
  model: field(text(), 'model', 'The model under which sums count it.'),
  upstream: field(textOrNull(), 'upstream', 'Empty if none was chosen.'),
  dialect: field(dialect().nullable(), 'dialect', 'The wire format of the upstream.'),
  attempts: field(number(), 'attempts', 'Attempts, including those that reached no upstream.'),
  stream: field(z.boolean(), 'stream', 'Whether the client requested a stream.'),
  status: field(number(), 'status', 'The HTTP status; 499 if the client had left.'),
  outcome: field(
    z.custom<EntryOutcome>((value) => typeof value === 'string' && isOutcome(value)),
    'outcome',
    '`ok`, `lost`, or a kind of error; of batches also `failed`, `expired` and `cancelled`.',
  ),
  finish: field(textOrNull(), 'finish_reason', 'Why the model stopped.'),
  /**
   * `reported`: by the upstream. `estimated`: by the gateway, from the bytes sent and received. `assumed`:
   * the maximum that the request may have used, as its end was not received. `none`: no tokens were used.
   */
  source: field(
    z.enum(['reported', 'estimated', 'assumed', 'none']),
    'source',
    '`reported`, `estimated`, `assumed` or `none`.',
  ),
  usage: entryUsageSchema,
  /** Whole nano-dollars (1e-9 US dollars). */
  costNanoUsd: field(
    numberOrNull(),
    'cost_nano_usd',
    'Billionths of a US dollar; empty if a price is unknown.',
  ),
  tokensAfterDisconnect: field(
    number(),
    'tokens_after_disconnect',
    'Reply tokens generated after the client had left.',
  ),
  losses: field(list(text()), 'losses', 'Fields that translation lost, separated by spaces.'),
  generation: field(number(), 'generation', 'The configuration generation.'),
  hops: field(entryHopsSchema, 'hops'),
  ...explanationSchema.shape,
})

/** A ledger entry; written once for each request id, before the client gets the end of its reply. */
export type LedgerEntry = Readonly<z.output<typeof entrySchema>> & {
  /** The charge on budgets if `costNanoUsd` is null; absent: the reserved amount. Not stored. */
  readonly budgetNanoUsd?: number | undefined
  /** What limits of a minute count if `source` is `assumed`; absent: the reserved amount. Not stored. */
  readonly rateTokens?: number | undefined
}

/**
 * An entry without values, to which they are added: an object whose fifty members are added in sequence takes
 * several times as much memory.
 */
export const EMPTY_ENTRY: LedgerEntry = entrySchema.parse({
  ...{
    requestId: '',
    atMs: 0,
    durationMs: 0,
    accountId: '',
    keyId: '',
    modelAsked: null,
    modelAnswered: null,
  },
  ...{ model: '', upstream: null, dialect: null, attempts: 0, stream: false, status: 0, outcome: 'ok' },
  ...{ finish: null, source: 'none', usage: {}, costNanoUsd: null, tokensAfterDisconnect: 0, losses: [] },
  ...{ generation: 0, hops: {} },
})

type Members = Readonly<Record<string, unknown>>
type Test = (value: unknown) => boolean

/**
 * Tests whether a value has the type unchanged: nothing is added or left out. The schema itself makes
 * objects for each of its fields, which takes most of the time in which an entry is read.
 */
function testOf(type: z.core.$ZodType): Test {
  if (type instanceof z.ZodString) return (value) => typeof value === 'string'
  if (type instanceof z.ZodNumber) return Number.isFinite
  if (type instanceof z.ZodBoolean) return (value) => typeof value === 'boolean'
  if (type instanceof z.ZodDefault || type instanceof z.ZodReadonly) return testOf(type.unwrap())
  if (type instanceof z.ZodExactOptional) return testOf(type.unwrap())
  if (type instanceof z.ZodNullable) {
    const test = testOf(type.unwrap())
    return (value) => value === null || test(value)
  }
  if (type instanceof z.ZodArray) {
    const { element }: { element: z.core.$ZodType } = type
    const test = testOf(element)
    return (value) => Array.isArray(value) && value.every(test)
  }
  if (type instanceof z.ZodObject) return testOfMembers(type)
  return (value) => z.safeParse(type, value).success
}

function testOfMembers(type: z.ZodObject): Test {
  const shape: Readonly<Record<string, z.core.$ZodType>> = type.shape
  const fields = Object.entries(shape)
  const tests = new Map(fields.map(([name, each]) => [name, testOf(each)]))
  const required = fields.filter(([, each]) => !(each instanceof z.ZodExactOptional))
  return (value) => {
    if (!isObject(value)) return false
    for (const name of Object.keys(value)) if (tests.get(name)?.(value[name]) !== true) return false
    return required.every(([name]) => value[name] !== undefined)
  }
}

const isEntry: Test = testOfMembers(entrySchema)

/** The entry with these members, or the issues of the schema. */
export function parseEntry(members: Members): z.ZodSafeParseResult<z.output<typeof entrySchema>> {
  return isWhole(members) ? { success: true, data: members } : entrySchema.safeParse(members)
}

function isWhole(members: Members): members is z.output<typeof entrySchema> {
  return isEntry(members)
}

/** The source of the token counts. */
export type UsageSource = LedgerEntry['source']
/** The durations of the stages of a request, in ms. */
export type EntryHops = Readonly<LedgerEntry['hops']>

/** The members that explain an outcome, all unknown. */
export const UNEXPLAINED: Readonly<z.output<typeof explanationSchema>> = explanationSchema.parse({})

export interface StoredValue extends Storage {
  /** The member of the entry, and the member of that for counts and durations with a column of their own. */
  readonly member: keyof z.output<typeof entrySchema>
  readonly part: string | null
  /** `stages`: the durations of `STAGES`, in order. */
  readonly kind: 'plain' | 'flag' | 'list' | 'stages'
}

/** All stored values in the order of the columns. */
export const STORED: readonly StoredValue[] = entrySchema.keyof().options.flatMap((member): StoredValue[] => {
  const type = entrySchema.shape[member]
  const parts = type instanceof z.ZodObject ? Object.entries(type.shape) : []
  const stored = parts.flatMap(([part, each]): StoredValue[] => {
    const own = storage.get(each)
    return own === undefined ? [] : [{ member, part, kind: 'plain', ...own }]
  })
  const whole = storage.get(type)
  return whole === undefined ? stored : [...stored, { member, part: null, kind: kindOf(type), ...whole }]
})

function kindOf(type: z.ZodType): StoredValue['kind'] {
  if (type === entryHopsSchema) return 'stages'
  if (type.safeParse(true).success) return 'flag'
  return type.safeParse([]).success ? 'list' : 'plain'
}

/** The value in the entry; undefined if a count or a duration is absent. */
export function storedIn(entry: LedgerEntry, { member, part }: StoredValue): unknown {
  const value: unknown = entry[member]
  return part === null ? value : objectOf(value)[part]
}
