/**
 * The exact cache of a route, between admission and sending: answers a request from a stored reply, or lets
 * it be sent and stores its reply. The rules are in `policy/`. Loaded at the first request of a route with a
 * cache.
 */
import type { CacheConfig, RouteConfig } from '../../config/config.js'
import { gatewayError, type GatewayError, type WireError } from '../../errors.js'
import { NO_TASKS } from '../../formats/chat/operations.js'
import type { Usage } from '../../formats/chat/usage.js'
import { taskFormat } from '../../formats/index.js'
import { pricedTask } from '../../formats/billed-request.js'
import { type ReplyResult, TRUNCATED } from '../../formats/translated-stream.js'
import { NO_OUTPUT } from '../../formats/chat/output-size.js'
import type { Seed } from '../../formats/dialect.js'
import { observedFormat } from '../../formats/observed-format.js'
import { atOnce } from '../../base/steps.js'
import { headerOf } from '../../http/message.js'
import { maxInputTokens, promptSizeOf } from '../../ledger/estimate-tokens.js'
import { costNanoUsd, tierPrice, priceFor } from '../../ledger/price.js'
import { completedUsage } from '../../ledger/task-units.js'
import type { Metrics } from '../../observe/metrics/metrics.js'
import { keySteps, routeContent } from '../../policy/cache-key.js'
import {
  cacheTermsOf,
  type CacheTerms,
  CacheUse,
  isCacheable,
  storedText,
  type CacheResult,
  type RouteCache,
  type ReplySource,
  type StoredReply,
} from '../../policy/cache-rules.js'
import { CacheEntry, ReplyMemory, type EntryOwner } from '../../policy/cache-in-memory.js'
import { ReplayedStream, ReplyCapture, ReplyLog, type ReplayClient } from '../../policy/capture-and-replay.js'
import { SharedReplies, type CacheStore } from '../../policy/cache-in-store.js'
import { endOf, SharedReply } from '../../policy/collapse-requests.js'
import type { StartedReply } from '../attempts/attempt.js'
import { SendResult, type ReplyListener } from '../attempts/attempt-result.js'
import type { Exchange } from '../client-exchange.js'
import type { Generation } from '../generation.js'
import type { Candidate } from '../phases/route.js'
import { modelAt } from '../routing/router.js'
import { withinTime } from '../reasoning/escrow.js'
import { keeper, termsOf } from '../phases/send.js'
import { toGatewayError } from '../phases/send-error.js'
import { bodyTurns } from '../../base/turn-queue.js'
import { LARGE_BYTES } from '../streams/join-chunks.js'
import { ReplyTransform } from '../streams/reply-transform.js'
import { ArrayForm, arrayOfEvents, EVENT_STREAM } from '../streams/sse-or-json-array.js'
import { SingleWholeReply } from '../streams/whole-reply.js'
import { CLIENT_LEFT, timeoutErrorOf } from '../transport-errors.js'
import { passedQuery } from '../upstreams/upstream-address.js'

/** A write that makes a replay encode the events that were added. */
const TICK = Buffer.alloc(0)

/** An admitted request of a route with a cache. */
export interface CachedRequest {
  readonly x: Exchange
  readonly config: RouteConfig
  readonly cache: RouteCache
  /** Sends the call to its upstreams; the listener gets the reply. */
  readonly send: (listener: ReplyListener | null) => Promise<StartedReply>
}

/** The services of the cache. */
export interface CachingOptions {
  readonly metrics: Metrics
  /** The current settings. */
  readonly settings: () => CacheConfig
  /** Maximum size of the replies in the store. */
  readonly maxStoreBytes: () => number
  readonly cacheStore: CacheStore
}

/** A request that is looked up or stored. */
interface KeyedRequest extends CachedRequest {
  readonly use: CacheUse
  readonly key: string
  readonly owner: EntryOwner
}

/** The end of a reply: its failure, and the promise of its storage; null for none. */
interface Kept {
  readonly error: WireError | null
  readonly stored: Promise<void> | null
}

const NOT_KEPT: Kept = { error: null, stored: null }

/** The cache of one process. */
export class Caching {
  private readonly options: CachingOptions
  private readonly memory: ReplyMemory
  private readonly shared = new Map<string, SharedReply>()
  private readonly replies: SharedReplies

  constructor(options: CachingOptions) {
    this.options = options
    const { cache } = options.metrics
    this.memory = new ReplyMemory((reason, count) => cache.dropped(reason, count))
    const { cacheStore, settings, maxStoreBytes } = options
    this.replies = new SharedReplies(cacheStore, this.memory, () => ({
      store: settings().store,
      maxBytes: maxStoreBytes(),
    }))
  }

  /** Ends the watch on the store. */
  close(): void {
    this.replies.close()
  }

  /** Number of stored replies in memory, and their size. */
  get size(): { readonly entries: number; readonly bytes: number } {
    return { entries: this.memory.size, bytes: this.memory.bytes }
  }

  /** Answers the request from the cache, or sends it. Rejects with `GatewayError`. */
  async serve(request: CachedRequest): Promise<StartedReply> {
    const { x, cache } = request
    const { call } = x
    const use = new CacheUse()
    x.cached = use
    const terms = cacheTermsOf(headerOf(x.req, 'cache-control'))
    const { operation } = call.endpoint
    const cacheable = { request: call.request, operation, hasHistory: call.history !== undefined }
    if (terms.noStore || !isCacheable(cacheable, cache)) {
      this.count(request, 'bypass')
      return request.send(null)
    }
    const { key, owner } = await keyOf(request)
    const { config, send } = request
    // Without a spread, here and in `clientOf`: docs/explanation/performance.md.
    const keyed = { x, config, cache, send, use, key, owner }
    if (terms.maxAgeSeconds === 0) {
      use.result = 'stored'
      this.count(request, 'stored')
      return this.send(keyed, null)
    }
    const found = this.fromMemory(keyed, terms)
    if (found !== null) return found
    const running = cache.collapse ? this.shared.get(key) : undefined
    if (running?.isOpen === true) return this.follow(keyed, running)
    const leader = cache.collapse ? new Leader(x, new SharedReply(cache.maxBytes)) : null
    if (leader !== null) this.shared.set(key, leader.shared)
    if (this.options.settings().store) {
      const reply = await this.fromStore(keyed, terms, leader)
      if (reply !== null) return reply
    }
    use.result = 'miss'
    this.count(request, 'miss')
    return this.send(keyed, leader)
  }

  private fromMemory(keyed: KeyedRequest, { maxAgeSeconds }: CacheTerms): StartedReply | null {
    const nowMs = Date.now()
    const entry = this.memory.get(keyed.key, nowMs)
    if (entry === null || nowMs - entry.storedAtMs > maxAgeSeconds * 1000) return null
    return this.replay(keyed, entry, nowMs)
  }

  /** A reply that another process has stored, which this one then has in memory. */
  private async fromStore(
    keyed: KeyedRequest,
    terms: CacheTerms,
    leader: Leader | null,
  ): Promise<StartedReply | null> {
    const { key } = keyed
    const entry = await this.replies.find(key, Date.now())
    if (entry === null) return null
    this.memory.put(key, entry, this.options.settings().memoryBytes)
    const isFresh = Date.now() - entry.storedAtMs <= terms.maxAgeSeconds * 1000
    const reply = isFresh ? this.replay(keyed, entry, Date.now()) : null
    if (reply === null || leader === null) return reply
    if (this.shared.get(key) === leader.shared) this.shared.delete(key)
    leader.shared.endWith(logOf(entry))
    leader.end()
    return reply
  }

  /** A newer generation is in force: drops the entries of routes that it does not have. */
  adopt(generation: Generation): void {
    const { config } = generation.snapshot
    const { version } = generation.pricesAt(performance.now())
    const routes = new Set(config.routes.map((route) => routeOf(routeContent(route, config), version)))
    this.memory.drop(({ owner }) => !routes.has(owner.route), 'route')
  }

  private count({ x }: CachedRequest, result: CacheResult | 'shared'): void {
    this.options.metrics.cache.request(x.route.candidates[0].target.route, result)
  }

  /** Sends the request, and stores its reply when it has ended. With a leader others may join. */
  private async send(keyed: KeyedRequest, leader: Leader | null): Promise<StartedReply> {
    const { cache, use, key } = keyed
    const shared = leader?.shared ?? null
    const capture = new ReplyCapture({
      maxBytes: cache.maxBytes,
      isShared: () => (shared?.followers ?? 0) > 0,
    })
    const forget = (): void => {
      if (this.shared.get(key) === shared) this.shared.delete(key)
    }
    let log: ReplyLog | null = null
    use.atEnd(() => {
      // A short stream ends before `send` resolves.
      const { error, stored } = this.keep(keyed, log ?? capture.log)
      shared?.end(error)
      forget()
      return stored
    })
    if (leader !== null) leader.onCancel = forget
    const reply = await keyed.send(capture)
    log = reply.kind === 'stream' ? reply.stream.log : capture.log
    await leader?.begun(reply, log)
    return reply
  }

  /** Stores a complete reply that may be stored; `error` is the failure of a reply that is not complete. */
  private keep(keyed: KeyedRequest, log: ReplyLog | null): Kept {
    const { x, cache, key, owner } = keyed
    const { attempt, replyResult } = x
    if (replyResult?.outcome !== 'complete' || log?.outcome === 'open') {
      const reason = x.error?.wire ?? x.cancellation.reason?.wire
      return { error: reason ?? replyResult?.error ?? TRUNCATED, stored: null }
    }
    if (attempt === null || log === null || replyResult.wasCut === true) return NOT_KEPT
    // A guardrail that failed has not judged the reply.
    if (x.guard?.hasError === true) return NOT_KEPT
    const text = storedText(log, sourceOf(attempt.candidate), cache)
    if (text === null) return NOT_KEPT
    const nowMs = Date.now()
    const expiresAtMs = nowMs + cache.ttlSeconds * 1000
    const entry = new CacheEntry(owner, Buffer.from(text), { storedAtMs: nowMs, expiresAtMs })
    this.memory.put(key, entry, this.options.settings().memoryBytes)
    const storing = this.replies.put(key, entry, text)
    return { error: null, stored: storing === null ? null : withinTime(storing) }
  }

  /** The stored reply for the client; null if it is damaged. */
  private replay(keyed: KeyedRequest, entry: CacheEntry, nowMs: number): StartedReply | null {
    const { use } = keyed
    const stored = entry.reply
    const reply = stored === null ? null : encodeStored(keyed, stored)
    if (stored === null || reply === null) return null
    use.result = 'hit'
    use.emulated = stored.emulated ?? null
    use.ageSeconds = Math.max(0, Math.floor((nowMs - entry.storedAtMs) / 1000))
    use.saved = () => savedBy(keyed, stored)
    this.count(keyed, 'hit')
    return reply
  }

  /** Waits for the reply of an equal request that is running, and follows it. */
  private async follow(keyed: KeyedRequest, shared: SharedReply): Promise<StartedReply> {
    const { x, use } = keyed
    const { call } = x
    use.result = 'hit'
    use.ageSeconds = 0
    this.count(keyed, 'shared')
    x.attempts = new SendResult()
    const leave = shared.join()
    const { timeoutMs } = termsOf(x.req, x.identity.accountId)
    const timer = Number.isFinite(timeoutMs)
      ? setTimeout(() => x.cancellation.cancel(TIMED_OUT), x.startedMs + timeoutMs - performance.now())
      : null
    use.atEnd(() => {
      leave()
      if (timer !== null) clearTimeout(timer)
      return null
    })
    const log = await orCancelled(shared.begun, x)
    const { events, vectors } = log
    // The candidate that a shared reply is priced by.
    const stored = { ...sourceOf(x.route.candidates[0]), events, vectors, task: log.task }
    use.emulated = stored.emulated ?? null
    use.saved = () => (log.outcome === 'complete' ? savedBy(keyed, stored) : null)
    if (call.request.stream && log.outcome === 'open') return followed(keyed, log)
    await orCancelled(endOf(log), x)
    if (log.error !== null) throw gatewayError(log.error)
    const reply = encodeStored(keyed, { ...stored, vectors: log.vectors, task: log.task })
    if (reply === null) throw gatewayError(TRUNCATED)
    return reply
  }
}

const TIMED_OUT = gatewayError(timeoutErrorOf('total'))

/** Keeps the upstream request of a client that has left, while others share its reply. */
class Leader {
  /** The client has left before others joined. */
  onCancel: () => void = () => undefined
  readonly shared: SharedReply
  private readonly x: Exchange
  private hasLeft = false
  /** Lets the rest of the stream be read without the client. */
  private drain: () => void = () => undefined

  constructor(x: Exchange, shared: SharedReply) {
    this.x = x
    this.shared = shared
    x.outlivesClient = () => this.clientLeft()
  }

  /** The reply has begun. Rejects with `client_gone`, after the reply has ended, if the client has left. */
  async begun(reply: StartedReply, log: ReplyLog | null): Promise<void> {
    const { x, shared } = this
    if (log === null) {
      shared.end(TRUNCATED)
      return
    }
    shared.begin(log)
    const ended = endOf(log)
    if (reply.kind === 'stream') {
      const { stream } = reply
      const failed = (): void => log.fail(stream.translation.error ?? CLIENT_LEFT)
      stream.once('failed', failed).once('close', failed)
      this.drain = () => {
        stream.drain()
        x.attempts?.drain(ended.then(() => this.leave()))
      }
    }
    if (!this.hasLeft) return
    this.drain()
    await ended
    this.leave()
    x.cancellation.check()
  }

  /** A stored reply was found. */
  end(): void {
    const { x, hasLeft } = this
    x.outlivesClient = null
    if (hasLeft) x.cancellation.cancel(GONE)
  }

  private clientLeft(): boolean {
    const { shared, x } = this
    if (shared.followers === 0) {
      this.onCancel()
      return false
    }
    this.hasLeft = true
    shared.onAlone = () => x.cancellation.cancel(GONE)
    this.drain()
    return true
  }

  /** The reply has ended without its client: the entry states that the client left. */
  private leave(): void {
    this.x.cancellation.onCancel(null)
    this.x.cancellation.cancel(GONE)
  }
}

const GONE = gatewayError(CLIENT_LEFT)

function logOf({ reply: stored }: CacheEntry): ReplyLog {
  const log = new ReplyLog({ maxBytes: Infinity, isShared: () => true })
  for (const event of stored?.events ?? []) log.event(event)
  if (stored !== null && stored.vectors !== null) log.takeVectors(stored.vectors)
  const { task = null } = stored ?? {}
  if (task !== null) log.takeTask(task, 0)
  return log
}

/** The key of the request and the owner of its entry. */
async function keyOf(request: CachedRequest): Promise<Pick<KeyedRequest, 'key' | 'owner'>> {
  const { x, config, cache } = request
  const { call } = x
  const { generation, identity } = x
  const { accountId, keyId } = identity
  const { scope } = cache
  const content = routeContent(config, generation.snapshot.config)
  const priceVersion = generation.pricesAt(x.startedMs).version
  const { targets, fallback, strip } = config
  const models = [...targets, ...fallback].map(({ model }) => modelAt({ model, strip }, call.request.model))
  const steps = keySteps({
    request: call.request,
    wire: call.wire,
    body: call.body,
    query: call.query === '' ? '' : passedQuery(call.query),
    facts: () => generation.facts(call.request.model),
    targetFacts: [...new Set(models)].map((model) => generation.facts(model)),
    route: content,
    priceVersion,
    scope,
    guardrails: generation.policy?.of(x.route.guardrails, identity).map(({ name }) => name) ?? [],
    scopeId: scope === 'account' ? accountId : scope === 'key' ? `${accountId} ${keyId}` : '',
  })
  const key = call.raw.length > LARGE_BYTES ? await bodyTurns.run(steps) : atOnce(steps)
  const { model } = call.request
  return { key, owner: { accountId, keyId, model, route: routeOf(content, priceVersion) } }
}

function routeOf(content: string, priceVersion: string): string {
  return `${content} ${priceVersion}`
}

function sourceOf({ target, model }: Candidate): ReplySource {
  const { upstreamCodec, dialect, upstream, emulated } = target
  return { upstream: upstream.config.name, model, origin: upstreamCodec.stateOrigin ?? dialect, emulated }
}

function clientOf({ x }: KeyedRequest, stored: StoredReply): ReplayClient {
  const { call } = x
  x.attempts ??= new SendResult()
  const { request } = call
  const kept = keeper(x)
  const clientCodec = kept === null ? call.clientCodec : observedFormat(call.clientCodec, [kept])
  const seed: Seed = {
    id: clientCodec.envelope.idPrefix + x.id,
    createdAtSeconds: Math.floor(Date.now() / 1000),
    model: request.model,
  }
  if (stored.origin !== null) seed.origin = stored.origin
  return { clientCodec, request, seed, onTool: x.calledTools?.tool }
}

/** A complete reply for the client, whole or as all events of a stream; null if it cannot be encoded. */
function encodeStored(keyed: KeyedRequest, stored: StoredReply): StartedReply | null {
  const { x, use } = keyed
  const { call } = x
  const { clientCodec, request, seed, onTool } = clientOf(keyed, stored)
  const { vectors, task = null } = stored
  const other = vectors ?? task
  if (other !== null) {
    const body =
      (vectors === null ? null : clientCodec.encodeVectors?.(vectors, request, seed)) ??
      (task === null ? null : clientCodec.encodeTask?.(task, request, seed)?.body) ??
      null
    if (body === null) return null
    use.replyResult = completeResult(other)
    return { kind: 'whole', body, bytes: Buffer.byteLength(body), stream: false }
  }
  const { upstreamCodec } = x.route.candidates[0].target
  const options = { upstreamCodec, clientCodec, request, seed, onTool }
  const whole = new SingleWholeReply(options, request.stream)
  for (const event of stored.events) whole.event(event)
  const result = whole.encode()
  if (result.outcome !== 'complete') return null
  use.replyResult = result
  const { body, bytes } = result
  if (call.endpoint.array !== true) return { kind: 'whole', body, bytes, stream: request.stream }
  const array = arrayOfEvents(body)
  return { kind: 'whole', body: array, bytes: array.length, stream: false }
}

function completeResult({ usage, model }: { usage: Usage; model: string | null }): ReplyResult {
  const nothing = { error: null, breach: null, reason: null, tier: null, lost: [] }
  return { outcome: 'complete', usage, model, outputSize: NO_OUTPUT, ...nothing }
}

/** What the upstream would bill for the reply at the current prices; null if they are unknown. */
function savedBy({ x }: KeyedRequest, stored: StoredReply): number | null {
  const { call } = x
  const { upstream, model, vectors, task = null, events } = stored
  let usage: Usage = vectors?.usage ?? task?.usage ?? {}
  let answered: string | null = vectors?.model ?? task?.model ?? null
  let tier: string | null = null
  for (const event of events) {
    if (event.type === 'start') answered = event.model
    else if (event.type === 'usage') usage = { ...usage, ...event.usage }
    else if (event.type === 'finish') tier = event.serviceTier ?? null
  }
  const { request } = call
  const { prices } = x.generation.pricesAt(x.startedMs)
  const forms = x.generation.snapshot.config.upstreams[upstream]?.operations ?? NO_TASKS
  const wire = request.task === undefined ? null : taskFormat(request.task.kind, forms)
  const price = priceFor(prices.find(upstream, model, answered), pricedTask(request, wire))
  const served = price === null ? null : tierPrice(price, tier)
  if (served === null) return null
  if (request.task !== undefined) {
    const { family } = x.generation.facts(model)
    const tokens = (): number => maxInputTokens(promptSizeOf(request), family)
    const of = { reported: usage, task: request.task, price: served, inputTokens: tokens }
    usage = completedUsage(of)?.usage ?? usage
  }
  return costNanoUsd(served, vectors === null ? usage : { ...usage, output: 0 })
}

/** The stream of a reply that another request has begun. */
function followed(keyed: KeyedRequest, log: ReplyLog): StartedReply {
  const translation = new ReplayedStream(
    log,
    clientOf(keyed, { ...sourceOf(keyed.x.route.candidates[0]), ...NO_REPLY }),
  )
  const stream = replayOf(keyed, translation)
  let isWaiting = false
  const tick = (): void => {
    if (isWaiting || stream.destroyed || translation.outcome !== 'open') return
    isWaiting = true
    // The events of one chunk are encoded together.
    queueMicrotask(() => {
      isWaiting = false
      if (!stream.destroyed && !stream.writableEnded && !stream.writableNeedDrain) {
        stream.write(TICK)
      }
    })
  }
  stream.once('close', log.follow(tick))
  stream.onDrain = tick
  tick()
  return { kind: 'stream', stream }
}

const NO_REPLY = { events: [], vectors: null, task: null }

/** The stream to the client of a replay. */
function replayOf(keyed: KeyedRequest, translation: ReplayedStream): ReplyTransform {
  const { x, use } = keyed
  const { call } = x
  const form = call.endpoint.array === true ? new ArrayForm() : EVENT_STREAM
  const owner = {
    ending: x.ending,
    threw: (cause: unknown) => void (x.failure = cause),
    translated: (ms: number) => {
      if (x.attempts !== null) x.attempts.translateMs += ms
    },
  }
  const stream = new ReplyTransform(translation, owner, form)
  use.replyResult = translation
  stream.onStep = () => {
    if (translation.outcome === 'complete') stream.end()
    else if (translation.error !== null) stream.fail(translation.error)
  }
  x.cancellation.onCancel((reason) => {
    if (reason.kind === 'client_gone') stream.destroy()
    else stream.fail(reason.wire)
  })
  return stream
}

/** The value; rejects with the reason if the exchange is cancelled before. */
function orCancelled<T>(value: Promise<T>, { cancellation }: Exchange): Promise<T> {
  return new Promise((resolve, reject) => {
    cancellation.onCancel((reason: GatewayError) => reject(reason))
    const settled = (settle: () => void): void => {
      // Before the caller sets a listener of its own.
      if (cancellation.reason === null) cancellation.onCancel(null)
      settle()
    }
    value.then(
      (result) => settled(() => resolve(result)),
      (error: unknown) => settled(() => reject(toGatewayError(error))),
    )
  })
}
