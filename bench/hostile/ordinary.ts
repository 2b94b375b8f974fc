/**
 * Ordinary clients beside the hostile ones: a fixed rate of requests, every fifth a stream, each checked to
 * its end.
 */
import { Agent, request } from 'node:http'

/** Results of the requests of one phase. */
export interface Ordinary {
  readonly sent: number
  readonly failed: number
  /** The first few failures, one sentence each. */
  readonly failures: readonly string[]
  readonly p50Ms: number
  readonly p99Ms: number
  readonly worstMs: number
}

const REPLY_LIMIT_MS = 15_000
const MAX_FAILURES = 5
const WORDS = 'The harbour wakes before the town does.'

/** Sends requests until it is ended. */
export class OrdinaryLoad {
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 256 })
  private readonly port: number
  private readonly secret: string
  private readonly timer: NodeJS.Timeout
  private readonly everyMs: number
  private due = performance.now()
  private sent = 0
  private failed = 0
  private failures: string[] = []
  private latencies: number[] = []
  private readonly waiting = new Set<Promise<void>>()

  constructor(port: number, secret: string, perSecond: number) {
    this.port = port
    this.secret = secret
    this.everyMs = 1000 / perSecond
    this.timer = setInterval(() => this.tick(), this.everyMs)
  }

  /** Results since the last call; waits for the replies to all requests that were sent before. */
  async take(): Promise<Ordinary> {
    await Promise.all(this.waiting)
    const { sent, failed, failures } = this
    const latencies = this.latencies.sort((a, b) => a - b)
    this.sent = 0
    this.failed = 0
    this.failures = []
    this.latencies = []
    const at = (share: number): number =>
      latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0
    return { sent, failed, failures, p50Ms: at(0.5), p99Ms: at(0.99), worstMs: at(1) }
  }

  /** Stops sending, and resolves after the last reply. */
  async end(): Promise<void> {
    clearInterval(this.timer)
    await Promise.all(this.waiting)
    this.agent.destroy()
  }

  /** A late timer sends the missed requests: latency counts from the scheduled time. */
  private tick(): void {
    for (const now = performance.now(); this.due <= now; this.due += this.everyMs) {
      const promise = this.one(this.due, this.sent++ % 5 === 0).finally(() => this.waiting.delete(promise))
      this.waiting.add(promise)
    }
  }

  private async one(due: number, stream: boolean): Promise<void> {
    const fault = await this.ask(stream).catch((error: unknown) => String(error))
    if (fault === null) {
      this.latencies.push(performance.now() - due)
      return
    }
    this.failed += 1
    if (this.failures.length < MAX_FAILURES) this.failures.push(fault)
  }

  /** Null for a complete reply, otherwise its fault. */
  private ask(stream: boolean): Promise<string | null> {
    const messages = [{ role: 'user', content: `[[words: 20]] ${WORDS}` }]
    const body = JSON.stringify({ model: 'gpt-4o-mini', stream, messages })
    return new Promise((resolve, reject) => {
      const req = request({
        agent: this.agent,
        host: '127.0.0.1',
        port: this.port,
        method: 'POST',
        path: '/v1/chat/completions',
        headers: {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          authorization: `Bearer ${this.secret}`,
        },
      })
      req.setTimeout(REPLY_LIMIT_MS, () => req.destroy(new Error(`no reply in ${REPLY_LIMIT_MS} ms`)))
      req.once('error', reject)
      req.once('response', (res) => {
        let text = ''
        res.setEncoding('utf8')
        res.on('data', (chunk: string) => (text += chunk))
        res.once('error', reject)
        res.once('close', () => {
          const status = res.statusCode ?? 0
          const isWhole = stream ? text.includes('data: [DONE]') : text.includes('"finish_reason"')
          if (status === 200 && isWhole) resolve(null)
          else resolve(`status ${status}: ${text.slice(0, 200)}`)
        })
      })
      req.end(body)
    })
  }
}
