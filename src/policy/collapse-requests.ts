/** One upstream request whose reply several equal requests share (`collapse`). */
import { gatewayError, type GatewayError, type WireError } from '../errors.js'
import type { ReplyLog } from './capture-and-replay.js'

/** The request that began it, and those that joined. Lives until the reply has ended. */
export class SharedReply {
  /** Resolves at the first content; rejects with `GatewayError` if there is none. */
  readonly begun: Promise<ReplyLog>
  /** Number of requests that joined and have not left. */
  followers = 0
  /** Called when the last of them leaves. */
  onAlone: () => void = () => undefined
  private log: ReplyLog | null = null
  private hasEnded = false
  private readonly maxBytes: number
  private resolve: (log: ReplyLog) => void = () => undefined
  private reject: (error: GatewayError) => void = () => undefined

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes
    this.begun = new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
    // Without followers no request waits for it.
    this.begun.catch(() => undefined)
  }

  /** Whether another request may join: the reply is still known from its beginning. */
  get isOpen(): boolean {
    if (this.hasEnded) return false
    const { log, maxBytes } = this
    return log === null || (log.outcome !== 'failed' && log.bytes <= maxBytes)
  }

  /** A request joins. Returns a function by which it leaves, which may be called several times. */
  join(): () => void {
    this.followers += 1
    let hasLeft = false
    return () => {
      if (hasLeft) return
      hasLeft = true
      this.followers -= 1
      if (this.followers === 0) this.onAlone()
    }
  }

  begin(log: ReplyLog): void {
    this.log = log
    this.resolve(log)
  }

  /** A stored reply was found: those that joined are answered from it. */
  endWith(log: ReplyLog): void {
    this.hasEnded = true
    this.resolve(log)
  }

  /** The request has ended; `error` is null if its reply is complete. A failure is everyone's. */
  end(error: WireError | null): void {
    this.hasEnded = true
    if (error === null) return
    this.log?.fail(error)
    this.reject(gatewayError(error))
  }
}

/** Resolves when the reply of the log has ended. */
export function endOf(log: ReplyLog): Promise<void> {
  if (log.outcome !== 'open') return Promise.resolve()
  return new Promise((resolve) => {
    const stop = log.follow(() => {
      if (log.outcome === 'open') return
      stop()
      resolve()
    })
  })
}
