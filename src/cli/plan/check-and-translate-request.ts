/**
 * The outcome of a request at another upstream: lost fields, and the reason if it is refused. Translates a
 * request of the same shape with the gateway's own encoders.
 */
import type { ModelFacts } from '../../formats/chat/model.js'
import type { ChatRequest } from '../../formats/chat/request.js'
import type { DialectName, WireFormat } from '../../formats/dialect.js'
import { upstreamCodecOf, errorFormatOf, isEmbeddings } from '../../formats/index.js'
import { GatewayError } from '../../errors.js'
import { render } from '../../gateway/attempts/render-for-upstream.js'
import { LossList, refusesLosses } from '../../formats/losses.js'
import type { RequestHead } from '../../gateway/report/recent-requests.js'
import { formatFor } from '../../gateway/generation.js'
import { parseObject } from '../../formats/wire/json/parse-body.js'
import type { Destination, ComparedConfig } from './compared-config.js'
import { sampleRequest } from './sample-request.js'

/** Why a request cannot be sent. */
export interface Refusal {
  /** The client's field, or a property of the model. */
  readonly field: string
  readonly message: string
}

/** A request at one upstream. */
export interface Translation {
  /** Null if the upstream lacks the operation. */
  readonly dialect: DialectName | null
  /** Fields of the client's format that are lost, by path. */
  readonly losses: readonly string[]
  readonly refusals: readonly Refusal[]
}

/** Translates the shape of the request for a destination of a configuration. */
export function translateHead(
  head: RequestHead,
  to: Destination,
  side: ComparedConfig,
): Translation {
  const request = sampleRequest(head)
  const facts = side.facts(to.model)
  const format = formatFor(to.target, { request, client: head, facts })
  if (format === null) {
    const message = `the upstream ${to.upstream} has no embeddings`
    return { dialect: null, losses: [], refusals: [{ field: 'model', message }] }
  }
  const { dialect, wire } = format
  const limits = limitsOf(head, request, facts)
  if (isEmbeddings(wire)) return { dialect, losses: [], refusals: limits }
  const { losses, refusal } = rendered(head, request, { to, side, wire, facts })
  const isRejected = refusesLosses(side.config.onLoss, losses)
  const lossRefusal = losses.map((field) => ({ field, message: 'on_loss is reject' }))
  return {
    dialect,
    losses: isRejected ? [] : losses,
    refusals: [
      ...limits,
      ...(refusal === null ? [] : [refusal]),
      ...(isRejected ? lossRefusal : []),
    ],
  }
}

interface Where {
  readonly to: Destination
  readonly side: ComparedConfig
  readonly wire: WireFormat
  readonly facts: ModelFacts
}

function rendered(
  head: RequestHead,
  request: ChatRequest,
  { to, side, wire, facts }: Where,
): { losses: readonly string[]; refusal: Refusal | null } {
  const { upstream } = to.target
  const upstreamCodec = upstreamCodecOf(wire, upstream)
  if (upstreamCodec === null) throw new Error(`no format ${wire}`)
  const { quirks, name, allowBetas: betas } = upstream
  const { allowSyntheticUser } = side.config
  const { model } = to
  const destination = { name, wire, upstreamCodec, model, facts, quirks, betas, allowSyntheticUser }
  const clientName = (path: string): string => errorFormatOf(head.dialect).fieldName?.(path) ?? path
  const found = new LossList()
  try {
    const body = wire === head.wire ? ownBody(head, request) : {}
    const raw = Buffer.from(JSON.stringify(body))
    const { members } = parseObject(raw)
    render({ wire: head.wire, raw, members, body, request }, destination, found)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const field = clientName(error.wire.param ?? 'body')
    return { losses: [], refusal: { field, message: error.message } }
  }
  return { losses: found.paths.map(clientName), refusal: null }
}

/** The request in its own format, for an upstream that receives the client's own bytes. */
function ownBody(head: RequestHead, request: ChatRequest): ReturnType<typeof parseObject>['value'] {
  const upstreamCodec = upstreamCodecOf(head.wire)
  if (upstreamCodec === null) return {}
  const facts = { id: head.model, family: FAMILIES[head.dialect], createdAtSeconds: 0 }
  return upstreamCodec.encodeRequest({ ...request, native: [] }, facts, { drop: () => undefined })
}

const FAMILIES: Readonly<Record<DialectName, string>> = {
  'openai-chat': 'openai',
  'openai-responses': 'openai',
  anthropic: 'anthropic',
  gemini: 'google',
  converse: 'amazon',
}

/** Limits of the model in the catalogue, which the provider and not the translation enforces. */
function limitsOf(head: RequestHead, request: ChatRequest, facts: ModelFacts): Refusal[] {
  const found: Refusal[] = []
  const refuse = (field: string, what: string): void => {
    found.push({ field, message: `${facts.id} ${what} (catalogue)` })
  }
  const kinds = head.sketch.turns.flatMap((turn) => turn.slice(1))
  const has = (kind: string): boolean => kinds.some((each) => each.startsWith(kind))
  if (facts.vision === false && has('image')) refuse('images', 'does not support images')
  if (facts.audioInput === false && has('audio')) refuse('audio', 'does not support audio')
  if (facts.tools === false && request.tools.length > 0) refuse('tools', 'does not support tools')
  const { contextWindow } = facts
  if (contextWindow !== undefined && head.promptTokens > contextWindow) {
    refuse('prompt', `has a context window of ${contextWindow} tokens`)
  }
  return found
}
