/**
 * One request as its head and body came over a connection.
 * Knows no route and no rule: what a request may be is `gateway/admit.ts`'s to say.
 */
import type { RequestHead } from './request-head.js'

/** Who takes a request's body. */
export interface BodyTaker {
  /** One piece of the body, in order. */
  data(piece: Buffer): void
  /** The body is whole. Not called where it never became so. */
  end(): void
}

/** What a request asks of its connection. */
export interface Intake {
  /** Somebody takes the body from here on. */
  wanted(): void
}

const NONE: Buffer[] = []
const NO_TRAILERS: readonly string[] = []
/** The head of a request, and its body once somebody takes it. */
export class Request {
  readonly method: string
  /** The target as it was written. */
  readonly url: string
  readonly httpVersion: string
  /** Name, value, … in the order in which they came; the names in lower case. */
  readonly headers: readonly string[]
  /** What the client allows to come after this request on its connection. */
  readonly keepAlive: boolean
  /** Name, value, … of the fields behind a chunked body. */
  trailers = NO_TRAILERS
  /** True once the whole body has come. */
  complete = false
  /** When its head had come, by `performance.now()`. */
  readonly arrivedMs = performance.now()
  /** The client waits for `100 Continue` before it sends the body. */
  awaitsContinue: boolean
  private readonly head: RequestHead
  private connection: Intake | null = null
  private taker: BodyTaker | null = null
  private queue: Buffer[] = NONE
  private isDiscarded = false

  constructor(head: RequestHead) {
    this.head = head
    this.method = head.method
    this.url = head.url
    this.httpVersion = head.httpVersion
    this.headers = head.headers
    this.keepAlive = head.keepAlive
    this.awaitsContinue = head.awaitsContinue
  }

  /** The value of the first field of a name, which is given in lower case. */
  header(name: string): string | undefined {
    return this.head.header(name)
  }

  /** Gives what has come of the body, and then what comes, to `taker`. */
  read(taker: BodyTaker): void {
    this.taker = taker
    const { queue } = this
    this.queue = NONE
    for (const piece of queue) this.push(piece)
    this.connection?.wanted()
    if (this.complete) this.tellEnd()
  }

  /** Throws away what has come of the body and what comes; nobody is told any more. */
  discard(): void {
    this.isDiscarded = true
    this.taker = null
    this.queue = NONE
  }

  /** For the connection: whom to tell that the body is wanted. */
  awaitFor(connection: Intake): void {
    this.connection = connection
  }

  /** For the connection: a piece has come. False where it is only held, for a taker that may come. */
  push(piece: Buffer): boolean {
    if (this.taker !== null) {
      this.taker.data(piece)
      return true
    }
    if (this.isDiscarded) return true
    if (this.queue === NONE) this.queue = [piece]
    else this.queue.push(piece)
    return false
  }

  /** For the connection: the body has come to its end. */
  finish(trailers = NO_TRAILERS): void {
    this.trailers = trailers
    this.complete = true
    this.awaitsContinue = false
    this.tellEnd()
  }

  private tellEnd(): void {
    this.taker?.end()
  }
}
