/**
 * The errors of the admin API: one table of kinds, and problem details (RFC 9457) as replies.
 */
import { type FieldFault, Refusal } from '../../accounts/changes/refusal.js'
import { GatewayError } from '../../errors.js'
import type { JsonObject } from '../../base/json.js'

/** The content type of problems. */
export const PROBLEM_TYPE = 'application/problem+json'

/** Every kind: its status and its title. */
export const PROBLEMS = {
  malformed_request: [400, 'The request, or the JSON object in its body, cannot be read'],
  unknown_field: [400, 'A field or query parameter does not exist'],
  invalid_field: [400, 'A field or query parameter has a wrong value'],
  read_only_field: [400, 'A read-only field has another value'],
  unauthenticated: [401, 'No valid admin token'],
  insufficient_scope: [403, 'The token lacks a scope'],
  forbidden: [403, 'The account or the scopes of the token do not allow this'],
  plan_limit: [403, 'The plan allows no more keys'],
  not_found: [404, 'Not found'],
  unknown_endpoint: [404, 'No such endpoint'],
  method_not_allowed: [405, 'The path exists, with other methods'],
  name_taken: [409, 'The name is in use'],
  has_children: [409, 'The account has accounts below it'],
  secret_in_use: [409, 'Another key has this secret'],
  precondition_failed: [412, 'A precondition of the request is not met'],
  body_too_large: [413, 'The body is too large'],
  unsupported_media_type: [415, 'The body is not JSON'],
  rate_limited: [429, 'Too many requests with this token'],
  bug: [500, 'Internal error'],
  store_unavailable: [503, 'The store does not answer'],
} as const satisfies Record<string, readonly [status: number, title: string]>

/** The name of an error. */
type ProblemKind = keyof typeof PROBLEMS

/** Members of a problem besides those of its kind. */
interface ProblemMembers {
  readonly field?: string
  readonly fix?: string
  readonly errors?: readonly Omit<FieldFault, 'kind'>[]
  /** The current entity tag, of `precondition_failed`. */
  readonly etag?: string | null
  readonly required_scope?: string
}

/** Why a request is refused, or one of its changes. */
export type Refused = Problem | Refusal

/** An error of the admin API. */
export class Problem extends Error {
  readonly kind: ProblemKind
  readonly members: ProblemMembers
  /** Name, value, …. */
  readonly headers: readonly string[]

  constructor(
    kind: ProblemKind,
    detail: string,
    members: ProblemMembers = {},
    headers: readonly string[] = [],
  ) {
    super(detail)
    this.name = 'Problem'
    this.kind = kind
    this.members = members
    this.headers = headers
  }

  get status(): number {
    return PROBLEMS[this.kind][0]
  }

  /** The body of the reply. */
  body(requestId: string): JsonObject {
    const [status, title] = PROBLEMS[this.kind]
    const { field, fix, errors, etag, required_scope } = this.members
    return {
      type: `urn:sluice:error:${this.kind}`,
      title,
      status,
      detail: this.message,
      kind: this.kind,
      request_id: requestId,
      ...(field === undefined ? {} : { field }),
      ...(fix === undefined ? {} : { fix }),
      ...(errors === undefined ? {} : { errors: errors.map((fault) => ({ ...fault })) }),
      ...(etag === undefined ? {} : { etag }),
      ...(required_scope === undefined ? {} : { required_scope }),
    }
  }
}

/** An object that does not exist, or that the token may not see: one text for both. */
export function notFound(): Problem {
  return new Problem('not_found', 'There is no such object, or this token may not see it.')
}

/** The problem of an error that a handler threw. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error
  if (error instanceof Refusal) return problemOfRefusal(error)
  if (!(error instanceof GatewayError)) return bug()
  const { kind, message, wire } = error
  const retryAfter = ['retry-after', String(wire.retryAfterSeconds ?? 1)]
  switch (kind) {
    case 'malformed_request':
      return wire.param === undefined
        ? new Problem('malformed_request', sentence(message))
        : new Problem('invalid_field', sentence(message), { field: wire.param, fix: 'Send another value.' })
    case 'body_too_large':
    case 'method_not_allowed':
    case 'unsupported_media_type':
    case 'forbidden':
    case 'plan_limit':
      return new Problem(kind, sentence(message))
    case 'store_unavailable':
    case 'store_unconfirmed':
    case 'overloaded':
      return new Problem('store_unavailable', sentence(message), {}, retryAfter)
    default:
      return bug()
  }
}

/** Advice of which this API has a form of its own. */
const OWN_ADVICE: Readonly<Record<string, string>> = {
  'Create a new one.': 'Create a new one with PUT.',
  'Use one such as team@example.com.': 'Use one in the path.',
}

function problemOfRefusal({ refusal, detail, field, fix, faults }: Refusal): Problem {
  const errors = faults.map((fault) => ({
    field: fault.field,
    detail: fault.detail,
    fix: fault.fix,
  }))
  return new Problem(refusal, detail, {
    ...(field === undefined ? {} : { field }),
    ...(fix === undefined ? {} : { fix: OWN_ADVICE[fix] ?? fix }),
    ...(errors.length > 1 ? { errors } : {}),
  })
}

function bug(): Problem {
  const detail = 'The log of the gateway has the details under the request id.'
  return new Problem('bug', detail)
}

function sentence(message: string): string {
  const text = message.charAt(0).toUpperCase() + message.slice(1)
  return /[.!?]$/.test(text) ? text : `${text}.`
}
