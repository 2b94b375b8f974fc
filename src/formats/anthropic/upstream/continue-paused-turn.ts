/**
 * Continues a turn that Anthropic paused (`pause_turn`) because its server tools took long, and repeats one
 * that has no call though the client's choice demands one. Only requests with server tools can pause.
 *
 * Source: Claude API docs, "Server tools", read 2026-11-20: the client sends the assistant's content back
 * unchanged as the last message, and the id of the container.
 */
import {
  arrayOf,
  isObject,
  objectOf,
  parsedJson,
  stringOf,
  type JsonObject,
  type JsonValue,
} from '../../../base/json.js'
import { demandsCall } from '../../chat/must-call.js'
import type { ChatRequest } from '../../chat/request.js'
import type { Continuation } from '../../dialect.js'

/** Added to the client's last turn after a reply without the call that it demands. */
const CALL_NOW = '\n\nCall one of the tools now. A reply in text is not accepted.'

export const continuation: Continuation = { mayPause, next }

function mayPause(body: JsonObject): boolean {
  return arrayOf(body.mcp_servers).length > 0 || arrayOf(body.tools).some(isServerTool)
}

/** True for a tool that Anthropic runs. Tools that clients run have no type, or `custom`. */
function isServerTool(tool: JsonValue): boolean {
  const type = isObject(tool) ? stringOf(tool.type) : undefined
  return type !== undefined && type !== 'custom'
}

/** Whether the body offers tools that it does not force, because the model cannot be forced. */
export function mayOmitCall({ tools, tool_choice: choice }: JsonObject, request: ChatRequest): boolean {
  if (!demandsCall(request.toolChoice) || arrayOf(tools).length === 0) return false
  return (stringOf(objectOf(choice).type) ?? 'auto') === 'auto'
}

/**
 * The next body. After a second pause the content is added to the same assistant turn. Without content it is
 * the same body with the demand for a call at its end, where it leaves the prompt cache valid.
 */
function next(body: JsonObject, resume: JsonObject): JsonObject {
  const messages = [...arrayOf(body.messages)]
  const last = messages.at(-1)
  if (resume.content === undefined) {
    const demand = { type: 'text', text: CALL_NOW }
    if (isObject(last) && last.role === 'user') {
      messages[messages.length - 1] = { ...last, content: [...arrayOf(last.content), demand] }
    } else messages.push({ role: 'user', content: [demand] })
    return { ...body, messages }
  }
  // The API sends empty text blocks but rejects them in requests.
  const received = arrayOf(resume.content).filter((block) => objectOf(block).text !== '')
  if (isObject(last) && last.role === 'assistant') {
    messages[messages.length - 1] = { ...last, content: [...arrayOf(last.content), ...received] }
  } else {
    messages.push({ role: 'assistant', content: received })
  }
  const { container } = resume
  return { ...body, messages, ...(container === undefined ? {} : { container }) }
}

/** The members of a paused message that `next` needs. */
export function resumeOf(content: JsonValue[], container: JsonValue | undefined): JsonObject {
  const id = stringOf(objectOf(container).id)
  return id === undefined ? { content } : { content, container: id }
}

/** Assembles the content blocks of a stream exactly as a whole message would have them. */
export class RawContent {
  private readonly blocks = new Map<number, { block: JsonObject; json: string }>()

  start(at: number, block: JsonObject): void {
    const { citations } = block
    const copy = Array.isArray(citations) ? { ...block, citations: [...citations] } : { ...block }
    this.blocks.set(at, { block: copy, json: '' })
  }

  delta(at: number, delta: JsonObject): void {
    const known = this.blocks.get(at)
    if (known === undefined) return
    const { block } = known
    switch (delta.type) {
      case 'text_delta':
        block.text = joined(block.text, delta.text)
        return
      case 'thinking_delta':
        block.thinking = joined(block.thinking, delta.thinking)
        return
      case 'signature_delta':
        block.signature = joined(block.signature, delta.signature)
        return
      case 'input_json_delta':
        known.json += stringOf(delta.partial_json) ?? ''
        return
      case 'compaction_delta':
        block.content = delta.content ?? null
        return
      case 'citations_delta':
        // `start` copied the block and its list.
        if (Array.isArray(block.citations)) block.citations.push(delta.citation ?? null)
        else block.citations = [delta.citation ?? null]
        return
      default:
    }
  }

  content(): JsonObject[] {
    return [...this.blocks.values()].map(({ block, json }) =>
      json === '' ? block : { ...block, input: parsedJson(json) ?? {} },
    )
  }
}

function joined(one: JsonValue | undefined, other: JsonValue | undefined): string {
  return (stringOf(one) ?? '') + (stringOf(other) ?? '')
}
