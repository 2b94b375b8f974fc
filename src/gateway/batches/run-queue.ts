/**
 * Runs a batch as requests of their own, for an upstream without an API for batches: in the order of the
 * lines, up to a number at a time, each with its own limits, retries and ledger entry.
 */
import type { Identity } from '../../accounts/account.js'
import { numberOf } from '../../base/json.js'
import { hasEnded, type Batch } from '../../policy/batch-records.js'
import { plannedLines, type PlannedLine } from './batch-lines.js'
import type { FileStore, StoredFile } from '../../policy/file-store.js'
import type { Journal, LineResult } from './journal.js'
import { LineReply, LineRequest, lineRequestId, type LineReplyBody } from './line-exchange.js'

/** Serves one line as a request of a client; called with the path and the id of the batch. */
export type RunLine = (
  exchange: { readonly req: LineRequest; readonly res: LineReply },
  as: { readonly identity: Identity; readonly path: string },
  batch: string,
) => void

/** What running a batch needs. */
export interface QueueRun {
  readonly batch: Batch
  readonly files: FileStore
  readonly plan: StoredFile
  readonly journal: Journal
  readonly run: RunLine
  /** The requests that may run at the upstream now; shared by the batches of the upstream. */
  readonly slots: Slots
  /** False as soon as this process must not start more lines. */
  readonly mayStart: () => boolean
  /** Reports the counts now and then. */
  readonly progress: (journal: Journal) => void
}

const FIRST_WAIT_MS = 500
const MAX_WAIT_MS = 60_000
/** Statuses after which a line is sent again. */
const AGAIN = new Set([408, 409, 429])
/** The limits of the gateway, in errors of each format; an upstream may take the line later. */
const OWN_LIMIT = /"(?:kind|reason)":"(?:budget_exceeded|rate_limited)"/

/** Sends the lines without a result. Resolves when all that were sent have one. */
export async function runQueue(queue: QueueRun): Promise<void> {
  const { files, plan, journal, slots, mayStart, progress } = queue
  const running = new Set<Promise<void>>()
  const failures: Error[] = []
  for await (const line of plannedLines(files, plan)) {
    if (journal.has(line.number) || line.refused !== undefined) continue
    await slots.take()
    if (failures.length > 0 || !mayStart()) {
      slots.free()
      break
    }
    const sending = sendLine(line, queue)
      .catch((error: unknown) => {
        failures.push(error instanceof Error ? error : new Error('a line failed', { cause: error }))
      })
      .finally(() => {
        slots.free()
        running.delete(sending)
        progress(journal)
      })
    running.add(sending)
  }
  await Promise.all(running)
  const [failure] = failures
  if (failure !== undefined) throw failure
}

/**
 * Sends a line until it has a result that another attempt would not change. Each time it is another request
 * with a ledger entry of its own, as it may run each time, under one `idempotency-key`. The entry of a line
 * whose process was killed is that of a lost request: its maximum.
 */
async function sendLine(line: PlannedLine, queue: QueueRun): Promise<void> {
  const { batch, journal, mayStart } = queue
  for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(2 * waitMs, MAX_WAIT_MS)) {
    const reply = await replyTo(line, queue)
    const isAnswer = (!AGAIN.has(reply.status) && reply.status < 500) || isFinalRefusal(reply)
    const isFinal = reply.isComplete && isAnswer
    if (isFinal) {
      await journal.add([resultOf(line, batch, reply)])
      return
    }
    if (!mayStart()) return
    const askedMs = (numberOf(Number(reply.headers.get('retry-after') ?? Number.NaN)) ?? 0) * 1000
    const isSet = Number.isFinite(askedMs) && askedMs > waitMs
    await pause(isSet ? Math.min(askedMs, MAX_WAIT_MS) : waitMs, queue)
    if (!mayStart()) return
  }
}

/** Whether a limit refused the line that no wait within the batch's time changes, with any status. */
function isFinalRefusal({ headers, body }: LineReplyBody): boolean {
  if (headers.get('x-should-retry') !== 'false' || headers.has('retry-after')) return false
  return OWN_LIMIT.test(body.toString('utf8'))
}

/** Waits, but not longer than the batch may run: its cancellation is read meanwhile. */
async function pause(ms: number, { journal, mayStart, progress }: QueueRun): Promise<void> {
  const untilMs = performance.now() + ms
  while (performance.now() < untilMs && mayStart()) {
    progress(journal)
    await new Promise((resolve) => setTimeout(resolve, Math.min(250, ms)).unref())
  }
}

function replyTo({ number, body }: PlannedLine, { batch, run }: QueueRun): Promise<LineReplyBody> {
  const { endpoint: path } = batch.info
  const { identity, headers } = batch.secrets
  return new Promise((resolve) => {
    const idempotencyKey = lineRequestId(batch, number)
    const req = new LineRequest(path, { body: Buffer.from(body), idempotencyKey, inherited: headers })
    const res = new LineReply(req, resolve)
    run({ req, res }, { identity, path }, batch.id)
  })
}

function resultOf(
  { number }: PlannedLine,
  batch: Batch,
  { status, headers, body }: LineReplyBody,
): LineResult {
  const requestId = headers.get('x-request-id') ?? lineRequestId(batch, number)
  return { number, requestId, status, body: body.toString('utf8') }
}

/** The requests of queued batches that run at the same time at one upstream. */
export class Slots {
  private used = 0
  private readonly limit: () => number
  private readonly waiting: (() => void)[] = []

  constructor(limit: () => number) {
    this.limit = limit
  }

  /** Resolves when one is free. */
  take(): Promise<void> {
    if (this.used < this.limit()) {
      this.used += 1
      return Promise.resolve()
    }
    return new Promise((resolve) => this.waiting.push(resolve))
  }

  free(): void {
    const next = this.waiting.shift()
    if (next === undefined) this.used -= 1
    else next()
  }
}

/** Whether lines of the batch may still be sent. */
export function mayRun(batch: Batch): boolean {
  return !hasEnded(batch) && !batch.info.isCancelled && Date.now() < batch.info.dueAtMs
}
