/**
 * AWS Signature Version 4 over the bytes of a request, by the clock of AWS. Our own, because the library
 * takes 81 µs for a request and this takes less than 15 µs; it is compared with AWS's test vectors and with
 * the SDKs.
 *
 * Source: AWS IAM user guide, "Create a signed AWS API request", read 2026-11-23.
 */
import { createHash, createHmac, hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { AwsKeys } from './credential-sources.js'

/** A request before it is signed. */
interface UnsignedRequest {
  readonly method: string
  /** Path and query, exactly as sent. */
  readonly path: string
  /** The `host` header. */
  readonly host: string
  /** Name, value, … */
  readonly headers: readonly string[]
  /** SHA-256 of the body, hex. */
  readonly bodyHash: string
}

/** The scope of a signature. */
export interface SigningScope {
  readonly region: string
  readonly service: string
}

const ALGORITHM = 'AWS4-HMAC-SHA256'

/** The difference between the clock of AWS and that of this machine, for the whole process. */
export const awsClock = { offsetMs: 0, changedAtMs: 0 }
/** AWS accepts signatures for ± 5 minutes. */
const SKEW_MS = 240_000
const WRONG_TIME = /signature (?:expired|not yet current)|RequestTimeTooSkewed|RequestInTheFuture/i

/**
 * Takes over the time of a reply that refuses a request if that differs from the time of the signature:
 * whether to sign and send the request, which was signed at `sinceMs`, a second time.
 */
export function correctClock({ date }: IncomingHttpHeaders, text: string, sinceMs: number): boolean {
  // Another request has corrected it since this one was signed.
  if (awsClock.changedAtMs > sinceMs) return true
  const theirsMs = Date.parse(date ?? '')
  if (Number.isNaN(theirsMs)) return false
  const offsetMs = theirsMs - Date.now()
  const differenceMs = Math.abs(offsetMs - awsClock.offsetMs)
  const isWrong = differenceMs > SKEW_MS || (WRONG_TIME.test(text) && differenceMs > 1_000)
  if (!isWrong) return false
  awsClock.offsetMs = offsetMs
  awsClock.changedAtMs = Date.now()
  return true
}

/** The signed headers in canonical form: their names, sorted and joined, and a line for each. */
interface SignedHeaders {
  readonly names: string
  readonly lines: string
}

/**
 * The headers that sign the request at a time: name, value, … Signs `host`, `content-type` and every `x-amz-`
 * header; what a proxy may rewrite stays out.
 */
export function signatureHeaders(
  request: UnsignedRequest,
  keys: AwsKeys,
  scope: SigningScope,
  nowMs: number,
): string[] {
  const time = timeText(nowMs)
  const { keyId, sessionToken } = keys
  const signed = signedHeaders(request, time, keys)
  const { scope: inScope, signature } = signatureOf(request, signed, keys, scope, time)
  const authorization = `${ALGORITHM} Credential=${keyId}/${inScope}, SignedHeaders=${signed.names}, Signature=${signature}`
  const own = ['x-amz-date', time, 'x-amz-content-sha256', request.bodyHash]
  if (sessionToken !== null) own.push('x-amz-security-token', sessionToken)
  own.push('authorization', authorization)
  return own
}

/** The signature, and the scope in the credential. */
export function signatureOf(
  request: Pick<UnsignedRequest, 'method' | 'path' | 'bodyHash'>,
  signed: SignedHeaders,
  keys: AwsKeys,
  signingScope: SigningScope,
  time: string,
): { readonly scope: string; readonly signature: string } {
  const { scope, key } = signingKey(keys, time.slice(0, 8), signingScope)
  const canonical = hash('sha256', canonicalRequest(request, signed))
  const text = `${ALGORITHM}\n${time}\n${scope}\n${canonical}`
  return { scope, signature: createHmac('sha256', key).update(text).digest('hex') }
}

function canonicalRequest(
  { method, path, bodyHash }: Pick<UnsignedRequest, 'method' | 'path' | 'bodyHash'>,
  { names, lines }: SignedHeaders,
): string {
  const at = path.indexOf('?')
  const uri = at === -1 ? path : path.slice(0, at)
  const query = at === -1 ? '' : canonicalQuery(path.slice(at + 1))
  return `${method}\n${canonicalUri(uri)}\n${query}\n${lines}\n${names}\n${bodyHash}`
}

const UNRESERVED_PATH = /^[A-Za-z0-9\-._~/]*$/

/** The path as sent, escaped a second time: `%3A` becomes `%253A`. */
function canonicalUri(uri: string): string {
  if (uri === '') return '/'
  return UNRESERVED_PATH.test(uri) ? uri : uri.split('/').map(escaped).join('/')
}

/** Sorted by name, then by value. */
function canonicalQuery(query: string): string {
  if (query === '') return ''
  const pairs = query.split('&').map((pair) => {
    const at = pair.indexOf('=')
    const [name, value] = at === -1 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)]
    return [escaped(decoded(name)), escaped(decoded(value))] as const
  })
  const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)
  return pairs
    .sort((one, other) => compare(one[0], other[0]) || compare(one[1], other[1]))
    .map(([name, value]) => `${name}=${value}`)
    .join('&')
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function escaped(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

function signedHeaders(
  { host, headers, bodyHash }: UnsignedRequest,
  time: string,
  keys: AwsKeys,
): SignedHeaders {
  const { sessionToken } = keys
  let type: string | null = null
  for (let index = 0; index < headers.length; index += 2) {
    const name = (headers[index] ?? '').toLowerCase()
    if (name === 'content-type') type = headers[index + 1] ?? ''
    else if (name.startsWith('x-amz-')) {
      const own = { time, bodyHash, sessionToken }
      return canonicalHeaders([...ofRequest(headers), ['host', host], ...ofSignature(own)])
    }
  }
  // The usual headers in their order, without a list to sort.
  const { sessionLine: session } = signerOf(keys)
  const start = type === null ? '' : `content-type:${trimmed(type)}\n`
  const lines = `${start}host:${host}\nx-amz-content-sha256:${bodyHash}\nx-amz-date:${time}\n${session}`
  return { names: USUAL_NAMES[type === null ? 0 : 1][sessionToken === null ? 0 : 1], lines }
}

/** By whether there is a content type, and a session token. */
const USUAL_NAMES = [
  ['host;x-amz-content-sha256;x-amz-date', 'host;x-amz-content-sha256;x-amz-date;x-amz-security-token'],
  [
    'content-type;host;x-amz-content-sha256;x-amz-date',
    'content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token',
  ],
] as const

type Header = readonly [name: string, value: string]

function ofRequest(headers: readonly string[]): Header[] {
  const found: Header[] = []
  for (let index = 0; index < headers.length; index += 2) {
    const name = (headers[index] ?? '').toLowerCase()
    const isSigned = name === 'content-type' || name.startsWith('x-amz-')
    if (isSigned) found.push([name, headers[index + 1] ?? ''])
  }
  return found
}

function ofSignature(own: {
  readonly time: string
  readonly bodyHash: string
  readonly sessionToken: string | null
}): Header[] {
  const { time, bodyHash, sessionToken } = own
  return [
    ['x-amz-content-sha256', bodyHash],
    ['x-amz-date', time],
    ...(sessionToken === null ? [] : [['x-amz-security-token', sessionToken] as const]),
  ]
}

/** These headers, whose names are in lower case, in canonical form. */
export function canonicalHeaders(headers: readonly Header[]): SignedHeaders {
  const sorted = headers.toSorted(([one], [other]) => (one < other ? -1 : 1))
  return {
    names: sorted.map(([name]) => name).join(';'),
    lines: sorted.map(([name, value]) => `${name}:${trimmed(value)}\n`).join(''),
  }
}

const SPACES = /^\s|\s$|\s\s|[^\S ]/

function trimmed(value: string): string {
  return SPACES.test(value) ? value.trim().replace(/\s+/g, ' ') : value
}

let lastSecond = 0
let lastText = ''

/** `20261126T101500Z`. */
function timeText(nowMs: number): string {
  const second = Math.floor(nowMs / 1_000)
  if (second !== lastSecond || lastText === '') {
    lastText = new Date(second * 1_000).toISOString().replace(/[:-]|\.\d{3}/g, '')
    lastSecond = second
  }
  return lastText
}

/** The derived key of a day and a scope; four hashes. */
interface SigningKey {
  /** `20261126/eu-west-1/bedrock/aws4_request`. */
  readonly scope: string
  readonly key: Buffer
}

/** What is computed once for credentials. */
interface Signer {
  /** The canonical line of the session token; empty without one. */
  readonly sessionLine: string
  /** For the scopes of one day. */
  derived: readonly SigningKey[]
}

const signers = new WeakMap<AwsKeys, Signer>()

function signerOf(keys: AwsKeys): Signer {
  let signer = signers.get(keys)
  if (signer === undefined) {
    const { sessionToken } = keys
    const line = sessionToken === null ? '' : `x-amz-security-token:${trimmed(sessionToken)}\n`
    signer = { sessionLine: line, derived: [] }
    signers.set(keys, signer)
  }
  return signer
}

function signingKey(keys: AwsKeys, date: string, { region, service }: SigningScope): SigningKey {
  const scope = `${date}/${region}/${service}/aws4_request`
  const signer = signerOf(keys)
  for (const each of signer.derived) if (each.scope === scope) return each
  let key: string | Buffer = `AWS4${keys.secret}`
  for (const part of scope.split('/')) key = createHmac('sha256', key).update(part).digest()
  const derived = { scope, key: Buffer.from(key) }
  const sameDay = signer.derived.filter((each) => each.scope.startsWith(date))
  signer.derived = [...sameDay, derived]
  return derived
}

/** Larger bodies are hashed in several turns of the event loop, a part of this size in each. */
const PART_BYTES = 1024 * 1024

/** SHA-256 of a body, hex; a promise for a large one. */
export function bodyHashOf(body: Buffer | string | null): string | Promise<string> {
  if (body === null || body.length <= PART_BYTES) return hash('sha256', body ?? '')
  return hashInTurns(Buffer.isBuffer(body) ? body : Buffer.from(body))
}

async function hashInTurns(body: Buffer): Promise<string> {
  const sum = createHash('sha256')
  for (let at = 0; at < body.length; at += PART_BYTES) {
    sum.update(body.subarray(at, at + PART_BYTES))
    await new Promise((resolve) => setImmediate(resolve))
  }
  return sum.digest('hex')
}
