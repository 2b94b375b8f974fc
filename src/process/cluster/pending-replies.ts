/** Questions from the primary to one worker that are answered with a list. Each answer belongs to one question. */

/** A worker that does not answer within this time is left out. */
const ANSWER_MS = 2_000

/** The open questions to a worker. */
export class PendingReplies {
  private readonly open = new Map<number, (list: readonly unknown[]) => void>()
  private lastId = 0

  /** Asks the worker through `send`; resolves to an empty list if there is no answer in time. */
  ask(send: (id: number) => void): Promise<readonly unknown[]> {
    const id = (this.lastId += 1)
    return new Promise((resolve) => {
      const settle = (list: readonly unknown[]): void => {
        clearTimeout(timer)
        this.open.delete(id)
        resolve(list)
      }
      const timer = setTimeout(() => settle([]), ANSWER_MS).unref()
      this.open.set(id, settle)
      send(id)
    })
  }

  /** The answer to the question with that id; later ones are ignored. */
  answered(id: number, list: readonly unknown[]): void {
    this.open.get(id)?.(list)
  }
}
