/**
 * The errors of both control APIs, that of the dashboard and the admin API: one table of kinds, and problem
 * details (RFC 9457) as replies.
 */
import { STATUS_CODES } from 'node:http'
import { type FieldFault, Refusal } from '../accounts/changes/refusal.js'
import { GatewayError, gatewayError, rowOf, type ErrorKind, type WireError } from '../errors.js'
import type { JsonObject } from '../base/json.js'
import { hideSecrets } from '../hide-secrets.js'
import type { HttpResponse } from '../http/message.js'
import type { RefusalBody } from '../http/refuse-request.js'
import { sendReply } from '../http/respond.js'

/** The content type of problems. */
const PROBLEM_TYPE = 'application/problem+json'

/** The kinds of the admin API: status and title. */
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

/** The name of an error: one of the admin API, or one of the gateway that has no other name here. */
type ProblemKind = keyof typeof PROBLEMS | ErrorKind

/** Members of a problem besides those of its kind. */
interface ProblemMembers {
  readonly field?: string
  readonly fix?: string
  readonly errors?: readonly (Pick<FieldFault, 'field' | 'detail'> & { readonly fix?: string })[]
  /** The current entity tag, of `precondition_failed`. */
  readonly etag?: string | null
  readonly required_scope?: string
}

/** What the problems of an API have of their own. */
export interface ProblemWords {
  /** Equal refusals have equal bodies: the id of the request is in the header alone. */
  readonly isAlike?: true
  /** Titles in place of those of the table, by kind. */
  readonly titles?: Readonly<Partial<Record<ProblemKind, string>>>
  /** Advice in place of a common one; null: none. */
  readonly fixes?: Readonly<Record<string, string | null>>
  /** The name that its bodies have for a field of a change; without it, that of the admin API. */
  readonly fieldOf?: (field: string) => string
}

/** Why a request is refused, or one of its changes. */
export type Refused = Problem | Refusal

/** An error of a control API. */
export class Problem extends Error {
  readonly kind: ProblemKind
  readonly members: ProblemMembers
  /** Name, value, …. */
  readonly headers: readonly string[]
  readonly status: number

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
    this.status = isListed(kind) ? PROBLEMS[kind][0] : rowOf(kind).status
  }

  /** The body of the reply. */
  body(requestId: string, { isAlike, titles = {} }: ProblemWords = {}): JsonObject {
    const { kind, status, message } = this
    const { field, fix, errors, etag, required_scope } = this.members
    const title = isListed(kind) ? PROBLEMS[kind][1] : (STATUS_CODES[status] ?? '')
    return {
      type: `urn:sluice:error:${kind}`,
      title: titles[kind] ?? title,
      status,
      detail: hideSecrets(message),
      kind,
      ...(isAlike === true ? {} : { request_id: requestId }),
      ...(field === undefined ? {} : { field: hideSecrets(field) }),
      ...(fix === undefined ? {} : { fix }),
      ...(errors === undefined ? {} : { errors: errors.map((fault) => ({ ...fault })) }),
      ...(etag === undefined ? {} : { etag }),
      ...(required_scope === undefined ? {} : { required_scope }),
    }
  }
}

function isListed(kind: ProblemKind): kind is keyof typeof PROBLEMS {
  return Object.hasOwn(PROBLEMS, kind)
}

/** An object that does not exist, or that the token may not see: one text for both. */
export function notFound(): Problem {
  return new Problem('not_found', 'There is no such object, or this token may not see it.')
}

/** The problem of an error that a handler threw. */
export function problemOf(error: unknown, words: ProblemWords = {}): Problem {
  if (error instanceof Problem) return error
  if (error instanceof Refusal) return problemOfRefusal(error, words)
  if (!(error instanceof GatewayError) || error.kind === 'bug') return bug()
  const { kind, message, wire } = error
  const { param: field, retryAfterSeconds } = wire
  const retryAfter = (seconds = retryAfterSeconds) => {
    return seconds === undefined ? [] : ['retry-after', String(seconds)]
  }
  switch (kind) {
    case 'malformed_request':
      return field === undefined
        ? new Problem('malformed_request', sentence(message))
        : new Problem('invalid_field', sentence(message), { field, ...advice(OTHER_VALUE, words) })
    case 'store_unavailable':
    case 'store_unconfirmed':
    case 'overloaded':
      return new Problem('store_unavailable', sentence(message), {}, retryAfter(retryAfterSeconds ?? 1))
    default:
      return new Problem(kind, sentence(message), field === undefined ? {} : { field }, retryAfter())
  }
}

/** The advice for a value of which the message tells all. */
export const OTHER_VALUE = 'Send another value.'

/** Answers a request with a problem. */
export function sendProblem(
  res: HttpResponse,
  problem: Problem,
  { requestId, words }: { readonly requestId: string; readonly words?: ProblemWords },
): void {
  const { status, headers } = problem
  const common = ['content-type', PROBLEM_TYPE, 'x-request-id', requestId, ...COMMON]
  const body = JSON.stringify(problem.body(requestId, words))
  sendReply(res, { status, headers: [...common, ...headers], body })
}

/** Headers of every reply of the admin API, and of every problem. */
export const COMMON = ['cache-control', 'no-store', 'x-content-type-options', 'nosniff'] as const

/** The body for a request below the path of a control API that the listener refuses. */
export function refusalBody(error: WireError, requestId: string, words?: ProblemWords): RefusalBody {
  return { type: PROBLEM_TYPE, text: JSON.stringify(problemOf(gatewayError(error)).body(requestId, words)) }
}

function problemOfRefusal(thrown: Refusal, words: ProblemWords): Problem {
  const { refusal, detail, field, fix, faults } =
    words.fieldOf === undefined ? thrown : thrown.named(words.fieldOf)
  const errors = faults.map((fault) => {
    return { field: fault.field, detail: fault.detail, ...advice(fault.fix, words) }
  })
  return new Problem(refusal, detail, {
    ...(field === undefined ? {} : { field }),
    ...advice(fix, words),
    ...(errors.length > 1 ? { errors } : {}),
  })
}

/** The advice as the API has it; none if there is none. */
function advice(fix: string | undefined, { fixes = {} }: ProblemWords): { readonly fix?: string } {
  const own = fix !== undefined && Object.hasOwn(fixes, fix) ? fixes[fix] : fix
  return own === undefined || own === null ? {} : { fix: own }
}

function bug(): Problem {
  const detail = 'The log of the gateway has the details under the request id.'
  return new Problem('bug', detail)
}

function sentence(message: string): string {
  const text = message.charAt(0).toUpperCase() + message.slice(1)
  return /[.!?]$/.test(text) ? text : `${text}.`
}
