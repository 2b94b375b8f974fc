/**
 * One line of a batch that a vendor runs: it is checked, translated and estimated as a direct request before
 * the batch is sent, and its result is translated, judged and priced as a direct reply.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Identity } from '../../accounts/account.js'
import { GatewayError } from '../../errors.js'
import { errorCodecOf, type ResolvedEndpoint } from '../../formats/index.js'
import { refused } from '../../formats/wire/json/check-fields.js'
import { withoutSecrets } from '../../formats/wire/openai/error-body.js'
import { needsOf } from '../../limits/find-limits.js'
import type { Logger } from '../../observe/log.js'
import type { Metrics } from '../../observe/metrics/metrics.js'
import { NO_LISTENERS, SendResult } from '../attempts/attempt-result.js'
import { Preparation } from '../attempts/prepare-candidate.js'
import { UpstreamStates } from '../attempts/upstream-state.js'
import type { BodyMemory } from '../body-memory.js'
import { estimateCandidateCost } from '../charges/estimate-candidate-cost.js'
import { maxUsage } from '../charges/estimate-max-cost.js'
import { entryOf } from '../charges/ledger-entry.js'
import { amountOf } from '../charges/reservation.js'
import { ServedRequest } from '../served-request.js'
import type { RequestValues } from '../dimensions/request-values.js'
import type { Generation } from '../generation.js'
import { guardCall } from '../objects/check-translated-request.js'
import type { OwnedObjects } from '../objects/owned-objects.js'
import { directRoute, type Candidate, type Route } from '../phases/route.js'
import { judge } from '../phases/judge.js'
import { permittedRoute } from '../phases/permit-route.js'
import { callIn } from '../phases/receive.js'
import { Intake, type Call } from '../phases/call.js'
import { sent } from '../phases/relay.js'
import { toGatewayError } from '../phases/send-error.js'
import { NO_TERMS, send, type SendServices } from '../phases/send.js'
import type { ReplyHandler, UpstreamCall, UpstreamRequest } from '../upstreams/upstream-call.js'
import type { UpstreamPool } from '../upstreams/upstreams.js'
import type { LineUse } from './journal.js'

/** What the lines of one batch share. */
export interface LineScope {
  readonly generation: Generation
  readonly identity: Identity
  /** Those of the request that made the batch which lines have too. */
  readonly headers: IncomingHttpHeaders
  readonly resolved: ResolvedEndpoint
  /** The upstream that runs the batch. */
  readonly upstream: string
  /** Breakers of the batch alone: results of lines say nothing about the upstream's requests. */
  readonly states: UpstreamStates
  readonly services: LineServices
}

/** What running a line uses. */
export interface LineServices extends SendServices {
  readonly values: Pick<RequestValues, 'readLine'>
  readonly bodies: BodyMemory
  readonly objects: OwnedObjects
  readonly metrics: Metrics
  readonly log: Logger
}

/** The scope of a batch's lines. */
export function lineScope(scope: Omit<LineScope, 'states'>): LineScope {
  return { ...scope, states: new UpstreamStates(scope.generation.snapshot.config, null) }
}

/** A line for the vendor. */
interface PreparedLine {
  /** The body of the request. */
  readonly request: string
  /** The path below the upstream's address. */
  readonly path: string
  /** Those of the upstream's protocol. */
  readonly headers: Readonly<Record<string, string>>
  readonly candidate: Candidate
  readonly dimensions: Identity['dimensions']
  readonly most: { readonly input: number; readonly output: number; readonly nanoUsd: number | null }
}

/** A reply in the client's format. */
interface LineReply {
  readonly status: number
  readonly body: string
}

/** A line that has been checked. */
interface Checked {
  readonly route: Route
  readonly candidate: Candidate
}

/** One line, once. */
export class LineRun extends ServedRequest {
  /** `prepare` has failed because the cost or the length is not known, which refuses the whole batch. */
  isUnpriced = false
  private readonly scope: LineScope
  private readonly body: Buffer

  constructor(scope: LineScope, { id, body }: { readonly id: string; readonly body: Buffer }) {
    super(id, scope.generation)
    this.isInBatch = true
    this.scope = scope
    this.body = body
    this.intake = new Intake(scope.services.bodies.open(scope.identity.accountId))
  }

  /** The request for the vendor, and what it may cost. Rejects as a direct request is refused. */
  async prepare(): Promise<PreparedLine> {
    const { identity: shared, services, headers } = this.scope
    try {
      const read = await this.read()
      const { dimensions } = this.generation.snapshot.config
      const identity = await services.values.readLine(
        { identity: shared, body: read.body, headers },
        dimensions,
      )
      const { candidate } = await this.check(identity)
      this.isUnpriced = true
      const most = this.most(candidate)
      this.isUnpriced = false
      const memory = { escrow: services.escrow, accountId: identity.accountId, delayEndUntil: null }
      const preparation = new Preparation({
        ...{ x: this, memory, idempotencyKey: null, sent: new SendResult(), mark: null },
      })
      const { outgoing } = await preparation.of(candidate, 0)
      if (this.call.request.task !== undefined && outgoing.next !== null) {
        throw refused('input', 'A chat model judges one input in each line of a batch. Send one.')
      }
      const { body, path } = outgoing
      return {
        request: typeof body === 'string' ? body : body.toString('utf8'),
        path,
        headers: protocolHeaders(outgoing.headers),
        candidate,
        dimensions: identity.dimensions,
        most,
      }
    } finally {
      this.held.end()
    }
  }

  /** The reply to the client, and what it cost, of a vendor's result. Never rejects. */
  async finish(result: LineReply): Promise<{ readonly reply: LineReply; readonly used: LineUse }> {
    const reply = await this.replyOf(result)
    const { usage, source, costNanoUsd: nanoUsd } = entryOf(this, performance.now())
    return { reply, used: { usage, source, nanoUsd } }
  }

  private async replyOf(result: LineReply): Promise<LineReply> {
    const { scope, held } = this
    const { identity, services, states, resolved } = scope
    try {
      await this.read()
      const { route, candidate } = await this.check(identity)
      this.routed = directRoute(withReply(candidate, result), route.tookMs)
      const reasoning = { accountId: identity.accountId, isKept: false }
      const outbound = { states, terms: NO_TERMS, reasoning, mark: null, listeners: NO_LISTENERS }
      const reply = await send(this, outbound, services)
      if (reply.kind !== 'whole') throw new GatewayError('bug', 'the reply to a line is a stream')
      this.delivered = sent(reply.bytes)
      return { status: 200, body: reply.body.toString() }
    } catch (thrown) {
      const error = toGatewayError(thrown)
      this.error = error
      const codec = errorCodecOf(resolved.wire, resolved.dialect)
      return codec.encodeError(withoutSecrets(error.wire), this.id)
    } finally {
      held.end()
    }
  }

  private async read(): Promise<Call> {
    const { held, body, scope } = this
    const { resolved, headers } = scope
    const { dialect, endpoint } = resolved
    held.take(body.length)
    this.identified = {
      ...{ resolved, dialect, operation: endpoint.operation, format: 'batches', refusal: null },
      clientRequestId: null,
    }
    const call = await callIn(body, resolved, headers)
    this.received = call
    return call
  }

  /** Fills the slots as the pipeline does; the call is the judged one then. */
  private async check(identity: Identity): Promise<Checked> {
    const { upstream, services } = this.scope
    this.authenticated = { identity, tookMs: 0 }
    this.routed = permittedRoute(this)
    const route = await guardCall(this, services.objects)
    this.routed = route
    const found = route.candidates.find(({ target }) => target.upstream.config.name === upstream)
    if (found === undefined) {
      const message = `The upstream "${upstream}", which runs the batch, cannot run this request`
      throw new GatewayError('untranslatable', message)
    }
    const judging = judge(this, services)
    if (judging !== null) this.received = await judging
    return { route, candidate: wholeReplies(found) }
  }

  /** The maximum that the line may use. Throws as a direct request under a budget is refused. */
  private most(candidate: Candidate): PreparedLine['most'] {
    const { generation, call, identity } = this
    const needs = needsOf(generation.limitsOf(identity, call.request.model, candidate.target))
    const withUnknown = needs.money || needs.mostTokens
    const estimate = estimateCandidateCost(generation, call, candidate, { withUnknown, isInBatch: true })
    const { limiting } = generation.snapshot.config
    const amount = amountOf(estimate, candidate.model, { needs, limiting })
    const { input = 0, output = 0 } = maxUsage(estimate)
    const most = { input, output: Math.max(output, amount.mostTokens - input) }
    return { ...most, nanoUsd: needs.money ? amount.nanoUsd : estimate.nanoUsd }
  }
}

const PROTOCOL_HEADERS: ReadonlySet<string> = new Set(['anthropic-version', 'anthropic-beta'])

/** Those in the list of names and values. */
function protocolHeaders(list: readonly string[]): Record<string, string> {
  const pairs = list.flatMap((name, at): [string, string][] => {
    return at % 2 === 0 && PROTOCOL_HEADERS.has(name) ? [[name, list[at + 1] ?? '']] : []
  })
  return Object.fromEntries(pairs)
}

/** A vendor's batch has no streams and no continuations. */
function wholeReplies(candidate: Candidate): Candidate {
  const { target } = candidate
  const upstreamCodec = { ...target.upstreamCodec, streamsWhole: () => false, continuation: null }
  return { ...candidate, target: { ...target, upstreamCodec } }
}

/** The candidate with an upstream that answers with this reply. */
function withReply(candidate: Candidate, reply: LineReply): Candidate {
  const { target } = candidate
  const upstream = { ...target.upstream, pool: new Replay(reply) }
  return { ...candidate, target: { ...target, upstream } }
}

/** Answers with a reply that a vendor has given before. */
class Replay implements UpstreamPool {
  private readonly reply: LineReply

  constructor(reply: LineReply) {
    this.reply = reply
  }

  send(_request: UpstreamRequest, handler: ReplyHandler): UpstreamCall {
    const { status, body } = this.reply
    let isAborted = false
    setImmediate(() => {
      if (isAborted) return
      handler.onRequestStart()
      handler.onResponseStart(status, { 'content-type': 'application/json' })
      handler.onResponseData(Buffer.from(body))
      handler.onResponseEnd()
    })
    const nothing = (): void => undefined
    const abort = (): void => void (isAborted = true)
    return { pause: nothing, resume: nothing, isWaiting: false, connection: null, abort }
  }

  get(): Promise<never> {
    return Promise.reject(new Error('a result is read once'))
  }
}
