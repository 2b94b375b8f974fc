/**
 * Names of tools that a vendor refuses. They are changed in the tools, the choice and the calls of a request,
 * and changed back in the calls of its reply.
 */
import type { ChatEvent, EventSink } from '../chat/event.js'
import type { ChatRequest, Message, ToolChoice } from '../chat/request.js'
import { text } from './json/check-fields.js'
import { shortHash } from './sha256.js'

/** The names that a vendor takes. */
export interface NameRule {
  /** Any other character; global. */
  readonly refused: RegExp
  /** UTF-16 units. */
  readonly maxLength: number
  /** How a name begins, and what is put before one that begins otherwise; absent: with any character. */
  readonly start?: { readonly taken: RegExp; readonly before: string }
}

const MAX_NAME = 512
/** Characters of the hash in a changed name, with the `_` before it. */
const HASH = 9

/**
 * A tool's name in a request: formats differ in their limits, and names of MCP servers exceed all. Throws
 * `malformed_request` naming `path` if it is not a text of 1 to 512 characters.
 */
export function toolName(value: unknown, path: string): string {
  return text(value, path, MAX_NAME)
}

/**
 * A name that the vendor takes: the same one if it does. It depends only on the name, and includes its hash
 * if more than its start is changed, so that different names stay different.
 */
export function wireName(name: string, rule: NameRule): string {
  const plain = name.replace(rule.refused, '_')
  const { start } = rule
  const whole = start === undefined || start.taken.test(plain) ? plain : `${start.before}${plain}`
  if (plain === name && whole.length <= rule.maxLength) return whole
  return `${whole.slice(0, rule.maxLength - HASH)}_${shortHash(name)}`
}

/** A request whose names the vendor takes, and the client's names by those that were changed. */
interface NamedRequest {
  readonly request: ChatRequest
  readonly client: ReadonlyMap<string, string>
}

/**
 * The request with names of tools that the vendor takes; the same request if it takes all. Two tools never
 * get one name. A changed name depends only on the tools and the calls before it, so that the prefix of a
 * longer conversation stays the same.
 */
export function withWireNames(request: ChatRequest, rule: NameRule): NamedRequest {
  const { tools, messages, toolChoice } = request
  const wire = changedNames(request, rule)
  const client = new Map([...wire].map(([own, changed]) => [changed, own]))
  if (wire.size === 0) return { request, client }
  const nameOf = (name: string): string => wire.get(name) ?? name
  const named: ChatRequest = {
    ...request,
    tools: tools.map((tool) => ({ ...tool, name: nameOf(tool.name) })),
    messages: messages.map((message): Message => {
      if (message.role !== 'assistant' || message.toolCalls.length === 0) return message
      return {
        ...message,
        toolCalls: message.toolCalls.map((call) => ({ ...call, name: nameOf(call.name) })),
      }
    }),
  }
  if (toolChoice !== undefined) named.toolChoice = namedChoice(toolChoice, nameOf)
  return { request: named, client }
}

function namedChoice(choice: ToolChoice, nameOf: (name: string) => string): ToolChoice {
  if (choice.mode === 'named') return { ...choice, name: nameOf(choice.name) }
  return choice.mode === 'allowed' ? { ...choice, names: choice.names.map(nameOf) } : choice
}

/** The vendor's names by those of the client that it refuses. */
function changedNames({ tools, messages }: ChatRequest, rule: NameRule): Map<string, string> {
  const changed = new Map<string, string>()
  const taken = new Set<string>()
  const add = (name: string): void => {
    if (changed.has(name) || wireName(name, rule) === name) return
    let own = name
    let candidate = wireName(own, rule)
    while (taken.has(candidate)) {
      own = `_${own}`
      candidate = wireName(own, rule)
    }
    taken.add(candidate)
    changed.set(name, candidate)
  }
  for (const { name } of tools) taken.add(name)
  for (const { name } of tools) add(name)
  for (const message of messages) {
    if (message.role === 'assistant') for (const { name } of message.toolCalls) add(name)
  }
  return changed
}

/** The sink with the client's names in calls; the same sink if no name was changed. */
export function withClientNames(sink: EventSink, client: NamedRequest['client']): EventSink {
  if (client.size === 0) return sink
  const renamed = (event: ChatEvent): ChatEvent =>
    event.type === 'tool-start' ? { ...event, name: client.get(event.name) ?? event.name } : event
  return { event: (event) => sink.event(renamed(event)) }
}
