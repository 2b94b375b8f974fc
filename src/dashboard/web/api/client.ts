/**
 * Calls of the dashboard's API. The session's CSRF token is kept in memory only.
 */
import { useSyncExternalStore } from 'react'

const BASE = '/dashboard/api'
const TOKEN_HEADER = 'x-sluice-csrf'
/** Marks requests that the page sends by itself; they do not extend the session. */
const PASSIVE_HEADER = 'x-sluice-passive'

/** Why a call failed, as a text for the user. */
export interface Problem {
  readonly message: string
  /** 0 if there was no reply. */
  readonly status: number
  readonly kind: string
  /** The invalid field. */
  readonly param?: string
  readonly requestId?: string
}

/** A call that was refused or got no reply. */
export class CallFailed extends Error {
  readonly problem: Problem

  constructor(problem: Problem) {
    super(problem.message)
    this.problem = problem
  }
}

/** The problem of a thrown value. */
export function problemOf(error: unknown): Problem {
  if (error instanceof CallFailed) return error.problem
  return { message: error instanceof Error ? error.message : String(error), status: 0, kind: 'bug' }
}

let token: string | null = null
let onSignedOut: () => void = () => undefined

/** Sets the token of requests that change state; null if not signed in. */
export function setToken(next: string | null): void {
  token = next
}

/** Sets the callback for the end of the session. */
export function whenSignedOut(listener: () => void): void {
  onSignedOut = listener
}

/** Members of a query; undefined, null and empty ones are omitted. */
export type Query = Readonly<Record<string, string | number | null | undefined>>

/** The path below the API with its query; the member `id` replaces `{id}`. */
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
  /** The page sends it without user activity. */
  readonly passive?: boolean
}

/** The response itself, for streams and files. Throws `CallFailed` unless the status is 2xx. */
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
  // With 304, the browser's cache has the previous reply.
  if (response.ok) {
    noteReply(url)
    return response
  }
  // A failed change does not affect the figures that are shown.
  if (method === 'GET') noteFailure(url, response.status)
  const problem = await problemIn(response)
  if (problem.status === 401 && token !== null) onSignedOut()
  throw new CallFailed(problem)
}

async function problemIn(response: Response): Promise<Problem> {
  const requestId = response.headers.get('x-request-id') ?? undefined
  const reported = await response.json().then(errorOf, () => ({}))
  return {
    message: `The gateway replied with status ${String(response.status)}.`,
    kind: 'unknown',
    ...reported,
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

/** The connection to the gateway. */
export interface Connection {
  readonly isLost: boolean
  /** Time of the last reply, ms since 1970. */
  readonly lastAtMs: number
  /** Number of reconnections. */
  readonly returns: number
}

/** Paths whose last call failed; `true`: without a reply. */
const failing = new Map<string, boolean>()
const listeners = new Set<() => void>()
let connection: Connection = { isLost: false, lastAtMs: Date.now(), returns: 0 }

function change(next: Partial<Connection>): void {
  connection = { ...connection, ...next }
  for (const listener of listeners) listener()
}

/**
 * Records a failed call; `status` is 0 without a reply. Errors of the caller (4xx) do not affect the
 * connection.
 *
 * The state of the connection, from the results of all calls. While it is lost, figures are not shown as
 * live.
 */
function noteFailure(path: string, status: number): void {
  if (status !== 0 && status < 500) return
  failing.set(path, status === 0)
  if (!connection.isLost) change({ isLost: true })
}

/** Records a reply. */
function noteReply(path: string): void {
  failing.delete(path)
  for (const [each, isSilent] of failing) if (isSilent) failing.delete(each)
  if (failing.size > 0) return
  if (connection.isLost) {
    change({ isLost: false, lastAtMs: Date.now(), returns: connection.returns + 1 })
  } else connection = { ...connection, lastAtMs: Date.now() }
}

/** Clears the failures of the previous page. */
export function clearFailures(): void {
  for (const [path, isSilent] of failing) if (!isSilent) failing.delete(path)
  if (connection.isLost && failing.size === 0) change({ isLost: false })
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** The current state of the connection. */
export function useConnection(): Connection {
  return useSyncExternalStore(subscribe, () => connection)
}
