/**
 * Calls of the dashboard's API, the cache of their replies, and the state of the connection. The session's
 * CSRF token is kept in memory only.
 */
import { QueryClient } from '@tanstack/react-query'
import { useSyncExternalStore } from 'react'
import { hasCredential } from '../format/secret-text.js'
import { accountOfPath, pathNow } from '../routing.js'
import { Listeners } from '../listeners.js'

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

/** No reply, or one of a gateway that is overloaded or cannot reach its store: worth another attempt. */
function isPassing(error: unknown): boolean {
  const { status } = problemOf(error)
  return status === 0 || status >= 502
}

/** The replies that the page has loaded, by path and query. */
export const cache = new QueryClient({
  defaultOptions: {
    queries: {
      retry: (count, error) => count < 2 && isPassing(error),
      retryDelay: (count) => 250 * 3 ** count,
      staleTime: 2_000,
      // A gateway on this computer can be reached without a network.
      networkMode: 'always',
    },
  },
})

let token: string | null = null
let onSignedOut: () => void = () => undefined

/**
 * Sets the token of requests that change state; null if not signed in. Replies of another session are
 * dropped.
 */
export function setToken(next: string | null): void {
  if (token !== null && token !== next) cache.clear()
  // What pages keep over a reload is of the user who was signed in.
  if (next === null) window.sessionStorage.clear()
  token = next
}

let usualAccount: string | null = null

/** Sets the account that calls are about if the address names none: `all`, or null for the user's own. */
export function setUsualAccount(account: string | null): void {
  usualAccount = account
}

/** The account of the address. */
export function accountNow(): string | null {
  const named = accountOfPath(pathNow()) ?? new URLSearchParams(window.location.search).get('account')
  return named ?? usualAccount
}

/** Whether a user is signed in. */
export function isSignedIn(): boolean {
  return token !== null
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
    if (typeof value === 'string' && hasCredential(value)) continue
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
  /** The client's id of the request, by which its entry is found. */
  readonly clientRequestId?: string
}

/** The response itself, for streams and files. Throws `CallFailed` unless the status is 2xx. */
export async function call(
  method: string,
  url: string,
  { body, signal, passive = false, clientRequestId }: CallOptions = {},
): Promise<Response> {
  const headers = new Headers({ accept: 'application/json' })
  if (passive) headers.set(PASSIVE_HEADER, '1')
  if (clientRequestId !== undefined) headers.set('x-client-request-id', clientRequestId)
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
    noteReply()
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
  const reported = await response.json().then(reportedIn, () => ({}))
  return {
    message: `The gateway replied with status ${String(response.status)}.`,
    kind: 'unknown',
    ...reported,
    status: response.status,
    ...(requestId === undefined ? {} : { requestId }),
  }
}

/** What problem details say, or the error of a format of models in the playground. */
function reportedIn(body: unknown): Partial<Problem> {
  const error = memberOf(body, 'error')
  const [detail, fix, kind, param] = ['detail', 'fix', 'kind', 'field'].map((name) => textOf(body, name))
  const message = detail === undefined ? textOf(error, 'message') : joined(detail, fix)
  return {
    ...(message === undefined ? {} : { message }),
    ...(kind === undefined ? {} : { kind }),
    ...(param === undefined ? {} : { param }),
  }
}

function joined(detail: string, fix: string | undefined): string {
  return fix === undefined ? detail : `${detail} ${fix}`
}

function textOf(value: unknown, name: string): string | undefined {
  const member = memberOf(value, name)
  return typeof member === 'string' ? member : undefined
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  return Object.entries(value).find(([key]) => key === name)?.[1]
}

/** The connection to the gateway. */
interface Connection {
  readonly isLost: boolean
  /** Time of the last reply, ms since 1970. */
  readonly lastAtMs: number
}

/** Paths that have failed since the last reply. */
const failing = new Set<string>()
const listeners = new Listeners()
let connection: Connection = { isLost: false, lastAtMs: Date.now() }

function become(next: Connection): void {
  const isChanged = next.isLost !== connection.isLost
  connection = next
  if (!isChanged) return
  listeners.tell()
  if (!next.isLost) void cache.invalidateQueries()
}

/**
 * Records a failed call; `status` is 0 without a reply. Errors of the caller (4xx) prove that the gateway is
 * there. A single endpoint that fails is that block's problem: the connection is lost once a second endpoint,
 * which is loaded for this purpose, fails too and none has replied in between.
 */
function noteFailure(url: string, status: number): void {
  if (status !== 0 && status < 500) {
    noteReply()
    return
  }
  const [path = ''] = url.split('?')
  failing.add(path)
  if (failing.size > 1) become({ ...connection, isLost: true })
  else probe(path === '/session' ? '/models' : '/session')
}

/** Loads a small reply to learn whether the gateway is there; the call records the result. */
export function probe(path = '/session'): void {
  call('GET', path, { passive: true }).catch(() => undefined)
}

function noteReply(): void {
  failing.clear()
  become({ isLost: false, lastAtMs: Date.now() })
}

/** The current state of the connection. */
export function useConnection(): Connection {
  return useSyncExternalStore(listeners.subscribe, () => connection)
}
