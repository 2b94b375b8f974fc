/** The result of one request to an upstream, for the ledger entry, the metrics and the log line. */
import type { ErrorKind } from '../../errors.js'
import type { Outcome } from '../../observe/metrics/label-values.js'
import type { Candidate } from '../phases/choose.js'
import type { Verdict } from '../streams/translated-stream.js'

/** Why an attempt was made. */
export type Occasion =
  | 'first'
  /** The same target again after a failure. */
  | 'retry'
  /** The next target after a failure. */
  | 'fallback'
  /** Beside an attempt whose first content is late. */
  | 'hedge'
  /** The rest of a reply that the upstream paused. */
  | 'rest'
  /** The request again, without the reasoning of earlier turns. */
  | 'amended'

/** Filled in by the attempt while it runs. Durations are in ms; null is "not reached". */
export class AttemptResult {
  readonly candidate: Candidate
  /** The fields of the request that this upstream was not sent. */
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
  /** The upstream's own id of the request. */
  requestId: string | null = null
  /** Null if the reply has no content to judge, and if a later attempt continues it. */
  verdict: Verdict | null = null
  /** Null while it runs. */
  outcome: Outcome | 'cancelled' | null = null
  /** The upstream's counts hold although its reply was not read to the end. */
  countsAreFinal = false
  /** Output tokens when the client left, if the reply was read on; else null. */
  outputWhenLeft: number | null = null
  /** The connection has taken the whole request. */
  hasAll = false
  /** The connection had served another request before. */
  isReused = false
  /** The upstream answers in a stream that goes on to the client. */
  isStreamed = false
  /** Keeps the bytes of the reply if the trace is to hold them. */
  captured: { take(chunk: Buffer): void } | null = null
  /** Why it was made, and after which failure. */
  readonly occasion: Occasion
  readonly after: ErrorKind | null

  constructor(
    candidate: Candidate,
    losses: readonly string[],
    occasion: Occasion = 'first',
    after: ErrorKind | null = null,
  ) {
    this.candidate = candidate
    this.losses = losses
    this.occasion = occasion
    this.after = after
  }
}

/** What sending a request came to. */
export interface Sent {
  /** In the order in which they began. */
  readonly attempts: readonly AttemptResult[]
  /** The one whose reply the client gets, else the last one; null if there is none. */
  readonly final: AttemptResult | null
  /** The upstream of a hedge that the spending, or a limit of the client, did not allow; null if there was none. */
  readonly hedgeDenied: string | null
  /** The fields that the upstream prepared for last was not, or would not be, sent. */
  readonly losses: readonly string[]
  /** Time spent on translating the request and the reply. */
  readonly translateMs: number
  /** Time spent on fetching media that the request names by URL. */
  readonly fetchMs: number
  /** Time spent on waiting before retries. */
  readonly backOffMs: number
  /** Reasoning state on its way to the store: the end of the reply waits for it. */
  readonly holding: Promise<void> | null
  /** The upstream's reply is read on without the client, until this resolves; null if it is not. */
  readonly drained: Promise<void> | null
  /** What a codec threw, for the log. */
  readonly failure: unknown
}

/** `upstream:outcome` for each attempt, with `, ` between; `ended` is the outcome of the final one. */
export function attemptList({ attempts, final }: Sent, ended: Outcome): string {
  let list = ''
  for (const attempt of attempts) {
    const outcome = attempt === final ? ended : (attempt.outcome ?? 'ok')
    const { name } = attempt.candidate.target.upstream.config
    list += `${list === '' ? '' : ', '}${name}:${outcome}`
  }
  return list
}
