/**
 * Prepares the request for each candidate: in its dialect, with the media and the reasoning state that it
 * needs. A request is encoded once for each dialect and model, for all attempts.
 */
import { isConfigured } from '../../config/config.js'
import { GatewayError, type WireError } from '../../errors.js'
import type { JsonObject } from '../../base/json.js'
import { isChat, type ChatRequest, type Message, type UserPart } from '../../formats/chat/request.js'
import type { UpstreamCodec, UrlKind } from '../../formats/dialect.js'
import { isSentAsChat } from '../../formats/index.js'
import { afterFirstInput } from '../../formats/moderations/chat.js'
import { assertLossesAllowed, LossList } from '../../formats/losses.js'
import type { ReadWhole } from '../../formats/observed-format.js'
import type { MarkedBody, Marks } from '../../policy/prompt-cache-marks.js'
import type { ServedRequest } from '../served-request.js'
import type { Target } from '../generation.js'
import type { Candidate } from '../phases/route.js'
import type { Call } from '../phases/call.js'
import { bodyTurns } from '../../base/turn-queue.js'
import { LARGE_BYTES } from '../streams/join-chunks.js'
import { MediaError, type Media, type MediaFetcher } from '../upstreams/media-fetcher.js'
import { requestPathAt } from '../upstreams/upstream-address.js'
import type { SendResult } from './attempt-result.js'
import {
  bodyOf,
  placed,
  render,
  renderSteps,
  type Destination,
  type Outgoing,
  type Rendered,
} from './render-for-upstream.js'
import type { Escrow, Scope } from '../reasoning/escrow.js'

/** The request, and the services that preparing it uses. */
export interface Request {
  readonly x: ServedRequest
  readonly memory: Memory
  /** The client's header, passed on; null if it sent none. */
  readonly idempotencyKey: string | null
  /** Gets the lost fields, and the times of encoding and fetching. */
  readonly sent: SendResult
  /** Marks the prompt for the provider's cache; null if the route does not. */
  readonly mark: ((body: MarkedBody) => Marks) | null
}

/** A request in the form in which it is sent to one upstream. */
export interface PreparedRequest {
  readonly call: Call
  readonly outgoing: Outgoing
  /** It must be sent on a connection that served no other request. */
  readonly onFreshConnection?: boolean
}

/** An encoded request, for every candidate of the same dialect and model. */
interface Encoded {
  readonly call: Call
  readonly destination: MarkedDestination
  readonly rendered: Rendered
  readonly losses: readonly string[]
}

/** The part of a candidate that its request depends on. */
type RenderedFor = Pick<Candidate, 'target' | 'model' | 'defaults'>

/** The attempt that a request is encoded for. */
interface AttemptToEncode {
  readonly candidate: Candidate
  /** The index of the credential. */
  readonly credential: number
  /** When its preparation began: monotonic, in ms. */
  readonly beganMs: number
}

/** A destination with the number of marks that were added. */
type MarkedDestination = { -readonly [Name in keyof Destination]: Destination[Name] } & {
  /** Number of marks for the provider's prompt cache. */
  marks: number
}

/** Prepares one request for its candidates. */
export class Preparation {
  private readonly request: Request
  private readonly encoded: Encoded[] = []

  constructor(request: Request) {
    this.request = request
  }

  /**
   * Prepares the request for the credential with that index; returns a promise if media or reasoning state
   * are fetched, or the body is large. Throws, or rejects with, `GatewayError`: `upstream_unconfigured`, or
   * `untranslatable` if the candidate's dialect cannot represent the request.
   */
  of(candidate: Candidate, credential: number): PreparedRequest | Promise<PreparedRequest> {
    const { config } = candidate.target.upstream
    if (!isConfigured(config)) {
      throw new GatewayError(
        'upstream_unconfigured',
        `The upstream '${config.name}' has no API key: set ${config.apiKeySource ?? 'api_key'}.`,
      )
    }
    const known = this.known(candidate)
    if (known !== undefined) return this.prepared(known, candidate, credential)
    const { x } = this.request
    const { call } = x
    const fetching = fetchMedia(x, candidate.target)
    if (fetching !== null || call.raw.length > LARGE_BYTES) {
      return this.inTurns(candidate, credential, fetching)
    }
    const beganMs = performance.now()
    const attempt = { candidate, credential, beganMs }
    const restoredCall = this.withReasoning(call, candidate)
    return restoredCall instanceof Promise
      ? restoredCall.then((restored) => this.encode(restored, attempt))
      : this.encode(restoredCall, attempt)
  }

  /**
   * Prepares a large body in several turns of the event loop, so that other requests are served between them.
   */
  private async inTurns(
    candidate: Candidate,
    credential: number,
    fetching: Promise<Call> | null,
  ): Promise<PreparedRequest> {
    const { x, sent } = this.request
    const { call } = x
    let fetched = call
    if (fetching !== null) {
      const beganMs = performance.now()
      try {
        fetched = await fetching
      } finally {
        sent.fetchMs += performance.now() - beganMs
      }
    }
    const beganMs = performance.now()
    const restored = await this.withReasoning(fetched, candidate)
    x.cancellation.check()
    const attempt = { candidate, credential, beganMs }
    if (call.raw.length + (fetched.fetchedBytes ?? 0) <= LARGE_BYTES) {
      return this.encode(restored, attempt)
    }
    const losses = new LossList()
    const destination = this.destination(candidate)
    const rendered = await bodyTurns.run(renderSteps(restored, destination, losses))
    x.cancellation.check()
    return this.keep({ call: restored, destination, rendered, losses: losses.paths }, attempt)
  }

  /** The call with the stored reasoning of its history; the call itself if the model does not reason. */
  private withReasoning(call: Call, candidate: Candidate): Call | Promise<Call> {
    const { x, memory } = this.request
    if (x.generation.facts(candidate.model).reasoning === false) return call
    return withRestoredReasoning(call, candidate, memory, x)
  }

  private known({ target, model, defaults }: Candidate): Encoded | undefined {
    const { wire, upstreamCodec, quirks, upstream } = target
    const { name, allowBetas } = upstream.config
    const isAnyUpstream = this.request.x.call.history === undefined
    return this.encoded.find(
      ({ destination }) =>
        destination.wire === wire &&
        destination.upstreamCodec === upstreamCodec &&
        destination.model === model &&
        destination.quirks === quirks &&
        destination.defaults === defaults &&
        destination.betas === allowBetas &&
        (isAnyUpstream || destination.name === name),
    )
  }

  private encode(call: Call, attempt: AttemptToEncode): PreparedRequest {
    const losses = new LossList()
    const destination = this.destination(attempt.candidate)
    const rendered = render(call, destination, losses)
    return this.keep({ call, destination, rendered, losses: losses.paths }, attempt)
  }

  private destination({ target, model, defaults }: RenderedFor): MarkedDestination {
    const { wire, upstreamCodec, upstream, quirks } = target
    const { generation } = this.request.x
    const { allowSyntheticUser } = generation.snapshot.config
    const { name, allowBetas: betas } = upstream.config
    const facts = generation.facts(model)
    const destination: MarkedDestination = {
      name,
      wire,
      upstreamCodec,
      model,
      facts,
      quirks,
      defaults,
      betas,
      allowSyntheticUser,
      marks: 0,
    }
    const { mark } = this.request
    if (mark === null || wire !== target.dialect) return destination
    destination.mark = (body) => {
      const marked = mark({ dialect: target.dialect, facts, upstream: name, model, body })
      destination.marks = marked.marks
      return marked.members
    }
    return destination
  }

  /** Keeps the encoded request for later attempts. */
  private keep(encoded: Encoded, { candidate, credential, beganMs }: AttemptToEncode): PreparedRequest {
    this.encoded.push(encoded)
    const prepared = this.prepared(encoded, candidate, credential)
    this.request.sent.translateMs += performance.now() - beganMs
    return prepared
  }

  private prepared(
    { call, destination, rendered, losses }: Encoded,
    { target, model, defaults }: RenderedFor,
    credential: number,
  ): PreparedRequest {
    this.report(call, losses)
    this.request.sent.preparedMarks = destination.marks
    const { upstreamCodec, upstream, wire } = target
    const path = requestPathAt(upstream.address, {
      path: rendered.path,
      basePath: upstreamCodec.basePath,
      model,
      isChat: isSentAsChat(target),
      clientQuery: wire === call.wire ? call.query : '',
    })
    const fixed = target.headers[credential] ?? []
    // The first one is the content type of JSON.
    const own = rendered.headers['content-type'] === undefined ? fixed : fixed.slice(2)
    const headers = [...own, 'accept', rendered.accept]
    const { idempotencyKey } = this.request
    if (idempotencyKey !== null) headers.push('idempotency-key', idempotencyKey)
    for (const name in rendered.headers) headers.push(name, rendered.headers[name] ?? '')
    const { body, bytes, encodedBody, streams } = rendered
    const { timeouts } = upstream.config
    const firstByteMs = streams ? timeouts.firstByteMs : timeouts.firstByteWholeMs
    const base = { path, headers, firstByteMs, bytes }
    const next =
      this.nextInput(call, { target, model, defaults }, credential) ??
      nextOf(base, encodedBody, { upstreamCodec, request: call.request })
    // Without a spread: V8 would make a new hidden class for each (docs/explanation/performance.md).
    const outgoing = { path, headers, firstByteMs, body, bytes, encodedBody, next }
    const { streamed } = rendered
    return { call, outgoing: streamed === undefined ? outgoing : { ...outgoing, streamed } }
  }

  /** Makes the request for the next input, if the upstream takes one at a time; null if none is left. */
  private nextInput(call: Call, candidate: RenderedFor, credential: number): Outgoing['next'] {
    const { task } = call.request
    const rest = task === undefined ? null : afterFirstInput(call.request, candidate.target.wire)
    if (rest === null) return null
    return () => {
      const losses = new LossList()
      const destination = this.destination(candidate)
      const restCall = { ...call, request: rest }
      const rendered = render(restCall, destination, losses)
      const encoded = { call: restCall, destination, rendered, losses: losses.paths }
      return this.prepared(encoded, candidate, credential).outgoing
    }
  }

  /**
   * The same request without the reasoning of earlier turns, after the upstream refused that reasoning; null
   * if the refusal has another reason. Leaving it out is a loss. Throws `untranslatable` if losses are not
   * allowed.
   */
  amended(
    { call, outgoing }: PreparedRequest,
    { upstreamCodec }: Candidate['target'],
    error: WireError,
  ): PreparedRequest | null {
    const before = outgoing.encodedBody
    if (before === null) return null
    const dropped = upstreamCodec.dropReasoning?.(before, error) ?? null
    if (dropped === null) return null
    const own = placed(upstreamCodec.headers(dropped), upstreamCodec)
    const encodedBody = own.members === null ? dropped : { ...dropped, ...own.members }
    const { preparedLosses } = this.request.sent
    this.report(call, [...new Set([...preparedLosses, 'messages.reasoning'])])
    const known = upstreamCodec.headers(before)
    const headers = [...outgoing.headers]
    for (const [name, value] of Object.entries(own.headers)) {
      if (!(name in known)) headers.push(name, value)
    }
    const { path, firstByteMs, bytes } = outgoing
    const base = { path, headers, firstByteMs, bytes }
    const next = nextOf(base, encodedBody, { upstreamCodec, request: call.request })
    return {
      call,
      outgoing: { ...base, ...bodyOf(encodedBody, upstreamCodec, bytes), encodedBody, next },
    }
  }

  /** Records the losses. Throws `untranslatable` if `on_loss` refuses the request because of them. */
  private report(call: Call, lost: readonly string[]): void {
    const { x, sent } = this.request
    sent.preparedLosses = spelled(call, lost)
    assertLossesAllowed(x.generation.snapshot.config.onLoss, lost, call)
  }
}

/** The paths in the client's format. */
function spelled({ clientCodec }: Call, paths: readonly string[]): readonly string[] {
  if (paths.length === 0 || clientCodec.fieldName === undefined) return paths
  return paths.map((path) => clientCodec.fieldName?.(path) ?? path)
}

/**
 * The function that makes the request for the rest of a paused reply, or for a second reply if the first one
 * is not usable; null if neither is needed.
 */
function nextOf(
  base: Pick<Outgoing, 'path' | 'headers' | 'firstByteMs' | 'bytes'>,
  encodedBody: JsonObject | null,
  { upstreamCodec, request }: { readonly upstreamCodec: UpstreamCodec; readonly request: ChatRequest },
): Outgoing['next'] {
  const { continuation } = upstreamCodec
  if (encodedBody === null || continuation === null) return null
  const mayOmitCall = upstreamCodec.mayOmitCall?.(encodedBody, request) === true
  if (!mayOmitCall && !continuation.mayPause(encodedBody)) return null
  return (resume) => {
    const rest = continuation.next(encodedBody, resume)
    const next = nextOf(base, rest, { upstreamCodec, request })
    return { ...base, ...bodyOf(rest, upstreamCodec, base.bytes), encodedBody: rest, next }
  }
}

/**
 * The call with bytes in place of the URLs that its upstream cannot read; null if there are none, or fetching
 * is off. Rejects with `malformed_request` naming the part.
 *
 * Fetches the images and files that a request references by URL, for upstreams that cannot read URLs. Runs
 * before the pure encoding, if the configuration allows it.
 */
function fetchMedia(x: ServedRequest, target: Target): Promise<Call> | null {
  const { call } = x
  const { media } = x.generation
  const { upstreamCodec } = target
  if (media === null || upstreamCodec.readsUrl === undefined || target.dialect === call.dialect) return null
  const urls = new Map<string, string>()
  for (const message of call.request.messages) {
    for (const { path, url, type } of urlsOf(message))
      if (!upstreamCodec.readsUrl(url, type) && !urls.has(url)) urls.set(url, path)
  }
  if (urls.size === 0) return null
  return fetchAll(urls, media, x).then((fetched) => {
    let fetchedBytes = 0
    for (const { bytes } of fetched.values()) fetchedBytes += bytes.length
    return { ...call, request: withMedia(call.request, fetched), fetchedBytes }
  })
}

/** The bytes themselves, their base64, and that in the encoded request: 1 + 4/3 + 4/3, rounded up. */
const MEDIA_COPIES = 4

/** The URL of an image or file. */
interface MediaUrl {
  readonly path: string
  readonly url: string
  readonly type: UrlKind
}

function urlsOf(message: Message): MediaUrl[] {
  if (message.role !== 'user' && message.role !== 'tool') return []
  return message.parts.flatMap((part, index) => {
    if ((part.type !== 'image' && part.type !== 'file') || part.source.kind !== 'url') return []
    const { url, media } = part.source
    const type = part.type === 'image' ? 'image' : (media ?? 'file')
    return [{ path: `messages[${message.index}].content[${index}]`, url, type }]
  })
}

function urlOf(part: UserPart): string | null {
  if (part.type !== 'image' && part.type !== 'file') return null
  return part.source.kind === 'url' ? part.source.url : null
}

/** Fetches the URLs, each with the path of its part. Rejects if one of them fails, or there are too many. */
async function fetchAll(
  urls: ReadonlyMap<string, string>,
  media: MediaFetcher,
  { generation, cancellation, held }: ServedRequest,
): Promise<Map<string, Media>> {
  const { maxPerRequest } = generation.snapshot.config.fetchMedia
  if (urls.size > maxPerRequest) {
    throw new GatewayError(
      'malformed_request',
      `messages: at most ${maxPerRequest} URLs can be fetched for this upstream; send the others as data: URLs`,
      { param: 'messages' },
    )
  }
  const aborter = new AbortController()
  cancellation.onCancel((reason) => aborter.abort(reason))
  const fetched = new Map<string, Media>()
  const failures: Error[] = []
  const fetchOne = async ([url, path]: [string, string]): Promise<void> => {
    try {
      const item = await media.fetch(url, aborter.signal)
      held.take(item.bytes.length * MEDIA_COPIES)
      fetched.set(url, item)
    } catch (cause) {
      failures.push(cause instanceof MediaError ? refused(path, cause) : errorOf(cause))
      // One failure fails the request.
      aborter.abort(cause)
    }
  }
  try {
    await Promise.all([...urls].map(fetchOne))
    cancellation.check()
    const [first] = failures
    if (first !== undefined) throw first
  } finally {
    cancellation.onCancel(null)
  }
  return fetched
}

function errorOf(cause: unknown): Error {
  return cause instanceof Error ? cause : new Error(String(cause))
}

function refused(path: string, cause: MediaError): GatewayError {
  const message = `${path}: ${cause.message}. Send the bytes as a data: URL.`
  return new GatewayError('malformed_request', message, { param: path, cause })
}

function withMedia(request: ChatRequest, fetched: ReadonlyMap<string, Media>): ChatRequest {
  const messages = request.messages.map((message): Message => {
    if (message.role !== 'user' && message.role !== 'tool') return message
    return { ...message, parts: message.parts.map((part) => withBytes(part, fetched)) }
  })
  return { ...request, messages }
}

function withBytes(part: UserPart, fetched: ReadonlyMap<string, Media>): UserPart {
  const item = fetched.get(urlOf(part) ?? '')
  if (item === undefined || (part.type !== 'image' && part.type !== 'file')) return part
  const { mediaType, bytes } = item
  return { ...part, source: { kind: 'base64', mediaType, data: bytes.toString('base64') } }
}

// Keeps reasoning state between turns: restores stored state in the history that the upstream gets, and
// stores the state of its reply before the client gets the end.

/** The account that the reasoning state belongs to, and the store for the state of the reply. */
interface Memory {
  readonly escrow: Escrow
  readonly accountId: string
  /** Gets the promise of each write; null: the state of the reply is not stored. */
  readonly delayEndUntil: ((written: Promise<void>) => void) | null
}

/**
 * The call with restored state in its history. Returns the call itself if there can be no state: the client's
 * own bytes pass, or the store of reasoning state is off.
 */
function withRestoredReasoning(
  call: Call,
  { target, model }: Candidate,
  { escrow, accountId, delayEndUntil }: Memory,
  { generation }: ServedRequest,
): Call | Promise<Call> {
  if (target.wire === call.wire || !escrow.enabled) return call
  if (!isChat(call.request)) return call
  const family = target.upstreamCodec.stateOrigin ?? target.dialect
  // Claude's signatures are valid at all clouds, whose ids of a model differ.
  const name = family === 'anthropic' ? generation.facts(model).id : model
  const scope: Scope = { accountId, family, model: name }
  const whole = (read: ReadWhole): void => {
    const written = read.kind === 'chat' ? escrow.keep(call.request, read.reply, scope) : null
    if (written !== null) delayEndUntil?.(written)
  }
  const kept = delayEndUntil === null ? call : { ...call, reasoning: { whole } }
  const request = escrow.restore(call.request, scope)
  return request instanceof Promise
    ? request.then((restored) => ({ ...kept, request: restored }))
    : { ...kept, request }
}
