/**
 * A steady load on a gateway: each client sends a fixed number of requests a second without waiting for
 * replies. Collects the replies of every client.
 */
import { Agent, request } from 'node:http'

/** A client of the load. */
export interface Client {
  readonly name: string
  /** Called for each request. */
  readonly secret: () => string
  readonly perSecond: number
  /** Whether it reuses connections, as the vendors' SDKs do. */
  readonly keeps?: boolean
}

/** The result of one request. */
export interface Answer {
  readonly client: string
  /** A word that only its prompt contains. */
  readonly tag: string
  /** `performance.now()` when it was sent. */
  readonly sentMs: number
  readonly ms: number
  /** 0 without a reply. */
  readonly status: number
  /** `x-request-id`. */
  readonly id: string
  readonly text: string
  /** Whether the reply is complete. */
  readonly isWhole: boolean
}

const TIME_LIMIT_MS = 10_000
/** Connections of a client that reuses them. */
const KEPT = 8

/** Runs until it is stopped. */
export class Load {
  readonly answers: Answer[] = []
  private readonly port: number
  private readonly timers: NodeJS.Timeout[]
  private readonly agent = new Agent({ keepAlive: true, maxSockets: KEPT })
  private readonly open = new Set<Promise<void>>()
  private sent = 0

  constructor(port: number, clients: readonly Client[]) {
    this.port = port
    for (const client of clients.filter(({ keeps }) => keeps === true)) {
      for (let count = 0; count < KEPT; count += 1) this.send(client)
    }
    this.timers = clients.map((client) => this.start(client))
  }

  /** The requests of a client that were sent within an interval of `performance.now()`. */
  between(fromMs: number, toMs: number, client: string): Answer[] {
    return this.answers.filter(
      (each) => each.client === client && each.sentMs >= fromMs && each.sentMs < toMs,
    )
  }

  /** Stops sending, and waits for running requests. */
  async stop(): Promise<void> {
    for (const timer of this.timers) clearInterval(timer)
    await Promise.all(this.open)
    this.agent.destroy()
  }

  /** Sends late requests at once, so that a busy machine does not lower the rate. */
  private start(client: Client): NodeJS.Timeout {
    const everyMs = 1_000 / client.perSecond
    let dueMs = performance.now() + everyMs
    return setInterval(() => {
      for (const nowMs = performance.now(); dueMs <= nowMs; dueMs += everyMs) this.send(client)
    }, everyMs)
  }

  private send(client: Client): void {
    this.sent += 1
    const asking = this.ask(client, `tag-${this.sent}`, this.sent % 3 === 0)
    const done = asking.then((answer) => {
      this.answers.push(answer)
      this.open.delete(done)
    })
    this.open.add(done)
  }

  private ask(client: Client, tag: string, stream: boolean): Promise<Answer> {
    const messages = [{ role: 'user', content: `Say ${tag}. [[words: 5]]` }]
    const body = JSON.stringify({ model: 'gpt-5.4-mini', stream, messages, max_tokens: 50 })
    const sentMs = performance.now()
    return new Promise((resolve) => {
      let [status, id, text] = [0, '', '']
      const over = (isEnd: boolean): void => {
        const ms = performance.now() - sentMs
        const isWhole = isEnd && (status !== 200 || !stream || text.includes('[DONE]'))
        resolve({ client: client.name, tag, sentMs, ms, status, id, text, isWhole })
      }
      const headers = {
        authorization: `Bearer ${client.secret()}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      }
      const { port, agent } = this
      // Workers accept connections in turn, so a client with a new connection for each request reaches all of
      // them.
      const via = client.keeps === true ? { agent } : { headers: { connection: 'close' } }
      const options = {
        port,
        path: '/v1/chat/completions',
        method: 'POST',
        ...via,
        headers: { ...headers, ...via.headers },
      }
      const req = request(options, (res) => {
        status = res.statusCode ?? 0
        id = String(res.headers['x-request-id'] ?? '')
        res.on('data', (chunk: Buffer) => (text += chunk.toString()))
        res.on('end', () => over(res.complete))
        res.on('error', () => over(false))
      })
      req.on('error', () => over(false))
      req.setTimeout(TIME_LIMIT_MS, () => req.destroy())
      req.end(body)
    })
  }
}

/** The quantile of the values; 0 if there are none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}
