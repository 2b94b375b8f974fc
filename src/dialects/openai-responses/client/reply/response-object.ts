/**
 * The response object: the body of a whole reply, and a member of the first and last events of a stream.
 *
 * Source: OpenAI API reference, "The response object", read 2026-11-20.
 */
import type { FinishReason } from '../../../../chat/event.js'
import type { ChatRequest } from '../../../../chat/request.js'
import type { Usage } from '../../../../chat/usage.js'
import type { WireError } from '../../../../errors.js'
import { quote } from '../../../../wire/json/quote.js'
import type { Seed } from '../../../dialect.js'
import { responseError } from '../encode-error.js'
import { encodeUsage } from './encode-usage.js'
import { encodeIncompleteDetails, encodeStatus } from './map-stop-reason.js'
import { repeatedOf } from './repeated-settings.js'

/** The end of a response that did not fail. */
export interface Ending {
  readonly reason: FinishReason
  readonly usage: Usage
  readonly serviceTier?: string | undefined
}

/** Encodes the states of one response as JSON text. */
export class ResponseObject {
  private readonly head: string
  private readonly request: ChatRequest
  private readonly model: string

  constructor(request: ChatRequest, seed: Seed) {
    this.request = request
    this.head = `{"id":"${seed.id}","object":"response","created_at":${seed.createdAtSeconds},"status":"`
    this.model = `"model":${quote(seed.model)},"output":[`
  }

  /** The response at the start of a stream. */
  inProgress(): string {
    return this.write(
      'in_progress',
      '"error":null,"incomplete_details":null',
      '',
      'null',
      undefined,
    )
  }

  /** A response that ended; `items` are the JSON texts of the output items. */
  ended(items: readonly string[], { reason, usage, serviceTier }: Ending): string {
    const middle = `"error":null,"incomplete_details":${encodeIncompleteDetails(reason)}`
    const counts = encodeUsage(usage)
    return this.write(encodeStatus(reason), middle, items.join(','), counts, serviceTier)
  }

  /** A response that failed. */
  failed(items: readonly string[], usage: Usage, error: WireError): string {
    const counts = Object.keys(usage).length === 0 ? 'null' : encodeUsage(usage)
    const details = JSON.stringify(responseError(error))
    const middle = `"error":${details},"incomplete_details":null`
    return this.write('failed', middle, items.join(','), counts, undefined)
  }

  private write(
    status: string,
    middle: string,
    output: string,
    usage: string,
    serviceTier: string | undefined,
  ): string {
    const repeated = this.request.repeated ?? repeatedOf({})
    const members =
      serviceTier === undefined ? repeated : { ...repeated, service_tier: serviceTier }
    const rest = JSON.stringify(members).slice(1)
    return `${this.head}${status}",${middle},${this.model}${output}],"usage":${usage},${rest}`
  }
}
