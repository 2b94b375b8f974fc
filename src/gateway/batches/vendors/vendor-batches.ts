/** What the gateway does with a batch at a vendor. */
import type { JsonObject } from '../../../base/json.js'

/** A line for a vendor. */
interface VendorLine {
  /** Names the line in the results. */
  readonly key: string
  /** The body of the request, as JSON. */
  readonly request: string
}

/** A batch for a vendor. */
export interface VendorBatch {
  /** The batch's own id, by which it is found again. */
  readonly id: string
  readonly createdAtMs: number
  /** The number of lines. */
  readonly total: number
  /** The upstream's name of the model. */
  readonly model: string
  /** The path of each request, with the version. */
  readonly endpoint: string
  /** Of the vendor's protocol. */
  readonly headers: Readonly<Record<string, string>>
  readonly window: string
  /** The size of all requests together. */
  readonly bytes: number
  readonly lines: () => AsyncIterable<VendorLine>
}

/** The result of one line. */
export interface VendorResult {
  /** Null: that of the line in the same place. */
  readonly key: string | null
  /** Null: the line did not run. */
  readonly reply: { readonly status: number; readonly body: string } | null
  /** Why it did not run. */
  readonly code?: 'batch_expired' | 'batch_cancelled' | 'batch_missing_result'
}

/** The state of a batch at a vendor. */
export interface VendorState {
  readonly state: 'running' | 'ended' | 'failed' | 'cancelled' | 'expired'
  readonly completed: number
  readonly failed: number
  readonly message: string
  /** The vendor's reply, for `results`. */
  readonly object: JsonObject
}

/** Clocks may differ. */
const EARLIER_MS = 60_000

/** Whether a batch that a vendor made at this time may be the batch; true without a time. */
export function mayBe({ createdAtMs }: VendorBatch, madeAtMs: number): boolean {
  return !(madeAtMs < createdAtMs - EARLIER_MS)
}

/** The batches of one vendor. Methods reject with `VendorError`. */
export interface VendorBatches {
  /** Sends the batch; the vendor's id. */
  submit(batch: VendorBatch): Promise<string>
  /**
   * The vendor's id of a batch that was sent before; null if there is none. It is none of `others`, the ids
   * of other batches.
   */
  find(batch: VendorBatch, others: ReadonlySet<string>): Promise<string | null>
  /** `find` may find another batch, because batches have no mark. */
  readonly isGuessed: boolean
  read(vendorId: string): Promise<VendorState>
  results(state: VendorState): AsyncIterable<VendorResult>
  cancel(vendorId: string): Promise<void>
}
