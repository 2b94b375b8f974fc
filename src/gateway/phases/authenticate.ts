/**
 * Finds the client's key, or the token of a workload: in any of the headers that the clients of the four
 * formats use, a key in the query of a Gemini path, or the ticket of an upload.
 * `accounts/authentication/authenticator.ts` decides whether it is valid, before any of the body is read.
 */
import type { Identity } from '../../accounts/account.js'
import type { Config } from '../../config/config.js'
import type { Authenticator } from '../../accounts/authentication/authenticator.js'
import { mayBeImported } from '../../accounts/key-secret.js'
import { isCompactToken } from '../../accounts/workload-identity/read-token.js'
import { GatewayError } from '../../errors.js'
import { headerOf, type HttpRequest } from '../../http/message.js'
import type { Exchange } from '../client-exchange.js'
import { ticketIn } from '../upload-ticket.js'
import { credentialFault } from './credential-form.js'
import type { Authenticated } from './phase-results.js'

/**
 * Returns the account at once if the key is cached, else a promise. Throws, or rejects with, `GatewayError`.
 */
export function authenticate(
  x: Exchange,
  authenticator: Authenticator,
): Authenticated | Promise<Authenticated> {
  if (x.runsAs !== null) return accept(x, x.runsAs)
  const { req, path, clientAddress } = x
  const { config } = x.generation.snapshot
  const digest = ticketIn(x)
  const isProven = digest !== null && keyOf({ req, path, config }).text === undefined
  const identified = isProven
    ? authenticator.identifyProven(digest)
    : identifyRequest({ req, path, clientAddress, config }, authenticator)
  if (!(identified instanceof Promise)) return accept(x, identified)
  return identified.then((identity) => accept(x, identity))
}

/** A request, and the settings for the places and forms of its credential. */
interface RequestWithKey {
  readonly req: HttpRequest
  /** The target without the query. */
  readonly path: string
  readonly clientAddress: string
  readonly config: Pick<Config, 'server' | 'auth'>
}

/** Who sent a request: at once if the key is cached. Throws, or rejects with, `GatewayError`. */
export function identifyRequest(
  from: RequestWithKey,
  authenticator: Authenticator,
): Identity | Promise<Identity> {
  const { text, keyIn } = keyOf(from)
  if (authenticator.takesTokens) refuseQueryToken(from.req, from.path)
  try {
    const identified = authenticator.identifyBy(text, keyIn, from.clientAddress)
    if (!(identified instanceof Promise)) return identified
    return identified.catch((error: unknown) => {
      throw withForm(error, from, authenticator)
    })
  } catch (error) {
    throw withForm(error, from, authenticator)
  }
}

/** The error with what is wrong with the form of the credential, if that is why it was refused. */
function withForm(
  error: unknown,
  { req, path, config }: RequestWithKey,
  { takesTokens }: Authenticator,
): unknown {
  if (!(error instanceof GatewayError) || error.kind !== 'unauthenticated') return error
  const authorization = headerOf(req, 'authorization')
  const forms = keyFormsOf(config)
  const places = keyLocationsOf(req, path, { authorization, ...forms }).map(({ name, key }) => ({
    name: name === '?key=' ? 'The query' : `The header ${name === 'authorization' ? 'Authorization' : name}`,
    value: key,
  }))
  const { takesImported } = forms
  const fault = credentialFault(req, places, {
    takesTokens,
    takesImported,
    takesQueryKey: takesQueryKey(path),
  })
  return fault === null ? error : new GatewayError('unauthenticated', fault)
}

function accept(x: Exchange, identity: Identity): Authenticated {
  x.keyDigest = identity.digest
  return { identity, tookMs: performance.now() - x.startedMs }
}

/** The text that contains the key, and the function that extracts the key. */
interface ClientKey {
  readonly text: string | undefined
  readonly keyIn: (text: string) => string | null
}

/**
 * A key is `sk_` with letters and digits, a token of a program `slt_`, that of a workload has two dots or
 * more; the scheme is case-insensitive and followed by one space.
 */
const BEARER =
  /^[Bb][Ee][Aa][Rr][Ee][Rr] (s(?:k|lt)_[A-Za-z0-9]{1,253}|[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*){2,4})$/
const SCHEME = /^bearer /i
const HEADERS = ['x-api-key', 'x-goog-api-key'] as const
/** Further ones with `server.bare_paths`: of Azure's clients and of LiteLLM's. */
const BARE_HEADERS = ['api-key', 'x-litellm-api-key'] as const

/** A key of another gateway may have any other visible characters. */
const FOREIGN_BEARER = /^bearer ([!-~]{8,512})$/i

/** The same, and the key of another gateway. */
function anyBearerIn(value: string): string | null {
  const key = bearerIn(value)
  if (key !== null) return key
  const foreign = FOREIGN_BEARER.exec(value)?.[1] ?? ''
  return mayBeImported(foreign) ? foreign : null
}

/** The places and forms of keys that are accepted. */
interface KeyForms {
  /** Whether the headers of Azure's clients and of LiteLLM's are read. */
  readonly barePaths: boolean
  /** Whether keys of other gateways are accepted. */
  readonly takesImported: boolean
}

function keyFormsOf({ server, auth }: RequestWithKey['config']): KeyForms {
  return { barePaths: server.barePaths, takesImported: auth.acceptImportedKeys }
}

/** The key or token in the value of an `Authorization` header; null if there is none in the right form. */
export function bearerIn(value: string): string | null {
  return BEARER.exec(value)?.[1] ?? null
}

/** Throws `malformed_request` for a token in the query, where servers and proxies would log it. */
function refuseQueryToken({ url = '' }: HttpRequest, path: string): void {
  if (url.length === path.length) return
  const keys = new URLSearchParams(url.slice(path.length + 1)).getAll('key')
  if (!keys.some((key) => isCompactToken(key))) return
  const message = 'A token must not be in the query: send it as `Authorization: Bearer <token>`.'
  throw new GatewayError('malformed_request', message, { param: '?key=' })
}

/** Returns the text unchanged. */
function plain(text: string): string {
  return text
}

/** The key of a request. Throws `malformed_request` for two different ones. */
export function clientKeyOf({
  req,
  path,
  generation,
}: Pick<Exchange, 'req' | 'path' | 'generation'>): ClientKey {
  return keyOf({ req, path, config: generation.snapshot.config })
}

/** A header without a key, such as another scheme in `Authorization`, counts if there is no key elsewhere. */
function keyOf({ req, path, config }: Omit<RequestWithKey, 'clientAddress'>): ClientKey {
  const { headers, url = '' } = req
  const forms = keyFormsOf(config)
  const { barePaths, takesImported } = forms
  const bearer = takesImported ? anyBearerIn : bearerIn
  const authorization = headerOf(req, 'authorization')
  const onlyBearer =
    headers['x-api-key'] === undefined &&
    headers['x-goog-api-key'] === undefined &&
    !barePaths &&
    url.length === path.length
  if (onlyBearer) return { text: authorization, keyIn: bearer }
  let found: { readonly name: string; readonly key: string; readonly sent: ClientKey } | null = null
  for (const { name, text, key, keyIn } of keyLocationsOf(req, path, { authorization, ...forms })) {
    if (found !== null && found.key !== key) {
      const message = `The request has two different API keys, in ${found.name} and in ${name}: send one.`
      throw new GatewayError('malformed_request', message, { param: name })
    }
    found ??= { name, key, sent: { text, keyIn } }
  }
  return found?.sent ?? { text: authorization, keyIn: bearer }
}

/** A header or query parameter, and the key in it, which may have any form. */
interface KeyLocation extends ClientKey {
  readonly name: string
  readonly text: string
  readonly key: string
}

function keyLocationsOf(
  req: HttpRequest,
  path: string,
  { authorization, barePaths, takesImported }: KeyForms & { readonly authorization: string | undefined },
): KeyLocation[] {
  const locations: KeyLocation[] = []
  const text = authorization ?? ''
  const key = SCHEME.test(text) ? text.replace(SCHEME, '') : ''
  const keyIn = takesImported ? anyBearerIn : bearerIn
  if (key !== '') locations.push({ name: 'authorization', text, key, keyIn })
  for (const name of HEADERS) {
    const value = headerOf(req, name) ?? ''
    if (value !== '') locations.push({ name, text: value, key: value, keyIn: plain })
  }
  for (const name of barePaths ? BARE_HEADERS : []) {
    const value = (headerOf(req, name) ?? '').replace(SCHEME, '')
    if (value !== '') locations.push({ name, text: value, key: value, keyIn: plain })
  }
  for (const value of queryKeysOf(req.url ?? '', path)) {
    if (value !== '') locations.push({ name: '?key=', text: value, key: value, keyIn: plain })
  }
  return locations
}

/** The values of `key` in the query, on the paths that Google's clients use. */
function queryKeysOf(url: string, path: string): string[] {
  if (url.length === path.length || !takesQueryKey(path)) return []
  return new URLSearchParams(url.slice(path.length + 1)).getAll('key')
}

/** True for the paths of Google's API: those below `/v1beta/`, and `/v1/models` with all below it. */
function takesQueryKey(path: string): boolean {
  return path.startsWith('/v1beta/') || path === '/v1/models' || path.startsWith('/v1/models/')
}
