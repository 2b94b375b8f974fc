/** The record of a native request: the values that the phases return for other requests. */
import type { AttemptResult } from '../attempts/attempt-result.js'
import type { Deadlines } from '../in-flight/timeout-timer.js'
import type { Intake } from '../phases/receive.js'
import type { Delivery } from '../phases/relay.js'
import type { RealtimeSession } from './realtime-session.js'
import type { ObjectReplies } from './object-replies.js'

/** The record of a native request while it runs. */
export interface NativeRun {
  readonly result: AttemptResult
  readonly intake: Intake
  readonly delivery: NativeDelivery
  readonly rateHeaders: readonly string[]
  readonly deadlines: Deadlines
  /** Reads the reply for its objects; null if the objects of the upstream are shared. */
  readonly replies: ObjectReplies | null
  /** Charges the replies of a WebSocket; null for other requests. */
  readonly session: RealtimeSession | null
  /** Writes the ledger entry before the client gets the end of the reply. */
  readonly ending: () => Promise<void> | null
}

/** The delivery of its reply to the client. */
export class NativeDelivery implements Delivery {
  sentBytes = 0
  readonly chunks = 0
  readonly wholeMs = null
  headMs: number | null = null
  relayMs: number | null = null
  readonly clientWaitMs = 0
  readonly closed = null
}
