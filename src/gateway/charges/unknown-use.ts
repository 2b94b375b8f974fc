/**
 * The use of a request that its own text does not show: input that only the provider has, and calls of tools
 * that the provider runs.
 */
import { addsInput, hasCalls, hasOwnTokens, type HostedTool } from '../../formats/chat/hosted-tools.js'
import type { ModelFacts } from '../../formats/chat/model-facts.js'
import type { ChatRequest, UserPart } from '../../formats/chat/request.js'
import type { Target } from '../generation.js'
import type { Call } from '../phases/call.js'
import { IMAGE_VENDORS, kindsOf, TEXT_KINDS, type RequestKinds } from './token-kinds.js'

/** A tool that calls another model, whose tokens are billed by the prices of that model. */
export interface ToolModel {
  readonly tool: string
  readonly model: string
  /** The maximum number of calls. */
  readonly count: number
  /** Maximum output tokens of one call; absent: those of the model. */
  readonly maxTokens?: number
  readonly caches: boolean
}

/** What the gateway cannot see of a request before its reply. */
export interface UnknownUse {
  /** The path of the first input that the gateway cannot see; null if it sees all of it. */
  readonly unseen: string | null
  /** The tool that adds input, or the path of other input that the gateway cannot see; null for neither. */
  readonly source: string | null
  /** Prompt tokens that tools may add, as configured; they are not `unseen`. */
  readonly added: number
  /** The maximum number of calls of each tool that the provider runs. */
  readonly calls: readonly (readonly [name: string, count: number])[]
  /** The other models that tools of the provider call. */
  readonly models: readonly ToolModel[]
  /** Kinds of tokens beside text. */
  readonly kinds: RequestKinds
}

/** The use of a request that the gateway sees completely. */
export const ALL_SEEN: UnknownUse = {
  unseen: null,
  source: null,
  added: 0,
  calls: [],
  models: [],
  kinds: TEXT_KINDS,
}

/** Calls of a tool if the request sets no maximum. */
const UNLIMITED_CALLS = 10

/** What decides about unknown use, besides the request. */
interface UseRules {
  /** Facts of the model. */
  readonly facts: ModelFacts
  /** `limiting.unseen_input_tokens`. */
  readonly toolTokens: Readonly<Record<string, number>>
}

/** The format in which an upstream receives requests, and what it leaves out of them. */
export interface TargetFormat extends Pick<Target, 'wire' | 'dialect'> {
  readonly quirks: Pick<Target['quirks'], 'drop'>
}

/** The unknown use of the call at an upstream. */
export function unknownUseOf(
  call: Pick<Call, 'wire' | 'request'>,
  target: TargetFormat,
  { facts, toolTokens }: UseRules,
): UnknownUse {
  const { request } = call
  const hosted = hostedAt(call, target)
  const most = request.rest['max_tool_calls']
  const limit = typeof most === 'number' ? most : Number.POSITIVE_INFINITY
  const countOf = ({ maxCalls = UNLIMITED_CALLS }: HostedTool): number => Math.min(limit, maxCalls)
  const adding = hosted.filter(addsInput)
  const tokensOf = new Map<string, number | undefined>()
  for (const tool of adding) tokensOf.set(tool.name, toolTokens[tool.name] ?? adviceOf(tool, countOf(tool)))
  const unbounded = adding.find(({ name }) => tokensOf.get(name) === undefined)
  const unseen =
    (target.wire === call.wire ? request.unseen?.[0] : undefined) ??
    unbounded?.path ??
    unseenMedia(request, facts.family)
  const names = [...tokensOf.keys()]
  const source = adding.find(({ path }) => path === unseen)?.name ?? unseen ?? names.join(', ')
  const added = names.reduce((sum, name) => sum + (tokensOf.get(name) ?? 0), 0)
  const isPassedOn = target.wire === call.wire
  const kinds = kindsOf({ request, facts, hasUnseen: unseen !== null, isPassedOn })
  if (unseen === null && hosted.length === 0) return { ...ALL_SEEN, kinds }
  const billed = hosted.filter(hasCalls)
  const calls = billed
    .filter((tool) => !hasOwnTokens(tool))
    .map((tool) => [tool.name, countOf(tool)] as const)
  const models = billed.filter(hasOwnTokens).map((tool) => {
    const { name, model, maxTokens, caches = false } = tool
    return { tool: name, model, count: countOf(tool), caches, ...(maxTokens !== undefined && { maxTokens }) }
  })
  return { unseen, source: source === '' ? null : source, added, calls, models, kinds }
}

/** Tokens that replies of the tool's own model add to the prompt; undefined if they have no maximum. */
function adviceOf(tool: HostedTool, count: number): number | undefined {
  return hasOwnTokens(tool) && tool.maxTokens !== undefined ? tool.maxTokens * count : undefined
}

const NONE: readonly HostedTool[] = []

/**
 * The tools and options of the request that reach this upstream. A translated request keeps only those that
 * its encoder writes.
 */
export function hostedAt(
  { request, wire }: Pick<Call, 'wire' | 'request'>,
  target: TargetFormat,
): readonly HostedTool[] {
  const { hosted } = request
  if (hosted === undefined) return NONE
  const { dialect, quirks } = target
  return hosted.filter(({ name, path }) => {
    if (quirks.drop.includes(/^[^.[]*/.exec(path)?.[0] ?? path)) return false
    if (target.wire === wire) return true
    if (name === 'service_tier') return dialect !== 'anthropic'
    return path === 'web_search_options' && dialect.startsWith('openai')
  })
}

/** A file by URL or id, or an image whose tokens have no known maximum; null if there is none. */
function unseenMedia({ messages }: ChatRequest, family: string): string | null {
  for (const message of messages) {
    // Sound of an earlier reply, which only OpenAI has.
    if (message.parts.some((part) => part.type === 'opaque' && part.block['type'] === 'audio')) {
      return `messages[${message.index}].audio`
    }
    if (message.role !== 'user' && message.role !== 'tool') continue
    for (const part of message.parts) {
      if (isUnseen(part, family)) return `messages[${message.index}]`
    }
  }
  return null
}

function isUnseen(part: UserPart, family: string): boolean {
  if (part.type !== 'image' && part.type !== 'file') return false
  switch (part.source.kind) {
    case 'base64':
      return false
    case 'file-id':
      return true
    case 'url':
      return part.type === 'file' || !IMAGE_VENDORS.has(family)
    default:
      return part.source satisfies never
  }
}
