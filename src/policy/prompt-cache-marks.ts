/**
 * Marks prefixes of the prompt for the provider's prompt cache (`cache_control: auto`). A prefix is marked
 * only if the same account has sent it on the route before, so that a mark is worth more than it costs: a
 * write costs up to twice the price of the tokens, a read a tenth.
 */
import { createHash } from 'node:crypto'
import { Lru } from '../base/lru.js'
import { isObject, type JsonObject, type JsonValue } from '../base/json.js'
import type { ModelFacts } from '../formats/chat/model-facts.js'
import { isClaude, isNova } from '../formats/converse/constants.js'
import type { DialectName } from '../formats/dialect.js'

/** The maximum of both APIs. */
const MAX_MARKS = 4
/** For models whose minimum is unknown: that of the models with the highest one. */
const UNKNOWN_MIN_TOKENS = 4_096
const NOVA_MIN_TOKENS = 1_024
const BYTES_PER_TOKEN = 4
/** Prefixes that one process keeps; the oldest are dropped first. About 10 MB. */
const MAX_PREFIXES = 100_000

/** A request in the format of its upstream. */
export interface MarkedBody {
  readonly dialect: DialectName
  readonly facts: ModelFacts
  /** The name of the upstream, and its name of the model. */
  readonly upstream: string
  readonly model: string
  readonly body: JsonObject
}

/** The members of the body that change, and the number of marks in them. */
export interface Marks {
  readonly members: JsonObject
  readonly marks: number
}

const NONE: Marks = { members: {}, marks: 0 }

/** The prefixes that accounts have sent, in one process. */
class PrefixMemory {
  private readonly seen = new Lru<number>(MAX_PREFIXES)

  /** Whether the prefix was sent since the time. */
  has(prefix: string, sinceMs: number): boolean {
    return (this.seen.get(prefix) ?? 0) > sinceMs
  }

  add(prefix: string, nowMs: number): void {
    this.seen.set(prefix, nowMs)
  }
}

/** The account and route whose prefixes count, and the time for which the provider keeps a prefix. */
export interface MarkScope {
  readonly accountId: string
  readonly route: string
  readonly ttl: '5m' | '1h'
}

/** A place for a mark: the end of a prefix. */
interface Place {
  /** The list that has the last block of the prefix, and the index of that block. */
  readonly blocks: JsonValue[]
  readonly index: number
  readonly prefix: string
  readonly bytes: number
}

/** Marks the body, and notes its prefixes. Changes no part of the given body. */
function markPrefixes(
  request: MarkedBody,
  { accountId, route, ttl }: MarkScope,
  memory: PrefixMemory,
  nowMs: number,
): Marks {
  const { dialect, facts, body, upstream, model } = request
  const isConverse = dialect === 'converse'
  if (dialect !== 'anthropic' && !isConverse) return NONE
  if (isConverse && !isClaude(facts) && !isNova(facts)) return NONE
  if (hasOwnMark(body)) return NONE
  const prompt = copyOf(body, isConverse)
  const settings = [body['tool_choice'], body['thinking'], body['additionalModelRequestFields']]
  const seed = JSON.stringify([accountId, route, upstream, model, settings])
  const places = placesOf(prompt, seed)
  const minBytes = BYTES_PER_TOKEN * minTokens(facts)
  const keptMs = isConverse || ttl === '5m' ? 300_000 : 3_600_000
  const isWorth = ({ prefix, bytes }: Place): boolean =>
    bytes >= minBytes && memory.has(prefix, nowMs - keptMs)
  const { system, tools, previousTurn, beforeTurn } = places
  const order = [system, isConverse && isNova(facts) ? null : tools, previousTurn, beforeTurn]
  const chosen = order.filter((place) => place !== null).filter(isWorth)
  for (const { prefix, bytes } of places.all) if (bytes >= minBytes) memory.add(prefix, nowMs)
  const marked = chosen.slice(0, MAX_MARKS)
  // From the end, so that inserted cache points move no other place.
  for (const place of [...marked].sort((a, b) => b.index - a.index)) mark(place, isConverse, ttl)
  return marked.length === 0 ? NONE : { members: prompt.members, marks: marked.length }
}

function minTokens(facts: ModelFacts): number {
  return facts.cacheMinTokens ?? (isNova(facts) ? NOVA_MIN_TOKENS : UNKNOWN_MIN_TOKENS)
}

/** Whether the client, or the encoder, has marked a part of the request. */
function hasOwnMark(value: JsonValue): boolean {
  if (Array.isArray(value)) return value.some(hasOwnMark)
  if (!isObject(value)) return false
  if (isObject(value['cache_control']) || isObject(value['cachePoint'])) return true
  for (const [name, member = null] of Object.entries(value)) {
    // JSON of the client's own.
    if (name === 'input' || name === 'input_schema' || name === 'inputSchema') continue
    if (typeof member === 'object' && hasOwnMark(member)) return true
  }
  return false
}

/** The lists of blocks of a prompt, copied, and the members that contain them. */
interface Prompt {
  readonly members: JsonObject
  readonly tools: JsonValue[]
  readonly system: JsonValue[]
  readonly turns: readonly { readonly role: JsonValue; readonly blocks: JsonValue[] }[]
}

function copyOf(body: JsonObject, isConverse: boolean): Prompt {
  const blocksOf = (value: JsonValue | undefined): JsonValue[] => {
    if (typeof value === 'string') return value === '' ? [] : [{ type: 'text', text: value }]
    return Array.isArray(value) ? [...value] : []
  }
  const config = isObject(body['toolConfig']) ? body['toolConfig'] : {}
  const tools = blocksOf(isConverse ? config['tools'] : body['tools'])
  const system = blocksOf(body['system'])
  const messages = Array.isArray(body['messages']) ? body['messages'] : []
  const turns = messages.filter(isObject).map((message) => ({
    role: message['role'] ?? null,
    blocks: blocksOf(message['content']),
  }))
  const members: JsonObject = {
    messages: messages
      .filter(isObject)
      .map((message, at) => ({ ...message, content: turns[at]?.blocks ?? [] })),
  }
  if (system.length > 0) members['system'] = system
  if (tools.length > 0 && isConverse) members['toolConfig'] = { ...config, tools }
  else if (tools.length > 0) members['tools'] = tools
  return { members, tools, system, turns }
}

interface Places {
  readonly tools: Place | null
  readonly system: Place | null
  readonly previousTurn: Place | null
  readonly beforeTurn: Place | null
  /** Every prefix that a later request may have, the whole prompt included. */
  readonly all: readonly Place[]
}

/** The places of a prompt, in the order of the prefix: tools, system, messages. */
function placesOf({ tools, system, turns }: Prompt, seed: string): Places {
  const hash = createHash('sha256').update(seed)
  let bytes = 0
  const all: Place[] = []
  const endOf = (blocks: JsonValue[], role: JsonValue): Place | null => {
    const text = JSON.stringify([role, blocks])
    hash.update(text)
    bytes += text.length
    const index = blocks.findLastIndex(isMarkable)
    // A mark before the end of the list would end another prefix.
    if (index === -1 || index !== blocks.length - 1) return null
    const place = { blocks, index, prefix: hash.copy().digest('base64url'), bytes }
    all.push(place)
    return place
  }
  const afterTools = endOf(tools, 'tools')
  const afterSystem = endOf(system, 'system')
  const afterTurns = turns.map(({ blocks, role }) => ({ role, place: endOf(blocks, role) }))
  const newest = afterTurns.findLastIndex(({ role }) => role === 'user')
  const previous = afterTurns.findLastIndex(({ role }, at) => role === 'user' && at < newest)
  return {
    tools: afterTools,
    system: afterSystem,
    previousTurn: afterTurns[previous]?.place ?? null,
    beforeTurn: newest - 1 === previous ? null : (afterTurns[newest - 1]?.place ?? null),
    all,
  }
}

/** Whether both APIs accept a mark on, or after, the block. */
function isMarkable(block: JsonValue): boolean {
  if (!isObject(block)) return false
  const { type, text } = block
  if (type === 'thinking' || type === 'redacted_thinking') return false
  if (block['reasoningContent'] !== undefined || block['defer_loading'] === true) return false
  return typeof text !== 'string' || text.trim() !== ''
}

function mark({ blocks, index }: Place, isConverse: boolean, ttl: MarkScope['ttl']): void {
  const block = blocks[index]
  if (!isObject(block)) return
  if (isConverse) {
    blocks.splice(index + 1, 0, { cachePoint: { type: 'default' } })
    return
  }
  const control = ttl === '1h' ? { type: 'ephemeral', ttl } : { type: 'ephemeral' }
  blocks[index] = { ...block, cache_control: control }
}

/** The marks of one process. */
export class Marking {
  private readonly memory = new PrefixMemory()
  private readonly now: () => number

  /** `now`: ms since 1970. */
  constructor(now: () => number) {
    this.now = now
  }

  /** Marks the prompts of an account on a route. */
  marker(scope: MarkScope): (body: MarkedBody) => Marks {
    return (body) => markPrefixes(body, scope, this.memory, this.now())
  }
}
