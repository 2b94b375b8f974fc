/**
 * The response object: the body of a whole reply, and a member of the first and last events of a stream.
 *
 * Source: OpenAI API reference, "The response object", read 2026-11-20.
 */
import type { FinishReason } from '../../../../chat/event.js'
import type { ChatRequest } from '../../../../chat/request.js'
import type { Usage } from '../../../../chat/usage.js'
import type { WireError } from '../../../../errors.js'
import { stringifyExact } from '../../../../wire/json/exact-numbers.js'
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

/** The members that differ between the states of a response, as JSON text except for the tier. */
interface ResponseState {
  readonly status: string
  /** The members `error` and `incomplete_details`. */
  readonly details: string
  /** The items without the brackets of the array. */
  readonly output: string
  readonly usage: string
  /** The tier that served the request; undefined repeats the requested one. */
  readonly serviceTier: string | undefined
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
    return this.write({
      status: 'in_progress',
      details: '"error":null,"incomplete_details":null',
      output: '',
      usage: 'null',
      serviceTier: undefined,
    })
  }

  /** A response that ended; `items` are the JSON texts of the output items. */
  ended(items: readonly string[], { reason, usage, serviceTier }: Ending): string {
    return this.write({
      status: encodeStatus(reason),
      details: `"error":null,"incomplete_details":${encodeIncompleteDetails(reason)}`,
      output: items.join(','),
      usage: encodeUsage(usage),
      serviceTier,
    })
  }

  /** A response that failed. */
  failed(items: readonly string[], usage: Usage, error: WireError): string {
    return this.write({
      status: 'failed',
      details: `"error":${JSON.stringify(responseError(error))},"incomplete_details":null`,
      output: items.join(','),
      usage: Object.keys(usage).length === 0 ? 'null' : encodeUsage(usage),
      serviceTier: undefined,
    })
  }

  private write({ status, details, output, usage, serviceTier }: ResponseState): string {
    const repeated = this.request.repeated ?? repeatedOf({})
    const members =
      serviceTier === undefined ? repeated : { ...repeated, service_tier: serviceTier }
    const rest = stringifyExact(members).slice(1)
    return `${this.head}${status}",${details},${this.model}${output}],"usage":${usage},${rest}`
  }
}
