/**
 * Tools and options that a provider runs or bills by itself, beside the tokens: their names in `allow_tools`
 * and in `calls` of a price.
 */
import type { JsonObject } from '../../base/json.js'
import { objectOf, stringOf } from '../../base/json.js'

/** A tool or option of a request. */
export interface HostedTool {
  /** As in `allow_tools`: the provider's type in lower case, without a date. */
  readonly name: string
  /** The path in the client's request. */
  readonly path: string
  /** The model that the tool itself uses. */
  readonly model?: string
  /** Maximum number of calls; absent: the provider decides. */
  readonly maxCalls?: number
  /** Maximum output tokens of a call of the model that the tool itself uses. */
  readonly maxTokens?: number
  /** The model that the tool itself uses writes its prompts into a cache. */
  readonly caches?: true
}

/** Other names of the search of the web. */
const WEB_SEARCH: ReadonlySet<string> = new Set([
  'web_search_preview',
  'web_search_options',
  'google_search',
  'google_search_retrieval',
  'enterprise_web_search',
])

/** Other names of tools on a server of the client's choice. */
const MCP: ReadonlySet<string> = new Set(['mcp_servers', 'mcp_toolset'])

/** A date or version at the end of a type: `_20250305`, `_2025_03_11`. */
const DATE = /_(?:\d{8}|\d{4}_\d{2}_\d{2})$/

/** The name in `allow_tools` for a type of any provider: `web_search` for `web_search_20250305`. */
export function hostedToolName(type: string): string {
  const snake = type
    .slice(0, 128)
    .replace(/[A-Z]/g, (letter, at: number) => `${at === 0 ? '' : '_'}${letter.toLowerCase()}`)
    .replaceAll('-', '_')
    .replace(DATE, '')
  if (WEB_SEARCH.has(snake)) return 'web_search'
  return MCP.has(snake) ? 'mcp' : snake
}

/** The ends of types of blocks that are calls, and results of tools that the provider has run. */
const CALL_END = /(?:_calls?|_use|_result|_output|_response|_approval_request|_tools)$/
/** Blocks, and members of Gemini's parts and of Converse's, that are neither calls nor results. */
const NO_CALL: ReadonlySet<string> = new Set([
  ...['additional_tools', 'compaction', 'message', 'reasoning', 'refusal', 'text', 'image', 'audio'],
  ...['thought', 'thought_signature', 'inline_data', 'file_data', 'video_metadata', 'media_resolution'],
  ...['part_metadata', 'document', 'video', 'cache_point', 'guard_content', 'reasoning_content', 'fallback'],
])
/** The names in `allow_tools` of calls whose types do not have it. */
const TOOLS_OF_CALLS: Readonly<Record<string, readonly string[]>> = {
  computer: ['computer_use', 'computer_use_preview'],
  executable_code: ['code_execution'],
  bash_code_execution: ['code_execution'],
  text_editor_code_execution: ['code_execution'],
  nova_code_interpreter: ['code_interpreter'],
  google_search_web: ['web_search'],
  google_search_image: ['web_search'],
}

/**
 * The names of the tool that a block of a reply calls: the name that the block has, the type of its call, and
 * the name in `allow_tools`. Empty if the block is no call. A block that the gateway does not know is a call;
 * of chat completions it has the name of a member alone.
 */
export function hostedCallNames(block: JsonObject, provider: string): string[] {
  const { type, name, server_name: server, server_label: label } = block
  // Gemini's parts have the call as their member: `executableCode`, `codeExecutionResult`, `toolCall`.
  const types = typeof type === 'string' ? [type] : Object.keys(block)
  const isKnown = provider !== 'openai-chat'
  const calls = types.filter((each) => {
    const own = hostedToolName(each)
    return !NO_CALL.has(own) && (isKnown || CALL_END.test(own))
  })
  if (calls.length === 0) return []
  const inner = calls.map((each) => objectOf(block[each]))
  const named = [name, server, label, ...inner.flatMap((call) => [call['name'], call['toolType']])]
  const names = [...calls, ...named.filter((each) => typeof each === 'string')]
  return [...new Set(names.flatMap(toolNames))]
}

/** A name of a call, with those of its tool. */
function toolNames(name: string): string[] {
  const own = hostedToolName(name === name.toUpperCase() ? name.toLowerCase() : name)
  const tool = own.replace(CALL_END, '').replace(/_tool$/, '')
  return [name, own, tool, ...(TOOLS_OF_CALLS[tool] ?? [])]
}

/** An entry that allows all tools. */
export const ANY_TOOL = '*'
/** An entry of `allow_tools`. */
export const ALLOWED_TOOL = /^(?:\*|[A-Za-z][\w-]{0,63})$/
/** Maximum entries of `allow_tools`. */
export const MAX_ALLOWED_TOOLS = 64

/** The entries under the names that requests are compared with, without duplicates. */
export function allowedTools(entries: readonly string[]): string[] {
  return [...new Set(entries.map((entry) => (entry === ANY_TOOL ? entry : hostedToolName(entry))))]
}

/** Tools that the client runs, and those that only select among the client's own tools. */
const HARMLESS =
  /^(?:apply_patch|bash|computer|computer_use|computer_use_preview|custom|function|local_shell|memory|namespace|text_editor|tool_search(?:_tool_\w+)?)$/

/** Whether the tool costs nothing extra and reaches no other model or host. */
export function isHarmless(name: string): boolean {
  return HARMLESS.test(name)
}

/** Options of a request that change its price and add nothing to the prompt. */
const OPTIONS: ReadonlySet<string> = new Set(['inference_geo', 'service_tier', 'speed'])

/** Whether the provider bills or may bill the calls of the tool. */
export function hasCalls({ name }: HostedTool): boolean {
  return !OPTIONS.has(name)
}

/** Whether results of the tool become prompt tokens, whose number is not known in advance. */
export function addsInput({ name }: HostedTool): boolean {
  return !OPTIONS.has(name) && name !== 'image_generation'
}

/** Tools without a price per call at any provider; their tokens are billed. */
const FREE_CALLS: ReadonlySet<string> = new Set(['mcp', 'url_context', 'web_fetch'])

/** Whether calls of the tool cost nothing, unless a price states something else. */
export function isFreeCall(name: string): boolean {
  return FREE_CALLS.has(name)
}

/** Anthropic's tool that calls another model. */
export const ADVISOR = 'advisor'

/** Whether the provider bills the tokens of the tool's own model, by the prices of that model. */
export function hasOwnTokens(tool: HostedTool): tool is HostedTool & { readonly model: string } {
  return tool.name === ADVISOR && tool.model !== undefined
}

/** Service tiers that never cost more than the usual one. */
const USUAL_TIERS: ReadonlySet<string> = new Set([
  'auto',
  'default',
  'flex',
  'on_demand',
  'standard',
  'standard_only',
])

/** The option of a service tier that may cost more; null for the other tiers. */
export function tierOption(tier: string | undefined, path: string): HostedTool | null {
  return tier === undefined || USUAL_TIERS.has(tier) ? null : { name: 'service_tier', path }
}

/** A hosted tool in `tools` of the request; null for one that is harmless. */
export function hostedTool(item: JsonObject, path: string): HostedTool | null {
  const type = stringOf(item['type']) ?? ''
  const name = hostedToolName(type)
  if (isHarmless(name) || isLocalShell(name, item)) return null
  const { model, max_uses: maxUses, max_tokens: maxTokens, caching } = item
  return {
    name,
    path,
    ...(typeof model === 'string' ? { model } : {}),
    ...(typeof maxUses === 'number' && maxUses >= 0 ? { maxCalls: maxUses } : {}),
    ...(typeof maxTokens === 'number' && maxTokens > 0 ? { maxTokens } : {}),
    ...(typeof caching === 'object' && caching !== null ? { caches: true } : {}),
  }
}

/** Adds a tool or option to the request; null adds nothing. */
export function addHosted(request: { hosted?: HostedTool[] }, tool: HostedTool | null): void {
  if (tool === null) return
  request.hosted ??= []
  request.hosted.push(tool)
}

/** Adds the path of input that only the provider has. */
export function addUnseen(request: { unseen?: string[] }, path: string): void {
  request.unseen ??= []
  request.unseen.push(path)
}

/** A shell of the client; one with another environment runs in a container of the provider. */
export function isLocalShell(name: string, { environment }: JsonObject): boolean {
  if (name !== 'shell') return false
  if (environment === undefined || environment === null) return true
  return typeof environment === 'object' && !Array.isArray(environment)
    ? environment['type'] === 'local'
    : false
}

/** Numbers of calls by the name of the tool. */
export type CallCounts = Readonly<Record<string, number>>

/** Names of tools in replies; any other text of an upstream is not counted. */
const COUNTED = /^[a-z][a-z0-9_]{0,63}$/
/** Maximum number of tools that are counted in one reply. */
const MAX_NAMES = 32

/** The counts with `count` more calls of the tool. Harmless tools are not counted. */
export function withCalls(
  counts: CallCounts | undefined,
  name: string,
  count: number,
): CallCounts | undefined {
  if (count <= 0 || !COUNTED.test(name) || isHarmless(name)) return counts
  if (counts === undefined) return { [name]: count }
  const before = counts[name]
  if (before === undefined && Object.keys(counts).length >= MAX_NAMES) return counts
  return { ...counts, [name]: (before ?? 0) + count }
}

/** The sum of both. */
export function addCalls(one: CallCounts, other: CallCounts): CallCounts {
  const sum: Record<string, number> = { ...one }
  for (const [name, count] of Object.entries(other)) sum[name] = (sum[name] ?? 0) + count
  return sum
}
