/**
 * Decodes the calls of one reply: their ids, and the client's names and forms of the tools.
 * Generated ids are not random: they derive from the reply's id.
 */
import { isObject, type JsonValue } from '../../../../chat/json.js'
import type { ChatRequest } from '../../../../chat/request.js'
import { stringifyExact } from '../../../../wire/json/exact-numbers.js'
import { jsonToolName, toolNames, type ToolNames } from '../request/tool-names.js'
import { CUSTOM_INPUT } from '../../shared/constants.js'

/** OpenAI rejects longer call ids in a history. */
const MAX_ID_CHARS = 40
const MAX_REPLY_ID_CHARS = 26

/** A call in the client's terms. */
export interface ClientCall {
  id: string
  name: string
  json: string
  custom: boolean
}

/** Numbers the calls in order and gives each an id that is unique in the conversation. */
export class Calls {
  private readonly names: ToolNames
  private readonly customs: Set<string>
  private readonly jsonTool: string | null
  private readonly usedIds = new Set<string>()
  private readonly stem: string
  private count = 0

  /** `replyId` must differ between the replies of a conversation: generated ids derive from it. */
  constructor(request: ChatRequest, replyId: string) {
    this.names = toolNames(request.tools)
    this.customs = new Set(
      request.tools.filter((tool) => tool.custom !== undefined).map((tool) => tool.name),
    )
    this.jsonTool = jsonToolName(request)
    const safe = replyId.replace(/[^A-Za-z0-9_-]/g, '_').slice(-MAX_REPLY_ID_CHARS)
    this.stem = safe === '' ? `m${request.messages.length}` : safe
    for (const message of request.messages) {
      if (message.role === 'assistant')
        for (const call of message.toolCalls) this.usedIds.add(call.id)
    }
  }

  /** True for the synthetic tool whose arguments are the reply's text. */
  isJsonAnswer(wireName: string): boolean {
    return wireName === this.jsonTool
  }

  /**
   * The call in the client's terms. Throws a RangeError for arguments that are nested too deeply to
   * serialize.
   */
  next(wireName: string, id: JsonValue | undefined, args: JsonValue | undefined): ClientCall {
    const name = this.names.toClient(wireName)
    const custom = this.customs.has(name)
    return { id: this.idFor(id), name, custom, json: argumentsOf(args, custom) }
  }

  /** The upstream's id if it is valid and unique, else `call_<reply>_<ordinal>`. */
  private idFor(given: JsonValue | undefined): string {
    const ordinal = this.count
    this.count += 1
    let id = `call_${this.stem}_${ordinal}`
    if (typeof given === 'string' && isId(given) && !this.usedIds.has(given)) id = given
    for (let suffix = 1; this.usedIds.has(id); suffix += 1) {
      id = `call_${this.stem}_${ordinal}_${suffix}`
    }
    this.usedIds.add(id)
    return id
  }
}

function isId(text: string): boolean {
  return text.length <= MAX_ID_CHARS && /^[A-Za-z0-9_-]+$/.test(text)
}

/**
 * The text of a custom tool's input, or the JSON text of a function's arguments: `{}` without arguments;
 * integers beyond 2^53 keep all their digits.
 */
function argumentsOf(args: JsonValue | undefined, custom: boolean): string {
  if (!custom) return stringifyExact(args ?? {})
  const input = isObject(args) ? args[CUSTOM_INPUT] : undefined
  return typeof input === 'string' ? input : stringifyExact(args ?? {})
}
