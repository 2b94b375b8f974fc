/**
 * Requests from the primary to one worker that wait for a reply. Replies are matched to requests by their
 * ids.
 */

/** Requests of one kind. */
export class PendingReplies<Reply> {
  private readonly pending = new Map<number, (reply: Reply) => void>()
  private readonly timeoutMs: number
  private readonly missing: Reply
  private lastId = 0

  /** `missing`: the result if the worker does not reply within `timeoutMs`, or ends. */
  constructor(timeoutMs: number, missing: Reply) {
    this.timeoutMs = timeoutMs
    this.missing = missing
  }

  /** Sends a request through `send` and resolves with its reply. */
  request(send: (id: number) => void): Promise<Reply> {
    const id = (this.lastId += 1)
    return new Promise((resolve) => {
      const settle = (reply: Reply): void => {
        clearTimeout(timer)
        this.pending.delete(id)
        resolve(reply)
      }
      const timer = setTimeout(() => settle(this.missing), this.timeoutMs).unref()
      this.pending.set(id, settle)
      send(id)
    })
  }

  /** The reply to the request with that id; a late one is ignored. */
  settle(id: number, reply: Reply): void {
    this.pending.get(id)?.(reply)
  }

  /** The worker has ended: no more replies arrive. */
  settleAll(): void {
    for (const settle of [...this.pending.values()]) settle(this.missing)
  }
}
