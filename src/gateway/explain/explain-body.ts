/**
 * Explains what happens to the fields of a request: kept, emulated, lost or refused. Sends no request, and
 * prints no content of the body.
 */
import type { JsonObject } from '../../base/json.js'
import type { ChatRequest } from '../../formats/chat/request.js'
import type { Catalogue, Config } from '../../config/config.js'
import type { DialectName } from '../../formats/dialect.js'
import { resolveEndpoint, type ResolvedEndpoint } from '../../formats/index.js'
import { notServed } from '../phases/choose-route.js'
import type { RouteTarget } from '../routing/router.js'
import { requestPathAt, upstreamAddressOf } from '../upstreams/upstream-address.js'
import { parseObject } from '../../formats/wire/json/parse-body.js'
import {
  simulatedTarget,
  type SimulatedCall,
  type SimulatedRequest,
  type SimulatedTarget,
} from './simulate-request.js'

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

/** Fields of the gateway, and fields that every request has. */
const ALWAYS_KEPT = new Set(['model', 'messages', 'stream', 'stream_options'])

/**
 * Explains a client's body for `model`. Throws `GatewayError(malformed_request)` with the path if the gateway
 * refuses it for every upstream, or the upstream has no chats.
 */
export function explainBody(
  bytes: Buffer,
  model: string,
  {
    target,
    ...settings
  }: { readonly target: RouteTarget; readonly config: Config; readonly catalogue: Catalogue },
): BodyExplanation {
  const endpoint = chatEndpoint()
  const body: JsonObject = { ...parseObject(bytes).value, model }
  const { upstream } = target
  const simulated = simulatedTarget(target, parsed(body, endpoint), settings)
  if (simulated === null) throw notServed('chat', model, [upstream.name])
  const trial = new Trial(endpoint, simulated, upstream.quirks.rename)
  const found = trial.run(body)
  const place = upstreamAddressOf(upstream)
  const lost = [...found.drops.keys()]
  const isRefused = found.rejected.size > 0 || found.isLossRefused
  return {
    dialect: simulated.dialect,
    endpoint: `POST ${place.origin}${requestPathAt(place, { path: found.path, model: simulated.model })}`,
    result: isRefused ? 'refused' : lost.length > 0 ? 'taken with losses' : 'taken',
    fields: fieldsOf(body, found, trial),
    lost: lost.length === 0 ? null : lost.join(', '),
  }
}

function chatEndpoint(): ResolvedEndpoint {
  const endpoint = resolveEndpoint('POST', '/v1/chat/completions')
  if (endpoint === null) throw new Error('no client dialect for chat completions')
  return endpoint
}

/** The outcome of encoding a body. */
interface TranslationOutcome {
  /** Path and reason of each field that the encoder drops. */
  readonly drops: ReadonlyMap<string, string>
  /** Path and message of each field that it refuses. */
  readonly rejected: Map<string, string>
  readonly isLossRefused: boolean
  /** The body without the refused fields. */
  readonly rest: JsonObject
  /** The dialect's path for the body. */
  readonly path: string
  /** The body that the upstream receives; null if every variant is refused. */
  readonly text: string | null
}

/** Renders variants of one body for the upstream. */
class Trial {
  /** New names of members, by the old ones. */
  readonly renamed: Readonly<Record<string, string>>
  private readonly endpoint: ResolvedEndpoint
  private readonly target: SimulatedTarget

  constructor(
    endpoint: ResolvedEndpoint,
    target: SimulatedTarget,
    renamed: Readonly<Record<string, string>>,
  ) {
    this.endpoint = endpoint
    this.target = target
    this.renamed = renamed
  }

  /** Removes a refused field and tries the rest, so that all refusals are found. */
  run(body: JsonObject): TranslationOutcome {
    const rejected = new Map<string, string>()
    let rest = body
    const { upstreamCodec, model } = this.target
    const { path } = upstreamCodec.target(model, body['stream'] === true)
    for (;;) {
      const { rendered, drops, refusal, isLossRefused } = this.simulated(rest)
      if (refusal === null) {
        return {
          ...{ drops, rejected, isLossRefused, rest },
          path: rendered?.path ?? path,
          text: rendered?.body.toString() ?? null,
        }
      }
      if (refusal.kind === 'malformed_request') throw refusal
      const param = refusal.wire.param ?? 'body'
      const key = topOf(param)
      rejected.set(param, refusal.message)
      if (key === 'messages' || key === 'model' || !Object.hasOwn(rest, key)) {
        return { drops, rejected, isLossRefused, rest, path, text: null }
      }
      rest = without(rest, key)
    }
  }

  private simulated(body: JsonObject): SimulatedRequest {
    return this.target.simulate(parsed(body, this.endpoint))
  }

  /** Whether the upstream receives the same without the field. */
  hasNoEffect({ rest, text }: TranslationOutcome, key: string): boolean {
    const other = this.run(without(rest, key))
    return other.rejected.size === 0 && other.text === text
  }
}

/** A client's request for `model`. Throws as `explainBody` does. */
export function requestOf(bytes: Buffer, model: string): ChatRequest {
  return parsed({ ...parseObject(bytes).value, model }, chatEndpoint()).request
}

function parsed(body: JsonObject, endpoint: ResolvedEndpoint): SimulatedCall {
  const raw = Buffer.from(JSON.stringify(body))
  const { members } = parseObject(raw)
  return {
    dialect: endpoint.dialect,
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
  const name = trial.renamed[key]
  if (name !== undefined) return { outcome: 'kept', note: `as ${name}` }
  if (ALWAYS_KEPT.has(key)) return { outcome: 'kept', note: null }
  if (found.text === null) return { outcome: 'unknown', note: null }
  if (!trial.hasNoEffect(found, key)) return { outcome: 'kept', note: null }
  return { outcome: 'no effect', note: 'the upstream receives the same without it' }
}
