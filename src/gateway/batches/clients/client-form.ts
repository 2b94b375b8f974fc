/**
 * The form in which a vendor's clients make, read and list batches. Batches of all forms have the same life;
 * the endpoint of the lines tells the form.
 */
import type { Identity } from '../../../accounts/account.js'
import type { JsonObject } from '../../../base/json.js'
import type { ResolvedEndpoint } from '../../../formats/index.js'
import type { ClientFormat } from '../../../formats/chat/operations.js'
import type { Batch, BatchHead } from '../../../policy/batch-records.js'
import type { FileStore, StoredFile } from '../../../policy/file-store.js'
import type { Exchange } from '../../client-exchange.js'

/** A line that is valid as such. */
export interface ReadLine {
  /** Names the line in the results; null: its place does. */
  readonly id: string | null
  /** The bytes of the request's body. */
  readonly body: Buffer
  readonly model: string
  /** What its result has besides, as JSON. */
  readonly metadata?: string
}

/** The lines of a batch. */
export interface LineForm {
  readonly maxLines: number
  /** The member that has them, or names their file. */
  readonly param: string
  /** The member of a line that names it. */
  readonly idName: string
  /** The member of a line that names the model. */
  readonly modelName: string
  /** The place of a line in messages; numbers count from 1. */
  readonly place: (number: number) => string
  /** Reads the bytes of a line. Throws `malformed_request`. */
  readonly read: (bytes: Buffer) => ReadLine
}

/** The request for a new batch. */
export interface AskedBatch {
  /** The lines. */
  readonly input: StoredFile
  /** The client's file; '' if the lines are in the body. */
  readonly inputFileId: string
  readonly lines: LineForm
  /** The path of each request. */
  readonly endpoint: string
  readonly resolved: ResolvedEndpoint
  readonly window: string
  readonly windowMs: number
  readonly metadata: JsonObject | null
  /** The body without the lines. */
  readonly body: JsonObject
}

/** The account of a client, and the files. */
export interface Asking {
  readonly identity: Identity
  readonly files: FileStore
  /** The model in the path; null if there is none. */
  readonly model: string | null
}

/** How a line ended. */
export type LineEnd = 'ok' | 'error' | 'expired' | 'cancelled' | 'refused'

/** The result of a line. */
export interface LineOutcome {
  readonly id: string
  /** Its number, from 1. */
  readonly number: number
  readonly metadata?: string
  readonly requestId: string
  /** In the client's format; null if it did not run. */
  readonly reply: { readonly status: number; readonly body: string } | null
  /** Why it did not run; null if it did. */
  readonly missing: { readonly code: string; readonly message: string } | null
  readonly end: LineEnd
}

/** One form. */
export interface ClientForm {
  readonly idPrefix: 'batch_' | 'msgbatch_'
  /** The value of the ledger's column `ingress`. */
  readonly ingress: ClientFormat
  /** The member that names a batch, in errors. */
  readonly param: string
  /** Reads the request of a new batch. Rejects with `GatewayError`. */
  readonly ask: (x: Exchange, asking: Asking) => Promise<AskedBatch>
  /** Lines that do not succeed have a file of their own. */
  readonly hasErrorFile: boolean
  /** A line of the file with results, with its end. */
  readonly result: (outcome: LineOutcome, batch: Batch) => string
  /** The batch as its clients see it. */
  readonly shown: (batch: Batch, x: Exchange) => JsonObject
  /** The page of the list that the query selects, with the batches by their ids only. */
  readonly page: (batches: readonly BatchHead[], query: URLSearchParams) => BatchPage
  /**
   * The reply with a batch that has its results in it, which are read from the file; absent, or null: `shown`
   * is.
   */
  readonly whole?: (batch: Batch, results: () => AsyncIterable<Buffer>) => AsyncIterable<Buffer> | null
  /** The reply to a cancellation; absent: the batch. */
  readonly cancelled?: JsonObject
  /** The reply to the deletion of a batch. */
  readonly deleted: (id: string) => JsonObject
}

/** A page of a list. */
interface BatchPage {
  readonly ids: readonly string[]
  /** The reply with these batches. */
  readonly around: (shown: readonly JsonObject[]) => JsonObject
}
