/**
 * Reads the version and beta headers of Messages clients and passes them to Anthropic upstreams.
 *
 * Source: Claude API reference, "Versions" and "Beta headers", read 2026-11-22.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { refuse } from '../../../wire/json/check-fields.js'
import type { BetaOptions } from '../../dialect.js'

/** The protocol headers of a request. */
export interface ProtocolHeaders {
  readonly version?: string
  readonly betas: readonly string[]
}

const MAX_BETAS = 64
const VERSION = /^[\w-]{1,32}$/
const BETA = /^[\w.-]{1,64}$/

/**
 * Reads the protocol headers. Throws `malformed_request` for an invalid header; a missing version is
 * accepted.
 */
export function protocolHeaders(headers: IncomingHttpHeaders): ProtocolHeaders {
  const betas = [
    ...new Set(
      valueOf(headers, 'anthropic-beta')
        .split(',')
        .map((each) => each.trim()),
    ),
  ]
  const named = betas.filter((each) => each !== '')
  if (named.length > MAX_BETAS) refuse('anthropic-beta', `must have at most ${MAX_BETAS} names`)
  if (!named.every((each) => BETA.test(each))) {
    refuse('anthropic-beta', 'must be names of 1 to 64 of the characters A-Z, a-z, 0-9, _, . and -')
  }
  const version = valueOf(headers, 'anthropic-version')
  if (version === '') return { betas: named }
  if (!VERSION.test(version)) refuse('anthropic-version', 'must be a version such as 2023-06-01')
  return { version, betas: named }
}

function valueOf(headers: IncomingHttpHeaders, name: string): string {
  const value = headers[name]
  return (typeof value === 'string' ? value : (value ?? []).join(',')).trim()
}

/** The headers for an Anthropic upstream: those that the body needs (`own`) and those of the client. */
export function forwardedHeaders(
  own: Readonly<Record<string, string>>,
  client: Readonly<Record<string, string>>,
  { betas: allowed, losses }: BetaOptions,
): Record<string, string> {
  const headers = { ...own }
  const version = client['anthropic-version']
  if (version !== undefined) headers['anthropic-version'] = version
  const betas = new Set((own['anthropic-beta'] ?? '').split(','))
  for (const beta of (client['anthropic-beta'] ?? '').split(',')) {
    if (beta === '') continue
    if (allowed === null || allowed.includes(beta)) betas.add(beta)
    else losses.drop(betaPath(beta), 'no-equivalent')
  }
  betas.delete('')
  if (betas.size > 0) headers['anthropic-beta'] = [...betas].join(',')
  return headers
}

/** The name of a beta feature in the list of losses. */
export function betaPath(beta: string): string {
  return `anthropic-beta.${beta}`
}
