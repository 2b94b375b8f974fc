/**
 * Entity tags and conditional requests (RFC 9110, section 13). Tags are strong; `apply` and every write check
 * the conditions in the transaction of the write.
 */
import { hash } from 'node:crypto'
import { headerOf, type HttpRequest } from '../../http/message.js'
import { Problem } from '../problem-details.js'

/** The conditions of a request; null without the header. */
export interface Conditions {
  readonly ifMatch: readonly string[] | null
  readonly ifNoneMatch: readonly string[] | null
}

/** The strong entity tag of these values, with its quotes. */
export function etagOf(...values: readonly unknown[]): string {
  return `"${hash('sha256', JSON.stringify(values), 'base64url').slice(0, 22)}"`
}

/** The conditions in the headers. */
export function conditionsOf(req: HttpRequest): Conditions {
  return {
    ifMatch: tagsIn(headerOf(req, 'if-match')),
    ifNoneMatch: tagsIn(headerOf(req, 'if-none-match')),
  }
}

/** A text that is no entity tag equals none. */
function tagsIn(header: string | undefined): string[] | null {
  if (header === undefined) return null
  const text = header.trim()
  return text === '*' ? ['*'] : (text.match(/(?:W\/)?"[^"]*"/g) ?? [])
}

/**
 * The problem of a write whose conditions the current tag (null: there is no object) does not meet; null if
 * it meets them. Weak tags never match.
 */
export function unmet({ ifMatch, ifNoneMatch }: Conditions, etag: string | null): Problem | null {
  const isIn = (tags: readonly string[]): boolean => {
    return etag !== null && (tags.includes('*') || tags.includes(etag))
  }
  if (ifMatch !== null && !isIn(ifMatch)) {
    return failed('If-Match', etag === null ? 'there is no such object' : 'it has changed', etag)
  }
  if (ifNoneMatch !== null && isIn(ifNoneMatch)) {
    return failed('If-None-Match', 'the object exists with this tag', etag)
  }
  return null
}

/** Whether a read is answered with 304. `If-None-Match` compares weakly on reads. */
export function isUnchanged({ ifNoneMatch }: Conditions, etag: string): boolean {
  if (ifNoneMatch === null) return false
  return ifNoneMatch.some((tag) => tag === '*' || tag.replace(/^W\//, '') === etag)
}

function failed(header: string, why: string, etag: string | null): Problem {
  return new Problem('precondition_failed', `${header} is not met: ${why}.`, {
    etag,
    fix: 'Read the object again, and send the request with its current etag.',
  })
}
