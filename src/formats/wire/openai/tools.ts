/**
 * Tools and tool choices as chat completions and Responses share them. Chat completions nests the
 * members under the tool's type; Responses has them in the tool itself.
 */
import type { JsonObject, JsonValue } from '../../../base/json.js'
import type { ChatRequest, Tool, ToolChoice } from '../../chat/request.js'
import { boolean, finiteObject, given, string } from '../json/check-fields.js'
import { sha256Hex, shortHash } from '../sha256.js'
import { toolName, wireName, type NameRule } from '../tool-names.js'

/** OpenAI accepts at most 128; other upstreams of the formats accept more. */
export const MAX_TOOLS = 1_024

/** Name and description of a tool. */
export function decodeNamedTool(members: JsonObject, path: string): Tool {
  const tool: Tool = { name: toolName(members['name'], `${path}.name`) }
  if (given(members['description'])) {
    tool.description = string(members['description'], `${path}.description`)
  }
  return tool
}

/** Records a tool's name at `path` that OpenAI's own API refuses; `rule` is that of the API. */
export function noteName(
  request: ChatRequest,
  { name, path }: { readonly name: string; readonly path: string },
  rule: NameRule,
): void {
  if (wireName(name, rule) === name) return
  const refusal = `${path} must be 1 to 64 of the characters A-Z, a-z, 0-9, _ and -`
  request.foreignNames ??= []
  request.foreignNames.push({ path, refusal })
}

/** A function tool, from the object that holds its name. */
export function decodeFunctionTool(members: JsonObject, path: string): Tool {
  const tool = decodeNamedTool(members, path)
  if (given(members['parameters'])) {
    tool.parameters = finiteObject(members['parameters'], `${path}.parameters`)
  }
  if (given(members['strict'])) tool.strict = boolean(members['strict'], `${path}.strict`)
  return tool
}

/** The names of the tools that a choice requires or allows; empty for a mode alone. */
export function namesInChoice(choice: ToolChoice): readonly string[] {
  if (choice.mode === 'named') return [choice.name]
  return choice.mode === 'allowed' ? choice.names : []
}

/** A tool choice; the two formats differ in how they name a tool and list allowed ones. */
export function encodeChoice(
  choice: ToolChoice,
  tools: readonly Tool[],
  format: {
    /** `type` is `function` or `custom`. */
    readonly named: (type: 'function' | 'custom', name: string) => JsonObject
    readonly allowed: (mode: 'required' | 'auto', named: JsonObject[]) => JsonObject
  },
): string | JsonObject {
  const customs = new Set(tools.filter((tool) => tool.custom !== undefined).map(({ name }) => name))
  const named = (name: string): JsonObject => format.named(customs.has(name) ? 'custom' : 'function', name)
  switch (choice.mode) {
    case 'auto':
    case 'none':
    case 'required':
      return choice.mode
    case 'named':
      return named(choice.name)
    case 'allowed':
      return format.allowed(choice.required ? 'required' : 'auto', choice.names.map(named))
    default:
      return choice satisfies never
  }
}

/** The ids of calls that a vendor takes, all of one length. */
export interface CallIdRule {
  readonly taken: RegExp
  /** At most 9: the digits of a hash that is a safe integer. */
  readonly length: number
}

/**
 * An id of at most `max` characters, or one that the vendor takes. The same id always gives the same result,
 * for a call and for its tool result.
 */
export function wireCallId(id: string, max: number, rule?: CallIdRule): string {
  if (rule === undefined) return id.length <= max ? id : `${id.slice(0, max - 9)}_${shortHash(id)}`
  if (rule.taken.test(id)) return id
  const digits = Number.parseInt(sha256Hex(id).slice(0, 11), 16).toString(36)
  return digits.padStart(rule.length, '0').slice(-rule.length)
}

/**
 * Assigns unique ids to the calls of one reply: the upstream's own, or one derived from the reply's id.
 *
 * Source: OpenAI API reference, "Create chat completion" and "Create a model response", read 2026-11-20.
 */
export class CallIds {
  private readonly used = new Set<string>()

  /** `replyId` is the id of the reply, `index` the index of the call's block. */
  take(id: string, replyId: string, index: number): string {
    let unique = id
    const seed = replyId.replace(/[^A-Za-z0-9]/g, '')
    for (let at = index; unique === '' || this.used.has(unique); at += 1) {
      unique = `call_${seed.slice(-24)}_${at}`
    }
    this.used.add(unique)
    return unique
  }
}

/** Whether the arguments of a call are absent or null, for which upstreams need an empty object. */
export function areNull(value: JsonValue | undefined): boolean {
  return value === undefined || value === null || value === 'null'
}
