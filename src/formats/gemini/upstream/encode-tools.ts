/**
 * Encodes tools and the tool choice. Keeps the client's order of tools, which prompt caching depends on.
 */
import { SchemaBudget } from '../../chat/json-schema.js'
import { isObject, type JsonObject } from '../../../base/json.js'
import type { ChatRequest, Tool, ToolChoice } from '../../chat/request.js'
import type { Losses } from '../../dialect.js'
import { SCHEMA_RULES } from '../../vendors.js'
import { fitSchema, REPLY_SCHEMA, TOOL_SCHEMA } from '../../wire/fit-schema.js'
import { refused } from '../../wire/json/check-fields.js'
import { relaxSchema } from './encode-schema.js'
import { CUSTOM_SCHEMA } from '../../wire/custom-tools.js'

/** The synthetic tool whose arguments are the JSON reply. */
export interface JsonTool {
  name: string
  schema: JsonObject
}

/**
 * `functionDeclarations` of all tools. Throws `GatewayError(untranslatable)` for a custom tool with
 * a grammar, which only OpenAI enforces.
 */
export function encodeTools(tools: readonly Tool[], json: JsonTool | null, losses: Losses): JsonObject[] {
  const budget = new SchemaBudget()
  const declarations = tools.map((tool, at) => declaration(tool, at, { budget, losses }))
  if (json !== null) {
    budget.path = 'response_format.json_schema.schema'
    declarations.push({
      name: json.name,
      description: 'Gives the final answer to the user. Call it once, when no other tool is needed.',
      parametersJsonSchema: fittedSchema(json.schema, { budget, losses, path: REPLY_SCHEMA }),
    })
  }
  return declarations.length === 0 ? [] : [{ functionDeclarations: declarations }]
}

/** `toolConfig`; undefined for the default, with which the model decides. */
export function encodeToolChoice(request: ChatRequest, json: JsonTool | null): JsonObject | undefined {
  if (request.tools.length === 0) return undefined
  if (json !== null) return config('ANY', jsonChoice(request, json))
  const choice: ToolChoice | undefined = request.toolChoice
  if (choice === undefined || choice.mode === 'auto') {
    if (request.tools.some((tool) => tool.strict === true)) return config('VALIDATED')
    return choice === undefined ? undefined : config('AUTO')
  }
  switch (choice.mode) {
    case 'none':
      return config('NONE')
    case 'required':
      return config('ANY')
    case 'named':
      return config('ANY', [choice.name])
    case 'allowed':
      return config(choice.required ? 'ANY' : 'VALIDATED', choice.names)
    default:
      choice satisfies never
      return undefined
  }
}

/** With the synthetic tool every reply is a call: of an allowed tool, or of the synthetic tool. */
function jsonChoice(request: ChatRequest, json: JsonTool): string[] | undefined {
  const choice = request.toolChoice
  if (choice?.mode === 'none') return [json.name]
  if (choice?.mode !== 'allowed') return undefined
  return [...choice.names, json.name]
}

function config(mode: string, allowedFunctionNames?: string[]): JsonObject {
  const functionCallingConfig: JsonObject = { mode }
  if (allowedFunctionNames !== undefined) {
    functionCallingConfig.allowedFunctionNames = allowedFunctionNames
  }
  return { functionCallingConfig }
}

/** What the tools of one request share. */
interface DeclarationContext {
  readonly budget: SchemaBudget
  readonly losses: Losses
}

function declaration(tool: Tool, at: number, { budget, losses }: DeclarationContext): JsonObject {
  const out: JsonObject = { name: tool.name, description: tool.description ?? '' }
  if (tool.custom !== undefined) {
    const kind = tool.custom.format?.type
    if (kind !== undefined && kind !== 'text') {
      throw refused(
        `tools[${at}]`,
        'this upstream cannot enforce the grammar of a custom tool. Leave out the format, use a function ' +
          'tool, or use an OpenAI model.',
        `tools[${at}].custom.format`,
      )
    }
    out.parametersJsonSchema = CUSTOM_SCHEMA
    return out
  }
  budget.path = `tools[${at}].function.parameters`
  const schema =
    tool.parameters === undefined ? {} : fittedSchema(tool.parameters, { budget, losses, path: TOOL_SCHEMA })
  if (hasArguments(schema)) out.parametersJsonSchema = withObjectType(schema)
  return out
}

/** The schema of a tool or of the reply as Gemini takes it; `path` is that of what is lost. */
export function fittedSchema(
  schema: JsonObject,
  { budget, losses, path }: Pick<DeclarationContext, 'budget' | 'losses'> & { readonly path: string },
): JsonObject {
  const current = fitSchema(schema, SCHEMA_RULES.gemini, { losses, budget, path })
  return relaxSchema(current, budget, () => losses.drop(path, 'approximated'))
}

function hasArguments(schema: JsonObject): boolean {
  if (schema.$ref !== undefined || schema.anyOf !== undefined) return true
  if (isObject(schema.properties) && Object.keys(schema.properties).length > 0) return true
  return schema.additionalProperties === true || isObject(schema.additionalProperties)
}

function withObjectType(schema: JsonObject): JsonObject {
  const typed = schema.type !== undefined || schema.$ref !== undefined || schema.anyOf !== undefined
  return typed ? schema : { type: 'object', ...schema }
}

/**
 * The name of the synthetic tool for a JSON reply, for models that do not accept both a response schema and
 * tools; null if the request has no schema or no tools.
 */
export function jsonToolName(request: ChatRequest): string | null {
  if (request.responseFormat?.type !== 'json-schema' || request.tools.length === 0) return null
  const names = new Set(request.tools.map((tool) => tool.name))
  let name = 'json_response'
  while (names.has(name)) name += '_'
  return name
}
