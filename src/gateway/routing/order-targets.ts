/**
 * Orders the targets of a route: the chosen one, the other targets by weight, then the fallbacks. Pure:
 * randomness, the latency of targets and the sticky key are arguments.
 */
import { createHash } from 'node:crypto'
import type { RouteConfig } from '../../config/config.js'
import type { ChatRequest, Message, UserPart } from '../../formats/chat/request.js'
import type { ModelRoute, RouteTarget } from './router.js'

/** The inputs for the choice of a target. */
export interface Choice {
  /** A number from 0 to below 1, new with each call. */
  readonly random: () => number
  /** Requests with the same key get the same target; null: no preference. See `stickyKeyOf`. */
  readonly stickyKey: string | null
  /** The ids of aborted targets (`RouteTarget.canary`), which get no requests, as with weight 0. */
  readonly aborted: ReadonlySet<string>
  /** Expected time to first content at the current load of the target, in ms; 0 is unknown. */
  readonly latencyMs: (target: RouteTarget) => number
}

/** The targets of the route in order; never empty. Targets with weight 0, and aborted ones, are left out. */
export function orderTargets(route: ModelRoute, choice: Choice): RouteTarget[] {
  const { targets, fallback } = route
  if (targets.length === 1 && fallback.length === 0) return [...targets]
  const active = targets.filter(({ weight, canary }) => {
    return weight > 0 && (canary === null || !choice.aborted.has(canary))
  })
  const chosen = active.length === 1 ? active[0] : chosenOf(route, active, choice)
  const others = active.filter((target) => target !== chosen).sort((a, b) => b.weight - a.weight)
  return [...(chosen === undefined ? [] : [chosen]), ...others, ...fallback]
}

function chosenOf(
  { config }: ModelRoute,
  active: readonly RouteTarget[],
  { random, stickyKey, latencyMs }: Choice,
): RouteTarget | undefined {
  if (stickyKey !== null) return stickiest(active, stickyKey)
  const first = drawTarget(active, random())
  if (config.balance === 'weighted' || first === undefined) return first
  const second = drawTarget(
    active.filter((target) => target !== first),
    random(),
  )
  return second !== undefined && latencyMs(second) < latencyMs(first) ? second : first
}

/** Draws a target with a probability that is proportional to its weight. `point` is from 0 to below 1. */
function drawTarget(targets: readonly RouteTarget[], point: number): RouteTarget | undefined {
  let total = 0
  for (const { weight } of targets) total += weight
  let remaining = point * total
  for (const target of targets) {
    remaining -= target.weight
    if (remaining < 0) return target
  }
  // Rounding can leave a small remainder above 0.
  return targets.at(-1)
}

/** Maximum hashed characters of a text or of inline media; the length of a longer one is hashed too. */
const MAX_CHARS = 65_536
/** Maximum hashed characters of all parts together. */
const MAX_TOTAL_CHARS = 1_048_576
/** A longer text that is not decoded yet stays encoded; its length is hashed instead. */
const MAX_DECODED_BYTES = 262_144

/**
 * The key for which the choice of a target is stable: a digest of the beginning of the conversation, which is
 * the same for all its turns, or the id of the API key. Null: no stable choice.
 *
 * Chooses the same target for the same conversation or API key, by weighted rendezvous hashing. It needs no
 * state, so all workers and gateways agree, and a change of weights or targets moves the minimum number of
 * keys. Pure.
 */
export function stickyKeyOf(
  sticky: RouteConfig['sticky'],
  request: Pick<ChatRequest, 'messages'>,
  keyId: string | null,
): string | null {
  switch (sticky) {
    case 'none':
      return null
    case 'key':
      return keyId
    case 'conversation':
      return conversationKey(request.messages)
    default:
      return sticky satisfies never
  }
}

/** The system prompt and the first user message: the part of the prompt that every later turn repeats. */
function conversationKey(messages: readonly Message[]): string {
  const hash = createHash('sha256')
  let chars = 0
  for (const message of messages) {
    if (message.role === 'assistant' || message.role === 'tool') continue
    hash.update(`${message.role}\0`)
    for (const part of message.parts) {
      const text = textOf(part)
      chars += text.length + 1
      if (chars > MAX_TOTAL_CHARS) return hash.digest('base64')
      hash.update(text).update('\0')
    }
    if (message.role === 'user') break
  }
  return hash.digest('base64')
}

function textOf(part: UserPart): string {
  switch (part.type) {
    case 'text': {
      const { textBytes = 0 } = part
      return textBytes > MAX_DECODED_BYTES ? `text ${textBytes}` : beginning(part.text)
    }
    case 'audio':
      return beginning(part.data)
    case 'image':
    case 'file': {
      const { source } = part
      if (source.kind === 'base64') return beginning(source.data)
      return source.kind === 'url' ? source.url : source.id
    }
    default:
      return part satisfies never
  }
}

function beginning(text: string): string {
  return text.length <= MAX_CHARS ? text : `${text.slice(0, MAX_CHARS)}${text.length}`
}

/**
 * The target for a sticky key. Each target gets a share of the keys that is proportional to its weight; if
 * one is removed, only its own keys move. Undefined without targets.
 */
function stickiest(targets: readonly RouteTarget[], stickyKey: string): RouteTarget | undefined {
  let best: RouteTarget | undefined
  let bestScore = -1
  for (const target of targets) {
    const score = -target.weight / Math.log(pointOf(stickyKey, nameOf(target)))
    if (score > bestScore) {
      best = target
      bestScore = score
    }
  }
  return best
}

function nameOf({ upstream, model }: RouteTarget): string {
  return model === null ? upstream.name : `${upstream.name} ${model}`
}

/** A number above 0 and below 1 that is uniform over keys and names. */
export function pointOf(stickyKey: string, name: string): number {
  const digest = createHash('sha256').update(`${stickyKey}\0${name}`).digest()
  return (digest.readUIntBE(0, 6) + 0.5) / 2 ** 48
}
