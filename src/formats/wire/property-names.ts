/**
 * Names of properties in the schemas of tools and of the reply that a vendor refuses. They are changed in
 * schemas and in the calls of the conversation, and changed back in the calls and the JSON of the reply.
 */
import { arrayOf, isObject, stringOf, type JsonObject, type JsonValue } from '../../base/json.js'
import type { ChatRequest, Message, Tool } from '../chat/request.js'
import { LISTS, MAPS, MAX_DEPTH, SINGLE } from '../chat/schema-keywords.js'
import { SchemaBudget } from '../chat/json-schema.js'
import { stringifyExact } from './json/exact-numbers.js'
import { NestedJson } from './json/nested-json.js'
import { withDefinitions } from './schema-references.js'
import { shortHash } from './sha256.js'

/**
 * The names that Anthropic's models take, also at Bedrock: "Property keys should match pattern". Source:
 * anthropics/claude-code issue 79418, read 2026-11-29.
 */
const PROPERTY_NAME = /^[a-zA-Z0-9_.-]{1,64}$/

/** Names by their counterpart. */
type Names = ReadonlyMap<string, string>

/** The names in the values of one schema: the vendor's by the client's, and the reverse. */
interface RenamedSchema {
  readonly schema: JsonObject
  readonly wire: Names
  readonly client: Names
}

/**
 * The request with names that the vendor takes; the same request if it takes all. A changed name depends
 * only on the client's, so that the prefix of a longer conversation stays the same.
 */
export function withWireProperties(request: ChatRequest): ChatRequest {
  const changed = changedTools(request.tools)
  const responseFormat = renamedFormat(request)
  if (changed.size === 0) return responseFormat === undefined ? request : { ...request, responseFormat }
  const nested = new NestedJson()
  const tools = request.tools.map((tool) => {
    const known = changed.get(tool.name)
    return known === undefined ? tool : { ...tool, parameters: known.schema }
  })
  const messages = request.messages.map((message): Message => {
    if (message.role !== 'assistant' || message.toolCalls.length === 0) return message
    const toolCalls = message.toolCalls.map((call) => {
      const names = changed.get(call.name)?.wire
      return names === undefined ? call : { ...call, arguments: renamedText(call.arguments, names, nested) }
    })
    return { ...message, toolCalls }
  })
  return { ...request, tools, messages, ...(responseFormat === undefined ? {} : { responseFormat }) }
}

/** The format of the reply with names that the vendor takes; undefined if nothing changes. */
function renamedFormat(request: ChatRequest): ChatRequest['responseFormat'] {
  const { responseFormat: format } = request
  const schema = changedReply(request)?.schema
  return format?.type !== 'json-schema' || schema === undefined ? undefined : { ...format, schema }
}

function changedReply({ responseFormat: format }: ChatRequest): RenamedSchema | undefined {
  return format?.type === 'json-schema' ? renamedSchema(format.schema) : undefined
}

/** The client's names in the calls and the JSON of a reply. */
export class ClientProperties {
  private readonly tools: ReadonlyMap<string, RenamedSchema>
  private readonly reply: RenamedSchema | undefined
  private readonly nested = new NestedJson()

  constructor(request: ChatRequest) {
    this.tools = changedTools(request.tools)
    this.reply = changedReply(request)
  }

  /** Whether the text of the reply is JSON with changed names. */
  get hasReply(): boolean {
    return this.reply !== undefined
  }

  /** The text of a reply with the client's names; unchanged if it is not a JSON object. */
  restoredReply(text: string): string {
    return this.reply === undefined ? text : renamedText(text, this.reply.client, this.nested)
  }

  /** Whether calls of the tool have changed names. */
  has(tool: string): boolean {
    return this.tools.has(tool)
  }

  /** The arguments of a call, which are JSON text, with the client's names. */
  restored(tool: string, json: string): string {
    const names = this.tools.get(tool)?.client
    return names === undefined ? json : renamedText(json, names, this.nested)
  }
}

/** The tools with names that do not match, by the client's name of the tool. */
function changedTools(tools: readonly Tool[]): Map<string, RenamedSchema> {
  const found = new Map<string, RenamedSchema>()
  for (const { name, parameters, custom } of tools) {
    const renamed = parameters === undefined || custom !== undefined ? undefined : renamedSchema(parameters)
    if (renamed !== undefined) found.set(name, renamed)
  }
  return found
}

/** The schema with names that the vendor takes; undefined if it takes all. */
function renamedSchema(given: JsonObject): RenamedSchema | undefined {
  if (!hasForeignName(given, 0)) return undefined
  const renaming = new Renaming()
  // A reference may have a name in its path.
  const schema = renaming.schema(withDefinitions(given, { budget: new SchemaBudget() }), 0)
  const { wire, client } = renaming
  return wire.size === 0 ? undefined : { schema, wire, client }
}

/** Whether a member of any `properties` has a name that the vendor refuses; most schemas have none. */
function hasForeignName(schema: JsonValue, depth: number): boolean {
  if (depth > MAX_DEPTH || typeof schema !== 'object' || schema === null) return false
  if (Array.isArray(schema)) return schema.some((each) => hasForeignName(each, depth + 1))
  for (const key in schema) {
    const value = schema[key] ?? null
    if (key === 'properties' && isObject(value)) {
      for (const name in value) if (!PROPERTY_NAME.test(name)) return true
    }
    if (hasForeignName(value, depth + 1)) return true
  }
  return false
}

class Renaming {
  readonly wire = new Map<string, string>()
  readonly client = new Map<string, string>()

  /** The schema with changed names. */
  schema(schema: JsonObject, depth: number): JsonObject {
    if (depth > MAX_DEPTH) return schema
    const one = (value: JsonValue): JsonValue => (isObject(value) ? this.schema(value, depth + 1) : value)
    const members = Object.entries(schema).map(([key, value = null]): [string, JsonValue] => {
      if (key === 'required') return [key, arrayOf(value).map((name) => this.nameOf(name))]
      if (Array.isArray(value) && LISTS.has(key)) return [key, value.map(one)]
      if (!isObject(value)) return [key, value]
      if (SINGLE.has(key)) return [key, one(value)]
      if (!MAPS.has(key)) return [key, value]
      const named = key === 'properties' || key === 'dependentSchemas' || key === 'dependencies'
      const entries = Object.entries(value).map(([name, each = null]): [string, JsonValue] => [
        named ? (stringOf(this.nameOf(name)) ?? name) : name,
        one(each),
      ])
      return [key, Object.fromEntries(entries)]
    })
    return Object.fromEntries(members)
  }

  private nameOf(name: JsonValue): JsonValue {
    if (typeof name !== 'string' || PROPERTY_NAME.test(name)) return name
    const known = this.wire.get(name)
    if (known !== undefined) return known
    const plain = name.replace(/[^a-zA-Z0-9_.-]/g, '_').slice(0, 48)
    const wire = `${plain}_${shortHash(name)}`
    this.wire.set(name, wire)
    this.client.set(wire, name)
    return wire
  }
}

/** JSON text with changed names of members; the same text if it is not an object. */
function renamedText(json: string, names: Names, nested: NestedJson): string {
  const value = nested.parse(json)
  return isObject(value) ? stringifyExact(renamed(value, names, 0)) : json
}

function renamed(value: JsonValue, names: Names, depth: number): JsonValue {
  if (depth > MAX_DEPTH) return value
  if (Array.isArray(value)) return value.map((each) => renamed(each, names, depth + 1))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, each = null]) => [
      names.get(name) ?? name,
      renamed(each, names, depth + 1),
    ]),
  )
}
