/** The result of one request to an upstream, for the ledger entry, the metrics and the log line. */
import type { Outcome } from '../../metrics/hops.js'
import type { Candidate } from '../phases/choose.js'
import type { Verdict } from '../translate.js'

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
  /** It repeats a refused request without the reasoning of earlier turns. */
  isAmended = false

  constructor(candidate: Candidate, losses: readonly string[]) {
    this.candidate = candidate
    this.losses = losses
  }
}

/** What sending a request came to. */
export interface Sent {
  /** In the order in which they began. */
  readonly attempts: readonly AttemptResult[]
  /** The fields that the upstream prepared for last was not, or would not be, sent. */
  readonly losses: readonly string[]
  /** Time spent on translating the request and the reply. */
  readonly translateMs: number
  /** Time spent on fetching media that the request names by URL. */
  readonly fetchMs: number
  /** Reasoning state on its way to the store: the end of the reply waits for it. */
  readonly holding: Promise<void> | null
  /** The upstream's reply is read on without the client, until this resolves; null if it is not. */
  readonly drained: Promise<void> | null
  /** What a codec threw, for the log. */
  readonly failure: unknown
}

/** `upstream:outcome` for each attempt, with `, ` between; `last` is the outcome of the last one. */
export function attemptList(attempts: readonly AttemptResult[], last: Outcome): string {
  let list = ''
  for (const [index, { candidate, outcome }] of attempts.entries()) {
    const ended = index === attempts.length - 1 ? last : (outcome ?? 'ok')
    list += `${index === 0 ? '' : ', '}${candidate.target.upstream.config.name}:${ended}`
  }
  return list
}
