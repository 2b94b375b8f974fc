/**
 * Traffic on a running gateway: a rate of requests on kept and on new connections, and a number of streams
 * that stay open. Records the result of each.
 */
import { Agent, request, type ClientRequest, type IncomingMessage } from 'node:http'

/** The result of one request or stream. */
export interface Outcome {
  /** `performance.now()` when it was sent. */
  readonly sentMs: number
  /** 0 if there was no reply. */
  readonly status: number
  /** `x-sluice-generation`; 0 if the reply has none. */
  readonly generation: number
  /** `x-sluice-upstream`. */
  readonly upstream: string
  /** On a connection that the client keeps. */
  readonly isKept: boolean
  /** `complete`, `error event KIND`, `cut` (ended without either), or the code of a socket's error. */
  readonly end: string
}

/** The amount of traffic. */
export interface TrafficOptions {
  readonly port: number
  readonly secret: string
  readonly perSecond: number
  readonly streams: number
  /** Words of a stream, one after each `paceMs`. */
  readonly words: () => number
  readonly paceMs: number
}

/** Sockets of the client that keeps its connections. */
const KEPT = 16
const REQUEST_TIMEOUT_MS = 120_000
/** Size of the tail of a reply that is kept, enough for the last error event. */
const TAIL = 2048

/** Starts with its construction and runs until `stop`. */
export class Traffic {
  readonly requests: Outcome[] = []
  readonly streams: Outcome[] = []
  /** Streams whose reply has begun and not ended. */
  open = 0
  private readonly options: TrafficOptions
  private readonly agent = new Agent({ keepAlive: true, maxSockets: KEPT })
  private readonly timer: NodeJS.Timeout
  private readonly running = new Set<Promise<void>>()
  private sent = 0
  private isOver = false

  constructor(options: TrafficOptions) {
    this.options = options
    this.timer = setInterval(() => this.sendOne(), 1000 / options.perSecond)
    for (let at = 0; at < options.streams; at += 1) this.track(this.keepStreaming())
  }

  /** Sends no more requests, and waits for those in progress. */
  async stop(): Promise<void> {
    this.isOver = true
    clearInterval(this.timer)
    await Promise.all(this.running)
    this.agent.destroy()
  }

  private track(work: Promise<void>): void {
    this.running.add(work)
    void work.finally(() => this.running.delete(work))
  }

  private sendOne(): void {
    this.sent += 1
    const agent = this.sent % 2 === 0 ? this.agent : false
    const body = { content: 'Hi. [[words: 5]]', stream: this.sent % 3 === 0 }
    const asking = this.ask(body, agent).then((outcome) => void this.requests.push(outcome))
    this.track(asking)
  }

  private async keepStreaming(): Promise<void> {
    const { words, paceMs } = this.options
    while (!this.isOver) {
      const content = `Go on. [[words: ${words()}]] [[pace: ${paceMs}]]`
      this.streams.push(await this.ask({ content, stream: true }, false, true))
    }
  }

  private ask(
    { content, stream }: { content: string; stream: boolean },
    agent: Agent | false,
    isCounted = false,
  ): Promise<Outcome> {
    const { port, secret } = this.options
    const body = JSON.stringify({
      ...{ model: 'gpt-5.4-mini', stream },
      messages: [{ role: 'user', content }],
    })
    const headers = {
      authorization: `Bearer ${secret}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    }
    const path = '/v1/chat/completions'
    const options = { host: '127.0.0.1', port, path, method: 'POST', agent, headers }
    const sentMs = performance.now()
    const isKept = agent !== false
    return new Promise((resolve) => {
      const sent: ClientRequest = request(options, (res) => {
        const opened = isCounted && res.statusCode === 200 ? 1 : 0
        this.open += opened
        void endOf(res, stream).then((end) => {
          this.open -= opened
          const { 'x-sluice-generation': generation, 'x-sluice-upstream': upstream } = res.headers
          const known = { generation: Number(generation ?? 0), upstream: String(upstream ?? '') }
          resolve({ sentMs, status: res.statusCode ?? 0, isKept, ...known, end })
        })
      })
      sent.on('error', (error: NodeJS.ErrnoException) => {
        resolve({
          sentMs,
          status: 0,
          isKept,
          generation: 0,
          upstream: '',
          end: error.code ?? error.message,
        })
      })
      sent.setTimeout(REQUEST_TIMEOUT_MS, () => sent.destroy())
      sent.end(body)
    })
  }
}

/** How a reply ended; see `Outcome.end`. */
function endOf(res: IncomingMessage, stream: boolean): Promise<string> {
  let tail = ''
  res.on('data', (chunk: Buffer) => (tail = `${tail}${chunk.toString()}`.slice(-TAIL)))
  return new Promise((resolve) => {
    const over = (why: string): void => {
      const kind = /"error":\{.*"kind":"(\w+)"/.exec(tail)?.[1]
      if (kind !== undefined) resolve(`error event ${kind}`)
      else resolve(stream && !tail.includes('data: [DONE]') ? 'cut' : why)
    }
    res.once('error', (error: NodeJS.ErrnoException) => over(error.code ?? error.message))
    res.once('end', () => over('complete'))
  })
}

/** The number of replies by how they ended, as one line. */
export function tally(outcomes: readonly Outcome[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { status, end, isKept } of outcomes) {
    const connection = isKept ? 'kept' : 'new'
    const name = status === 0 ? `${end} on a ${connection} connection` : `${status} ${end}`
    counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}
