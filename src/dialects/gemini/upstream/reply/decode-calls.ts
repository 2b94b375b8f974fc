/**
 * The calls of one answer: their ids, and the names and forms that the client knows them by.
 * Makes no random ids: it is given what makes them unique.
 */
import { isObject, type JsonValue } from '../../../../chat/json.js'
import type { ChatRequest } from '../../../../chat/request.js'
import { stringifyExact } from '../../../../wire/json/exact-numbers.js'
import { jsonToolName, toolNames, type ToolNames } from '../request/tool-names.js'
import { CUSTOM_INPUT } from '../../shared/names.js'

/** OpenAI refuses longer ids in a history, wherever they came from. */
const MAX_ID_CHARS = 40
const MAX_REPLY_ID_CHARS = 26

/** A call as the client is to see it. */
export interface ClientCall {
  id: string
  name: string
  json: string
  custom: boolean
}

/** Numbers the calls as they come and gives each an id that is new in the conversation. */
export class Calls {
  private readonly names: ToolNames
  private readonly customs: Set<string>
  private readonly jsonTool: string | null
  private readonly taken = new Set<string>()
  private readonly stem: string
  private count = 0

  /** `replyId` differs from reply to reply, so ids made from it differ across a conversation. */
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
        for (const call of message.toolCalls) this.taken.add(call.id)
    }
  }

  /** True where the call is the synthetic tool whose arguments are the answer. */
  isJsonAnswer(wireName: string): boolean {
    return wireName === this.jsonTool
  }

  /** The call as the client knows it. Throws a RangeError for arguments nested too deep to write. */
  next(wireName: string, id: JsonValue | undefined, args: JsonValue | undefined): ClientCall {
    const name = this.names.toClient(wireName)
    const custom = this.customs.has(name)
    return { id: this.idFor(id), name, custom, json: argumentsOf(args, custom) }
  }

  /** The upstream's id where it is a fit and new one, else `call_<reply>_<ordinal>`. */
  private idFor(given: JsonValue | undefined): string {
    const ordinal = this.count
    this.count += 1
    let id = `call_${this.stem}_${ordinal}`
    if (typeof given === 'string' && isId(given) && !this.taken.has(given)) id = given
    for (let again = 1; this.taken.has(id); again += 1) id = `call_${this.stem}_${ordinal}_${again}`
    this.taken.add(id)
    return id
  }
}

function isId(text: string): boolean {
  return text.length <= MAX_ID_CHARS && /^[A-Za-z0-9_-]+$/.test(text)
}

/**
 * A custom tool's input is text; the rest is JSON, `{}` where there are no arguments, integers beyond
 * 2^53 with all their digits.
 */
function argumentsOf(args: JsonValue | undefined, custom: boolean): string {
  if (!custom) return stringifyExact(args ?? {})
  const input = isObject(args) ? args[CUSTOM_INPUT] : undefined
  return typeof input === 'string' ? input : stringifyExact(args ?? {})
}
