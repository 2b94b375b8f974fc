/**
 * Calls to the dashboard's own API. Holds the session's token against forged requests in memory and
 * nowhere else; knows nothing of what is shown.
 */
import { noteFailure, noteReply } from './connection.js'

const BASE = '/dashboard/api'
const TOKEN_HEADER = 'x-sluice-csrf'
/** What a page asks by itself does not keep a session alive. */
const PASSIVE_HEADER = 'x-sluice-passive'

/** Why a call failed, in words for the reader. */
export interface Problem {
  readonly message: string
  /** 0 where no answer came. */
  readonly status: number
  readonly kind: string
  /** The field that was wrong. */
  readonly param?: string
  readonly requestId?: string
}

/** A call that was refused, or that no answer came to. */
export class CallFailed extends Error {
  readonly problem: Problem

  constructor(problem: Problem) {
    super(problem.message)
    this.problem = problem
  }
}

/** The problem of whatever was thrown. */
export function problemOf(error: unknown): Problem {
  if (error instanceof CallFailed) return error.problem
  return { message: error instanceof Error ? error.message : String(error), status: 0, kind: 'bug' }
}

let token: string | null = null
let onSignedOut: () => void = () => undefined

/** The token that every change must carry; null when nobody is signed in. */
export function setToken(next: string | null): void {
  token = next
}

/** What to do when the server says that the session is over. */
export function whenSignedOut(listener: () => void): void {
  onSignedOut = listener
}

/** Members of a query; those that are undefined, null or empty are left out. */
export type Query = Readonly<Record<string, string | number | null | undefined>>

/** The path below the API with its query; `{id}` in it is the query's member `id`. */
export function urlOf(path: string, query: Query = {}): string {
  const members = new URLSearchParams()
  let target = path
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null || value === '') continue
    if (path.includes(`{${name}}`)) {
      target = target.replace(`{${name}}`, encodeURIComponent(String(value)))
    } else members.set(name, String(value))
  }
  const text = members.toString()
  return text === '' ? target : `${target}?${text}`
}

interface CallOptions {
  readonly body?: unknown
  readonly signal?: AbortSignal
  /** Nobody asked for it: a refresh. */
  readonly passive?: boolean
}

/** The response itself, for what is streamed or saved as a file. Throws `CallFailed` unless it is 2xx. */
export async function call(
  method: string,
  url: string,
  { body, signal, passive = false }: CallOptions = {},
): Promise<Response> {
  const headers = new Headers({ accept: 'application/json' })
  if (passive) headers.set(PASSIVE_HEADER, '1')
  if (body !== undefined) headers.set('content-type', 'application/json')
  if (token !== null && method !== 'GET') headers.set(TOKEN_HEADER, token)
  let response: Response
  try {
    response = await fetch(BASE + url, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      signal: signal ?? null,
      credentials: 'same-origin',
      cache: 'no-cache',
    })
  } catch (error) {
    if (signal?.aborted === true) throw error
    noteFailure(url, 0)
    throw new CallFailed({
      message: 'The gateway did not reply. Check your connection and try again.',
      status: 0,
      kind: 'unreachable',
    })
  }
  // A browser's own cache answers 304 with the reply before.
  if (response.ok) {
    noteReply(url)
    return response
  }
  // A change that failed leaves what is shown as it was.
  if (method === 'GET') noteFailure(url, response.status)
  const problem = await problemIn(response)
  if (problem.status === 401 && token !== null) onSignedOut()
  throw new CallFailed(problem)
}

async function problemIn(response: Response): Promise<Problem> {
  const requestId = response.headers.get('x-request-id') ?? undefined
  const told = await response.json().then(errorOf, () => ({}))
  return {
    message: `The gateway replied with status ${String(response.status)}.`,
    kind: 'unknown',
    ...told,
    status: response.status,
    ...(requestId === undefined ? {} : { requestId }),
  }
}

function errorOf(body: unknown): Partial<Problem> {
  const error = memberOf(body, 'error')
  const [message, kind, param] = ['message', 'kind', 'param'].map((name) => memberOf(error, name))
  return {
    ...(typeof message === 'string' ? { message } : {}),
    ...(typeof kind === 'string' ? { kind } : {}),
    ...(typeof param === 'string' ? { param } : {}),
  }
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  return Object.entries(value).find(([key]) => key === name)?.[1]
}
