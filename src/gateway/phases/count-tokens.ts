/**
 * Counts the tokens of a prompt: with the upstream's own endpoint if it has one, else with the gateway's
 * estimate, which the reply header `x-sluice-estimated` marks.
 *
 * The limits of requests and of concurrency apply. The ledger entry has no tokens and no cost.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { isConfigured } from '../../config/config.js'
import type { UpstreamCodec, TokenCounter } from '../../formats/dialect.js'
import { upstreamCodecOf } from '../../formats/index.js'
import { assertLossesAllowed, estimatesUntranslatable, LossList } from '../../formats/losses.js'
import { gatewayError, GatewayError } from '../../errors.js'
import { promptSizeOf, inputTokens } from '../../ledger/estimate-tokens.js'
import { limitDemandsOf } from '../../limits/find-limits.js'
import { requestPathAt } from '../upstreams/upstream-address.js'
import type { ReplyHandler, UpstreamRequest } from '../upstreams/upstream-call.js'
import { parseReply } from '../../formats/wire/json/parse-body.js'
import { bodyOf, render } from '../attempts/render-for-upstream.js'
import { SendResult } from '../attempts/attempt-result.js'
import { sendReply } from '../../http/respond.js'
import type { Exchange } from '../client-exchange.js'
import type { Target } from '../generation.js'
import { admitDemands, type LimitServices } from './admit.js'
import { sent } from './relay.js'
import { replyHeaders } from './reply-headers.js'
import { joinChunks } from '../streams/join-chunks.js'
import { provisionalEntry } from '../charges/provisional-entry.js'

/** Maximum number of reply bytes that are read; a count has a few hundred bytes. */
const MAX_REPLY_BYTES = 64 * 1024
/** After this time the client gets an estimate. */
const WAIT_MS = 10_000

/** Statuses of an invalid request: an estimate would hide the error. */
const ABOUT_REQUEST: ReadonlySet<number> = new Set([400, 413, 422])

/** Admits the request, counts its tokens and sends the reply. Rejects with `GatewayError`. */
export async function countTokens(x: Exchange, limits: LimitServices): Promise<void> {
  const { call } = x
  const admission = await admitCount(x, limits)
  x.admitted = admission
  if (admission.kind === 'refused') throw admission.error
  x.limitReservation = admission.limitReservation
  x.cancellation.check()
  const losses = new LossList()
  const exact = await countUpstream(x, losses)
  const { clientCodec, request } = call
  const lost = losses.paths.map((path) => clientCodec.fieldName?.(path) ?? path)
  // Counting calls no model, so there is no attempt to charge.
  x.attempts = new SendResult()
  x.attempts.preparedLosses = lost
  const { family } = x.generation.facts(x.route.candidates[0].model)
  const tokens = exact ?? inputTokens(promptSizeOf(request), family)
  const body = clientCodec.encodeCount?.(tokens)
  if (body === undefined) throw new GatewayError('bug', 'The client format has no counts.')
  const headers = ['content-type', 'application/json', ...replyHeaders(x, 'whole')]
  if (exact === null) headers.push('x-sluice-estimated', 'input_tokens')
  const recorded = x.ending()
  if (recorded !== null) await recorded
  x.delivered = sent(Buffer.byteLength(body))
  sendReply(x.res, { status: 200, headers, body })
}

/** Checks the limits of requests and of concurrency. */
function admitCount(x: Exchange, services: LimitServices): ReturnType<typeof admitDemands> {
  const { generation, identity } = x
  const { request } = x.call
  const [{ target, model }] = x.route.candidates
  const modelName = generation.limitedAs(request.model, target)
  const limits = generation.limitsOf(identity, request.model, target)
  const provisional = { x, request, target, model, modelName }
  const unsettled = provisionalEntry(provisional, {
    usage: { input: 0 },
    nanoUsd: 0,
    isPriced: true,
  })
  const admissionRequest = { requestId: x.id, accountId: identity.accountId, unsettled }
  const limitDemands = limitDemandsOf(limits, { tokens: 0, mostTokens: 0, nanoUsd: 0 }).filter(
    ({ demand: { kind } }) => kind === 'requests' || kind === 'concurrent',
  )
  const { budgetStatus } = generation.snapshot.config.limiting
  return admitDemands(admissionRequest, limitDemands, { ...services, budgetStatus })
}

/** The dialect and endpoint with which an upstream counts tokens. */
interface Counting {
  readonly dialect: Target['dialect']
  readonly upstreamCodec: UpstreamCodec
  readonly counter: TokenCounter
}

/**
 * Null if the upstream has no such endpoint, or if its path is configured, because the path for counts cannot
 * be derived from it.
 */
function countingAt({ dialect, upstreamCodec, upstream }: Target): Counting | null {
  if (upstream.config.path !== null) return null
  const { tokenCounter } = upstreamCodec
  if (tokenCounter !== undefined) {
    return {
      dialect,
      upstreamCodec: tokenCounter.upstreamCodec ?? upstreamCodec,
      counter: tokenCounter,
    }
  }
  // OpenAI counts tokens of all its models in the Responses dialect; other upstreams of the format may not
  // support it.
  if (upstream.config.dialect !== 'openai' || upstream.config.platform !== null) return null
  const other = upstreamCodecOf('openai-responses')
  if (other?.tokenCounter === undefined) return null
  return { dialect: 'openai-responses', upstreamCodec: other, counter: other.tokenCounter }
}

/**
 * The upstream's count; null if there is none. Rejects with the upstream's error only if the request was
 * passed unchanged.
 */
async function countUpstream(x: Exchange, losses: LossList): Promise<number | null> {
  const [{ target }] = x.route.candidates
  const counting = countingAt(target)
  if (counting === null || !isConfigured(target.upstream.config)) return null
  const outgoing = outgoingOf(x, counting, losses)
  if (outgoing === null) return null
  const counted = await requestCount(x, target, outgoing)
  if (counted === null) return null
  const { status, headers, text } = counted
  if (status === 200) {
    const reply = parseReply(text)
    return reply === null ? null : counting.counter.read(reply)
  }
  // The client cannot fix an error in a translated request.
  if (counting.dialect !== x.call.dialect || !ABOUT_REQUEST.has(status)) return null
  throw gatewayError(counting.upstreamCodec.decodeError(status, headers, text))
}

/**
 * The request for the upstream; null if this upstream cannot represent it, an error that a chat with the same
 * request reports better.
 */
function outgoingOf(
  { generation, call, route: { candidates } }: Exchange,
  { dialect, upstreamCodec, counter }: Counting,
  losses: LossList,
): UpstreamRequest | null {
  const [{ target, model }] = candidates
  const { address, config } = target.upstream
  const { allowSyntheticUser, onLoss } = generation.snapshot.config
  const { quirks, allowBetas: betas } = config
  const facts = generation.facts(model)
  const destination = {
    wire: dialect,
    upstreamCodec,
    model,
    facts,
    quirks,
    betas,
    allowSyntheticUser,
  }
  try {
    const rendered = render(call, destination, losses)
    assertLossesAllowed(onLoss, losses.paths, call)
    const { encodedBody } = rendered
    const counted =
      encodedBody === null
        ? rendered.body
        : bodyOf(counter.body(encodedBody, model), upstreamCodec, rendered.bytes).body
    const body = counter.wrap?.(counted) ?? counted
    const headers = [...(target.headers[0] ?? []), 'accept', 'application/json']
    for (const [name, value] of Object.entries(rendered.headers)) headers.push(name, value)
    const clientQuery = encodedBody === null ? call.query : ''
    const path = requestPathAt(address, { path: counter.path(model), model, clientQuery })
    return { path, headers, body }
  } catch (error) {
    const isUntranslatable = error instanceof GatewayError && error.kind === 'untranslatable'
    if (isUntranslatable && estimatesUntranslatable(onLoss)) return null
    throw error
  }
}

/** A reply of an upstream. */
interface Counted {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** Sends the request once; null if no reply arrived in time. Rejects only if the exchange is cancelled. */
function requestCount(
  x: Exchange,
  { upstream, series }: Target,
  outgoing: UpstreamRequest,
): Promise<Counted | null> {
  return new Promise((resolve, reject) => {
    const handler = new CountHandler((counted) => {
      clearTimeout(timer)
      x.cancellation.onCancel(null)
      series.inflight(-1)
      resolve(counted)
    })
    const timer = setTimeout(() => {
      call.abort()
      handler.end(null)
    }, WAIT_MS)
    series.inflight(1)
    const traced = x.trace?.headers(null) ?? []
    const headers = [...outgoing.headers, ...traced]
    const call = upstream.pool.send({ ...outgoing, headers }, handler)
    x.cancellation.onCancel((reason) => {
      call.abort()
      reject(reason)
      handler.end(null)
    })
  })
}

/** Collects a small reply, and calls `settle` once. */
class CountHandler implements ReplyHandler {
  private readonly settle: (counted: Counted | null) => void
  private isSettled = false
  private status = 0
  private headers: IncomingHttpHeaders = {}
  private readonly chunks: Buffer[] = []
  private bytes = 0

  constructor(settle: (counted: Counted | null) => void) {
    this.settle = settle
  }

  end(counted: Counted | null): void {
    if (this.isSettled) return
    this.isSettled = true
    this.settle(counted)
  }

  onRequestStart(): void {
    // The start of the request is not measured.
  }

  onResponseStart(status: number, headers: IncomingHttpHeaders): void {
    this.status = status
    this.headers = headers
  }

  onResponseData(chunk: Buffer): void {
    this.bytes += chunk.length
    if (this.bytes <= MAX_REPLY_BYTES) this.chunks.push(chunk)
  }

  onResponseEnd(): void {
    const { status, headers } = this
    this.end({ status, headers, text: joinChunks(this.chunks).toString('utf8') })
  }

  onResponseError(): void {
    this.end(null)
  }
}
