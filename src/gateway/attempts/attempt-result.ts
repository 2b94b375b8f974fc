/** The results of the attempts of a request, for the ledger entry, the metrics and the log line. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Usage } from '../../formats/chat/usage.js'
import type { ErrorKind } from '../../errors.js'
import type { Outcome } from '../../observe/metrics/closed-labels.js'
import type { Candidate } from '../phases/route.js'
import type { Call } from '../phases/call.js'
import type { ReplyObserver } from '../../formats/observed-format.js'
import type { ReplyResult } from '../../formats/translated-stream.js'
import type { ReplyLog } from '../../policy/capture-and-replay.js'

/** Why an attempt was made. */
export type Occasion =
  | 'first'
  /** The same target, after a failure. */
  | 'retry'
  /** The next target after a failure. */
  | 'fallback'
  /** Beside an attempt whose first content is late. */
  | 'hedge'
  /** The rest of a reply that the upstream paused. */
  | 'rest'
  /** The same target, without the reasoning of earlier turns. */
  | 'amended'

interface AttemptReason {
  readonly occasion: Occasion
  /** The failure before it; null if there was none. */
  readonly after: ErrorKind | null
}

const FIRST: AttemptReason = { occasion: 'first', after: null }

const NO_USAGE: Usage = {}

/** Filled in by the attempt while it runs. Durations are in ms; null is "not reached". */
export class AttemptResult {
  readonly candidate: Candidate
  /** The fields of the request that were left out for this upstream. */
  readonly losses: readonly string[]
  /** The request went out on a connection. */
  wasSent = false
  connectMs: number | null = null
  firstByteMs: number | null = null
  /** From the head of the reply to the first content of a stream, or to the end of a whole body. */
  replyMs: number | null = null
  /** When it was sent, when the first content of a stream came, and when it ended: monotonic, in ms. */
  beganAtMs: number | null = null
  contentAtMs: number | null = null
  endedAtMs: number | null = null
  /** The status of the reply. */
  status: number | null = null
  /** The request id that the upstream returned; null if it returned none. */
  requestId: string | null = null
  /** Null until the reply has content, and if a later attempt continues the reply. */
  replyResult: ReplyResult | null = null
  /** Null while it runs. */
  outcome: Outcome | 'cancelled' | null = null
  /** The request that was sent, with fetched media; null before that, and for native requests. */
  call: Pick<Call, 'wire' | 'request'> | null = null
  /** The counts of the earlier parts of a reply that this attempt continues. */
  earlierUsage: Usage = NO_USAGE
  /** A later attempt continues the reply: its counts include those of this attempt. */
  isContinued = false
  /** The upstream paused and its counts are final, although the reply is not complete. */
  isPaused = false
  /** Output tokens at the time when the client left, if the rest of the reply was read; else null. */
  outputWhenLeft: number | null = null
  /** The connection has taken the whole request. */
  wasFullySent = false
  /** The connection had served another request before. */
  isReused = false
  /** A part of the reply had arrived, though not its whole head, when the connection was lost. */
  hasReplied = false
  /** The upstream replies with a stream that is passed to the client. */
  isStreamed = false
  /** Marks for the provider's prompt cache that the gateway added. */
  cacheMarks = 0
  /** The cost of a native request whose replies are charged apart; undefined: `native_usd_per_request`. */
  nativeNanoUsd: number | null | undefined = undefined
  /** The reason for the attempt, and the failure before it. */
  readonly occasion: Occasion
  readonly after: ErrorKind | null

  constructor(candidate: Candidate, losses: readonly string[], { occasion, after }: AttemptReason = FIRST) {
    this.candidate = candidate
    this.losses = losses
    this.occasion = occasion
    this.after = after
  }
}

/** Whether the upstream has reported all tokens that it bills, although its reply may not be complete. */
export function hasFinalCounts({ replyResult, isPaused, call }: AttemptResult): boolean {
  if (replyResult === null) return false
  const { usage, reason, outcome, blocked } = replyResult
  if (usage.input === undefined || usage.output === undefined) return false
  if (blocked === 'cut' && !isPaused) return false
  // With several choices, the counts of Gemini are final only when all choices have finished.
  const isFinished = reason !== null && (call?.request.candidates ?? 1) === 1
  return isPaused || isFinished || outcome === 'complete'
}

/**
 * Gets what the attempts of a request send to upstreams, and their replies: the bytes as they arrive, and
 * what is read of them. Asked only for what it has.
 */
export interface ReplyListener extends ReplyObserver {
  /** `headers` are name, value, …. */
  sent?(
    attempt: AttemptResult,
    request: { path: string; headers: readonly string[]; body: Buffer | string },
  ): void
  head?(attempt: AttemptResult, status: number, headers: IncomingHttpHeaders): void
  bytes?(attempt: AttemptResult, chunk: Buffer): void
  /** The events of the reply that began last, which others may share; absent: it keeps none. */
  readonly log?: ReplyLog | null
}

/** The listeners of a request that nothing listens to. */
export const NO_LISTENERS: readonly ReplyListener[] = []

/** The result of sending a request. Filled in by the candidate loop and its attempts. */
export class SendResult {
  /** In the order in which they began. */
  readonly list: AttemptResult[] = []
  /** The upstream of a hedge that the hedge budget, or a limit of the client, did not allow. */
  hedgeDenied: string | null = null
  /** The fields that were left out, or would be, for the last prepared upstream. */
  preparedLosses: readonly string[] = []
  /** Marks for the provider's prompt cache in the last prepared request. */
  preparedMarks = 0
  /** In the order in which they are called (`listenersOf`). */
  readonly listeners: readonly ReplyListener[]
  /** Time spent on translating the request and the reply. */
  translateMs = 0
  /** Time spent on fetching media that the request names by URL. */
  fetchMs = 0
  /** Time spent on waiting before retries. */
  backOffMs = 0
  /** Resolves when reasoning state and stored replies are written: the end of the reply waits for it. */
  pendingWrites: Promise<void> | null = null
  /** Resolves when the rest of a reply without a client has been read; null if there is none. */
  drained: Promise<void> | null = null
  /** The exception that a codec threw, for the log. */
  failure: unknown = null
  private winner: AttemptResult | null = null

  constructor(listeners = NO_LISTENERS) {
    this.listeners = listeners
  }

  /** The attempt whose reply the client gets, else the last one; null if there is none. */
  get final(): AttemptResult | null {
    return this.winner ?? this.list.at(-1) ?? null
  }

  /** The fields that were left out for the final attempt. */
  get losses(): readonly string[] {
    return this.final?.losses ?? this.preparedLosses
  }

  /** An attempt begins; after `won` it continues the reply of the winner. */
  began(result: AttemptResult): void {
    this.list.push(result)
    if (this.winner !== null) this.winner = result
  }

  /** The client gets the reply of this attempt. */
  won(result: AttemptResult): void {
    this.winner = result
  }

  /** The rest of a reply is read until `ended`; with a hedge, there are two. */
  drain(ended: Promise<void>): void {
    this.drained = together(this.drained, ended)
  }

  /** Makes the end of the reply wait for `written` too; each of several replies adds its own promise. */
  delayEndUntil(written: Promise<void>): void {
    this.pendingWrites = together(this.pendingWrites, written)
  }
}

function together(one: Promise<void> | null, other: Promise<void>): Promise<void> {
  return one === null ? other : Promise.all([one, other]).then(() => undefined)
}

/** `upstream:outcome` for each attempt, with `, ` between; `ended` is the outcome of the final one. */
export function attemptList(attempts: SendResult, ended: Outcome): string {
  let list = ''
  for (const attempt of attempts.list) {
    const outcome = attempt === attempts.final ? ended : (attempt.outcome ?? 'ok')
    const { name } = attempt.candidate.target.upstream.config
    list += `${list === '' ? '' : ', '}${name}:${outcome}`
  }
  return list
}
