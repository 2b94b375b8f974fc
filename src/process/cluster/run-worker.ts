/**
 * One of several processes behind a port: receives configurations and orders from the primary. The caller
 * passes functions that start, change and drain the listeners.
 */
import { isToWorker, type ToPrimary, type ToWorker } from './messages.js'
import type { Logger } from '../../observe/log.js'
import type { Collected } from '../../observe/metrics/metric-types.js'
import type { Readiness } from '../ops/readiness.js'
import { hideSecrets } from '../../hide-secrets.js'
import { endWithParent } from './parent-guard.js'
import { onSignals } from '../signals.js'

/** Handlers for the primary's messages. */
interface WorkerOptions<Payload> {
  /**
   * Whether a message has the payload's shape; a shallow check is enough, since the primary is the same
   * program.
   */
  isPayload: (value: unknown) => value is Payload
  /**
   * Opens the listeners. After a rejection the worker exits; the primary logs the reason and starts another.
   * `ask` sends the primary a request and resolves with the reply, or null after the timeout.
   */
  start: (payload: Payload, ask: ApiRequest) => Promise<void>
  /** Handles an order, after the configurations that were sent before it. */
  onOrder?: (order: unknown) => void
  /**
   * Builds a configuration without applying it. Resolves to the reason if that fails, else to null. Without
   * this function configurations are not tested.
   */
  tryOut?: (payload: Payload) => Promise<string | null>
  /** Puts a newer configuration in force. Called one at a time, after `start`. */
  apply: (payload: Payload) => void | Promise<void>
  ready: () => Readiness
  collect: () => Promise<Collected[]>
  /** The last requests, without their contents, as JSON. */
  recent?: () => readonly unknown[]
  /**
   * Stops accepting and resolves when open requests have ended, or their deadline has passed. With
   * `isReplaced` other workers listen on the same address.
   */
  drain: (isReplaced: boolean) => Promise<void>
  log: Logger
}

/** Sends the primary a request; request and reply are JSON. */
type ApiRequest = (request: unknown, timeoutMs?: number) => Promise<unknown>

const REPORT_MS = 1000
/** Longer than the second for which the primary waits for the metrics of workers. */
const ANSWER_MS = 2000

/** Runs this process as a worker; resolves when it has started. */
export function runWorker<Payload>(options: WorkerOptions<Payload>): Promise<void> {
  return new WorkerRuntime(options).run()
}

class WorkerRuntime<Payload> {
  private readonly options: WorkerOptions<Payload>
  private hasStarted = false
  private draining: Promise<void> | null = null
  /** Configurations are applied in sequence. */
  private queue: Promise<void> = Promise.resolve()
  private started: (() => void) | null = null
  private readonly pending = new Map<number, (answer: unknown) => void>()
  private lastRequestId = 0

  constructor(options: WorkerOptions<Payload>) {
    this.options = options
  }

  run(): Promise<void> {
    const running = new Promise<void>((resolve) => {
      this.started = resolve
    })
    process.on('message', (message: unknown) => {
      if (isToWorker(message)) this.handle(message)
    })
    // SIGINT and SIGHUP reach a terminal's whole process group; the primary handles them for all processes.
    process.on('SIGINT', () => undefined)
    process.on('SIGHUP', () => undefined)
    onSignals({ log: this.options.log, drain: () => this.drain(false), signals: ['SIGTERM'] })
    void send({ type: 'hello' })
    setInterval(() => this.report(), REPORT_MS).unref()
    return running
  }

  private handle(message: ToWorker): void {
    switch (message.type) {
      case 'ping':
        void send({ type: 'pong' })
        return
      case 'config': {
        const step = this.hasStarted ? this.apply(message.payload) : this.start(message.payload)
        this.hasStarted = true
        this.queue = this.queue.then(step)
        return
      }
      case 'collect':
        void this.options.collect().then((metrics) => send({ type: 'metrics', metrics }))
        return
      case 'try':
        void this.tryOut(message.payload).then((fault) => send({ type: 'tried', id: message.id, fault }))
        return
      case 'recent': {
        const requests = [...(this.options.recent?.() ?? [])]
        void send({ type: 'recent', id: message.id, requests })
        return
      }
      case 'reply':
        this.pending.get(message.id)?.(message.answer)
        return
      case 'order': {
        const { order } = message
        this.queue = this.queue.then(() => this.options.onOrder?.(order))
        return
      }
      case 'reopenLog':
        this.options.log.reopen()
        return
      case 'drain':
        void this.drain(message.isReplaced).then(
          () => this.end(0),
          (error: unknown) => {
            this.options.log.error('drain failed', error)
            return this.end(1)
          },
        )
        return
      default:
        message satisfies never
    }
  }

  private start(payload: unknown) {
    return async (): Promise<void> => {
      try {
        await this.options.start(this.checked(payload), (request, timeoutMs) => this.ask(request, timeoutMs))
        this.report()
        endWithParent()
        this.started?.()
      } catch (error) {
        this.options.log.error('worker cannot start', error)
        const message = error instanceof Error ? error.message : String(error)
        await send({ type: 'failed', message: hideSecrets(message, '***') })
        await this.end(1)
      }
    }
  }

  private apply(payload: unknown) {
    return async (): Promise<void> => {
      try {
        await this.options.apply(this.checked(payload))
      } catch (error) {
        this.options.log.error('configuration not applied', error)
      }
      this.report()
    }
  }

  private checked(payload: unknown): Payload {
    if (this.options.isPayload(payload)) return payload
    throw new TypeError('the configuration message is malformed')
  }

  private async tryOut(payload: unknown): Promise<string | null> {
    // Waits for the start, and for the configuration that is being applied.
    await this.queue
    try {
      return (await this.options.tryOut?.(this.checked(payload))) ?? null
    } catch (error) {
      return error instanceof Error ? hideSecrets(error.message, '***') : 'unknown'
    }
  }

  private ask(request: unknown, timeoutMs = ANSWER_MS): Promise<unknown> {
    const id = (this.lastRequestId += 1)
    return new Promise((resolve) => {
      const answered = (answer: unknown): void => {
        clearTimeout(timer)
        this.pending.delete(id)
        resolve(answer)
      }
      const timer = setTimeout(() => answered(null), timeoutMs).unref()
      this.pending.set(id, answered)
      void send({ type: 'ask', id, question: request })
    })
  }

  private report(): void {
    const state = this.options.ready()
    const ready = state.ready && this.draining === null
    void send({ type: 'state', state: { ...state, ready } })
  }

  private drain(isReplaced: boolean): Promise<void> {
    this.draining ??= this.finish(isReplaced)
    return this.draining
  }

  private async finish(isReplaced: boolean): Promise<void> {
    // Before the start there is nothing to drain.
    if (this.hasStarted) {
      this.report()
      await this.queue
      await this.options.drain(isReplaced)
    }
    await send({ type: 'metrics', metrics: await this.options.collect() })
  }

  private async end(code: number): Promise<never> {
    await this.options.log.flush()
    process.exit(code)
  }
}

/** Resolves when the message has been sent, or cannot be. */
function send(message: ToPrimary): Promise<void> {
  return new Promise((resolve) => {
    if (!process.connected || process.send === undefined) resolve()
    else process.send(message, undefined, undefined, () => resolve())
  })
}
