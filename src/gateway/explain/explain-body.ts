/**
 * Explains what happens to the fields of a request: kept, emulated, lost or refused. Sends no request, and
 * prints no content of the body.
 */
import type { JsonObject } from '../../base/json.js'
import type { ModelFacts } from '../../formats/chat/model-facts.js'
import type { ChatRequest } from '../../formats/chat/request.js'
import type { UpstreamConfig } from '../../config/config.js'
import type { DialectName } from '../../formats/dialect.js'
import { resolveEndpoint, upstreamCodecOf, type ResolvedEndpoint } from '../../formats/index.js'
import { refusesLosses, type OnLoss } from '../../formats/losses.js'
import { GatewayError } from '../../errors.js'
import { render, type Destination } from '../attempts/render-for-upstream.js'
import type { Call } from '../phases/receive.js'
import { openAiEndpoint } from '../upstreams/choose-openai-endpoint.js'
import { requestPathAt, upstreamAddressOf } from '../upstreams/upstream-address.js'
import { parseObject } from '../../formats/wire/json/parse-body.js'
import { refuseUnjudged } from '../../formats/wire/vendor-rules.js'

/**
 * `kept`: the field arrives. `emulated`: a close equivalent arrives. `lost`: it is dropped and reported.
 * `rejected`: the request is refused because of it. `no effect`: the upstream receives the same without it.
 * `unknown`: not examined, because the messages are refused.
 */
type Outcome = 'kept' | 'emulated' | 'lost' | 'rejected' | 'no effect' | 'unknown'

interface FieldOutcome {
  readonly path: string
  readonly outcome: Outcome
  /** The reason, or the equivalent; null if there is none. */
  readonly note: string | null
}

/** The outcome for a request. */
export interface BodyExplanation {
  readonly dialect: DialectName
  /** Method and URL of the upstream request. */
  readonly endpoint: string
  readonly result: 'taken' | 'taken with losses' | 'refused'
  /** The body's fields in order, each followed by special fields within it. */
  readonly fields: readonly FieldOutcome[]
  /** The header `x-sluice-lost`; null without lost fields. */
  readonly lost: string | null
}

/** The target of the request. */
interface BodyRoute {
  readonly upstream: UpstreamConfig
  /** The model that is requested from the upstream. */
  readonly model: string
  readonly facts: ModelFacts
  readonly onLoss: OnLoss
  readonly allowSyntheticUser: boolean
}

type Parsed = Pick<Call, 'wire' | 'raw' | 'members' | 'body' | 'request'>

/** Fields of the gateway, and fields that every request has. */
const ALWAYS_KEPT = new Set(['model', 'messages', 'stream', 'stream_options'])

/**
 * Explains a client's body for `model`. Throws `GatewayError(malformed_request)` with the path if the gateway
 * refuses it for every upstream.
 */
export function explainBody(bytes: Buffer, model: string, route: BodyRoute): BodyExplanation {
  const { upstream, facts } = route
  const endpoint = resolveEndpoint('POST', '/v1/chat/completions')
  if (endpoint === null) throw new Error('no client dialect for chat completions')
  const body: JsonObject = { ...parseObject(bytes).value, model }
  const { request } = parsed(body, endpoint)
  const choice = upstream.dialect
  const dialect = choice === 'openai' ? openAiEndpoint(request, facts) : choice
  refuseUnjudged(request, endpoint.wire, [{ wire: dialect, dialect: choice }])
  const upstreamCodec = upstreamCodecOf(dialect, upstream)
  if (upstreamCodec === null) throw new Error(`no dialect ${dialect}`)
  const trial = new Trial(endpoint, {
    wire: dialect,
    upstreamCodec,
    model: route.model,
    facts,
    quirks: upstream.quirks,
    allowSyntheticUser: route.allowSyntheticUser,
  })
  const found = trial.run(body)
  const place = upstreamAddressOf(upstream)
  const lost = [...found.drops.keys()]
  const isRefused = found.rejected.size > 0 || refusesLosses(route.onLoss, lost)
  return {
    dialect,
    endpoint: `POST ${place.origin}${requestPathAt(place, { path: found.path, model: route.model })}`,
    result: isRefused ? 'refused' : lost.length > 0 ? 'taken with losses' : 'taken',
    fields: fieldsOf(body, found, trial),
    lost: lost.length === 0 ? null : lost.join(', '),
  }
}

/** The outcome of encoding a body. */
interface TranslationOutcome {
  /** Path and reason of each field that the encoder drops. */
  readonly drops: Map<string, string>
  /** Path and message of each field that it refuses. */
  readonly rejected: Map<string, string>
  /** The body without the refused fields. */
  readonly rest: JsonObject
  /** The dialect's path for the body. */
  readonly path: string
  /** The body that the upstream receives; null if every variant is refused. */
  readonly text: string | null
}

/** Encodes variants of one body as the gateway would. */
class Trial {
  readonly quirks: Destination['quirks']
  private readonly endpoint: ResolvedEndpoint
  private readonly destination: Destination

  constructor(endpoint: ResolvedEndpoint, destination: Destination) {
    this.endpoint = endpoint
    this.destination = destination
    this.quirks = destination.quirks
  }

  /** Removes a refused field and tries the rest, so that all refusals are found. */
  run(body: JsonObject): TranslationOutcome {
    const drops = new Map<string, string>()
    const rejected = new Map<string, string>()
    let rest = body
    const { upstreamCodec, model } = this.destination
    const { path } = upstreamCodec.target(model, body['stream'] === true)
    for (;;) {
      drops.clear()
      const losses = { drop: (path: string, reason: string) => drops.set(path, reason) }
      try {
        const call = parsed(rest, this.endpoint)
        const out = render(call, this.destination, losses)
        return { drops, rejected, rest, path: out.path, text: out.body.toString() }
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error
        const param = error.wire.param ?? 'body'
        const key = topOf(param)
        rejected.set(param, error.message)
        if (key === 'messages' || key === 'model' || !Object.hasOwn(rest, key)) {
          return { drops, rejected, rest, path, text: null }
        }
        rest = without(rest, key)
      }
    }
  }

  /** Whether the upstream receives the same without the field. */
  hasNoEffect({ rest, text }: TranslationOutcome, key: string): boolean {
    const other = this.run(without(rest, key))
    return other.rejected.size === 0 && other.text === text
  }
}

/** A client's request for `model`. Throws as `explainBody` does. */
export function requestOf(bytes: Buffer, model: string): ChatRequest {
  const endpoint = resolveEndpoint('POST', '/v1/chat/completions')
  if (endpoint === null) throw new Error('no client dialect for chat completions')
  return parsed({ ...parseObject(bytes).value, model }, endpoint).request
}

function parsed(body: JsonObject, endpoint: ResolvedEndpoint): Parsed {
  const raw = Buffer.from(JSON.stringify(body))
  const { members } = parseObject(raw)
  return {
    wire: endpoint.wire,
    raw,
    members,
    body,
    request: endpoint.clientCodec.decodeRequest(body, endpoint.endpoint),
  }
}

function without(body: JsonObject, key: string): JsonObject {
  return Object.fromEntries(Object.entries(body).filter(([name]) => name !== key))
}

function topOf(path: string): string {
  return /^[^.[]*/.exec(path)?.[0] ?? path
}

/** Newer names that encoders use for these fields. */
const ALIASES: Readonly<Record<string, string>> = { max_completion_tokens: 'max_tokens' }

/** Each field of the body, then lost paths that belong to none. */
function fieldsOf(body: JsonObject, found: TranslationOutcome, trial: Trial): FieldOutcome[] {
  const drops = new Map(
    [...found.drops].map(([path, reason]) => [
      Object.hasOwn(body, path) ? path : (ALIASES[path] ?? path),
      reason,
    ]),
  )
  const named = { ...found, drops }
  const keys = Object.keys(body).filter((key) => body[key] !== null)
  const rest = [...drops].filter(([path]) => !keys.includes(topOf(path)))
  return [
    ...keys.flatMap((key) => outcomesWithin(key, named, trial)),
    ...rest.map(([path, reason]) => ({ path, ...outcomeOf(reason) })),
  ]
}

/** The field, then the lost or emulated paths in it. */
function outcomesWithin(key: string, found: TranslationOutcome, trial: Trial): FieldOutcome[] {
  const within: FieldOutcome[] = []
  for (const [path, message] of found.rejected) {
    if (topOf(path) === key) within.push({ path, outcome: 'rejected', note: message })
  }
  for (const [path, reason] of found.drops) {
    if (topOf(path) === key) within.push({ path, ...outcomeOf(reason) })
  }
  if (within.some(({ path }) => path === key)) return within
  return [{ path: key, ...ownOutcome(key, found, trial) }, ...within]
}

function outcomeOf(reason: string): Omit<FieldOutcome, 'path'> {
  if (reason === 'approximated') return { outcome: 'emulated', note: 'the closest equivalent' }
  if (reason === 'bad-value') return { outcome: 'lost', note: 'this value has no equivalent' }
  return { outcome: 'lost', note: 'no equivalent' }
}

function ownOutcome(key: string, found: TranslationOutcome, trial: Trial): Omit<FieldOutcome, 'path'> {
  const name = trial.quirks.rename[key]
  if (name !== undefined) return { outcome: 'kept', note: `as ${name}` }
  if (ALWAYS_KEPT.has(key)) return { outcome: 'kept', note: null }
  if (found.text === null) return { outcome: 'unknown', note: null }
  if (!trial.hasNoEffect(found, key)) return { outcome: 'kept', note: null }
  return { outcome: 'no effect', note: 'the upstream receives the same without it' }
}
