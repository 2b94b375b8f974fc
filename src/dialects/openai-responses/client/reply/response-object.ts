/**
 * The response object: the same in a whole reply and in the events that begin and end a stream.
 * Everything that the request decides is written once.
 *
 * Source: OpenAI API reference, "The response object", read 2026-11-20.
 */
import type { FinishReason } from '../../../../chat/event.js'
import type { ChatRequest } from '../../../../chat/request.js'
import { totalTokens, type Usage } from '../../../../chat/usage.js'
import type { WireError } from '../../../../errors.js'
import { quote } from '../../../../wire/json/quote.js'
import type { Seed } from '../../../dialect.js'
import { repeatedOf } from './repeated-settings.js'

/** How a response ended. */
export interface Ended {
  readonly reason: FinishReason
  readonly usage: Usage
  readonly serviceTier?: string | undefined
}

/** Writes the states of one response. */
export class ResponseObject {
  private readonly head: string
  private readonly request: ChatRequest
  private readonly model: string

  constructor(request: ChatRequest, seed: Seed) {
    this.request = request
    this.head = `{"id":"${seed.id}","object":"response","created_at":${seed.createdAtSeconds},"status":"`
    this.model = `"model":${quote(seed.model)},"output":[`
  }

  /** Not yet answered. */
  begun(): string {
    return this.write(
      'in_progress',
      '"error":null,"incomplete_details":null',
      '',
      'null',
      undefined,
    )
  }

  /** Answered; `items` are the texts of the output items. */
  ended(items: readonly string[], { reason, usage, serviceTier }: Ended): string {
    const status = statusOf(reason)
    const why = reason === 'filter' ? 'content_filter' : 'max_output_tokens'
    const details = status === 'incomplete' ? `{"reason":"${why}"}` : 'null'
    const middle = `"error":null,"incomplete_details":${details}`
    return this.write(status, middle, items.join(','), usageText(usage), serviceTier)
  }

  /** Broken off. */
  failed(items: readonly string[], usage: Usage, error: WireError): string {
    const counts = Object.keys(usage).length === 0 ? 'null' : usageText(usage)
    const middle = `"error":${errorText(error)},"incomplete_details":null`
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
    const told = serviceTier === undefined ? repeated : { ...repeated, service_tier: serviceTier }
    const rest = JSON.stringify(told).slice(1)
    return `${this.head}${status}",${middle},${this.model}${output}],"usage":${usage},${rest}`
  }
}

/** `incomplete` for what was cut. */
export function statusOf(reason: FinishReason): 'completed' | 'incomplete' {
  return reason === 'length' || reason === 'filter' ? 'incomplete' : 'completed'
}

/** All counts are integers, because clients' types demand it. */
function usageText(usage: Usage): string {
  const { input = 0, output = 0, cacheRead = 0, cacheWrite, reasoning = 0 } = usage
  const written = cacheWrite === undefined ? '' : `,"cache_write_tokens":${cacheWrite}`
  return `{"input_tokens":${input},"input_tokens_details":{"cached_tokens":${cacheRead}${written}},"output_tokens":${output},"output_tokens_details":{"reasoning_tokens":${reasoning}},"total_tokens":${totalTokens(usage) ?? 0}}`
}

/** `error` of a response that failed. */
function errorText({ kind, message }: WireError): string {
  const code = kind === 'upstream_busy' ? 'rate_limit_exceeded' : 'server_error'
  return JSON.stringify({ code, message, kind })
}
