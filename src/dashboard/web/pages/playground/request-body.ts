/**
 * A request of the playground in each client format: messages with files and tools, tool definitions, and the
 * schema of the reply. Pure.
 */
import { inFormat, type Format, type FormattedRequest, type Target } from '../../format/request-formats.js'
import { list } from '../../api/chat.js'

/** A file of a message. */
export interface Attachment {
  readonly name: string
  readonly kind: 'image' | 'pdf' | 'text'
  /** The media type. */
  readonly type: string
  /** Base64, or the text itself; null: too large to survive a reload, and not sent again. */
  readonly data: string | null
}

/** A tool that the model may call. */
export interface Tool {
  readonly name: string
  readonly description?: string
  /** A JSON schema. */
  readonly parameters: object
}

/** A call of a tool by the model. */
export interface ToolCall {
  /** Its place in the reply. */
  readonly at: number
  readonly id: string
  readonly name: string
  /** JSON. */
  readonly args: string
}

/** The user's answer to a call. */
export interface ToolResult {
  readonly call: ToolCall
  readonly content: string
}

/** A message of a conversation. */
export type Message =
  | { readonly role: 'user'; readonly text: string; readonly files: readonly Attachment[] }
  | { readonly role: 'assistant'; readonly text: string; readonly calls: readonly ToolCall[] }
  | { readonly role: 'tool'; readonly results: readonly ToolResult[] }

/** A request, independent of the format. */
export interface PlaygroundRequest {
  readonly system: string
  readonly messages: readonly Message[]
  readonly temperature: number | undefined
  readonly maxTokens: number | undefined
  readonly tools: readonly Tool[]
  /** The JSON schema of the reply; null: free text. */
  readonly schema: object | null
}

/** Formats a request. */
export function requestIn(format: Format, target: Target, request: PlaygroundRequest): FormattedRequest {
  const { system, temperature, maxTokens } = request
  const first = system === '' ? [] : [{ role: 'system', content: system } as const]
  const plain = inFormat(format, target, { messages: first, temperature, maxTokens })
  return { ...plain, body: { ...plain.body, ...BODIES[format](request, plain.body) } }
}

type Body = Readonly<Record<string, unknown>>

const BODIES: Readonly<Record<Format, (request: PlaygroundRequest, plain: Body) => Body>> = {
  chat: ({ messages, tools, schema }, plain) => ({
    messages: [...list(plain['messages']), ...messages.flatMap(chatMessages)],
    ...optional('tools', tools, (tool) => ({ type: 'function', function: tool })),
    ...(schema === null
      ? {}
      : { response_format: { type: 'json_schema', json_schema: { name: 'reply', schema } } }),
  }),
  responses: ({ messages, tools, schema }) => ({
    input: messages.flatMap(responsesItems),
    ...optional('tools', tools, (tool) => ({ type: 'function', ...tool, strict: false })),
    ...(schema === null
      ? {}
      : { text: { format: { type: 'json_schema', name: 'reply', schema, strict: false } } }),
  }),
  messages: ({ messages, tools, schema }) => ({
    messages: messages.map(anthropicMessage),
    ...optional('tools', tools, ({ parameters, ...tool }) => {
      return { ...tool, input_schema: parameters }
    }),
    ...(schema === null ? {} : { output_config: { format: { type: 'json_schema', schema } } }),
  }),
  gemini: ({ messages, tools, schema }, { generationConfig }) => ({
    contents: messages.map(geminiContent),
    ...(tools.length === 0
      ? {}
      : {
          tools: [
            {
              functionDeclarations: tools.map(({ parameters, ...tool }) => {
                return { ...tool, parametersJsonSchema: parameters }
              }),
            },
          ],
        }),
    ...(schema === null
      ? {}
      : {
          generationConfig: {
            ...(generationConfig as object | undefined),
            ...{ responseMimeType: 'application/json', responseJsonSchema: schema },
          },
        }),
  }),
}

function optional(
  name: string,
  tools: readonly Tool[],
  encode: (tool: Tool) => object,
): Record<string, object[]> {
  return tools.length === 0 ? {} : { [name]: tools.map(encode) }
}

/** The text with the text files below it, and the other files that are still there. */
function contentOf({ text, files }: Extract<Message, { role: 'user' }>): {
  readonly text: string
  readonly media: readonly (Attachment & { readonly data: string })[]
} {
  const kept = files.flatMap((file) => (file.data === null ? [] : [{ ...file, data: file.data }]))
  const texts = kept.filter(({ kind }) => kind === 'text')
  const blocks = texts.map(({ name, data }) => `${name}:\n\n\`\`\`\n${data}\n\`\`\``)
  return {
    text: [...(text === '' ? [] : [text]), ...blocks].join('\n\n'),
    media: kept.filter(({ kind }) => kind !== 'text'),
  }
}

function urlOf({ type, data }: { readonly type: string; readonly data: string }): string {
  return `data:${type};base64,${data}`
}

/** JSON of a model, which may be wrong. */
function parsed(args: string): unknown {
  try {
    return JSON.parse(args === '' ? '{}' : args)
  } catch {
    return {}
  }
}

function chatMessages(message: Message): object[] {
  if (message.role === 'tool') {
    return message.results.map(({ call, content }) => {
      return { role: 'tool', tool_call_id: call.id, content }
    })
  }
  if (message.role === 'assistant') {
    const { text, calls } = message
    if (calls.length === 0) return [{ role: 'assistant', content: text }]
    const tool_calls = calls.map(({ id, name, args }) => {
      return { id, type: 'function', function: { name, arguments: args } }
    })
    return [{ role: 'assistant', content: text === '' ? null : text, tool_calls }]
  }
  const { text, media } = contentOf(message)
  if (media.length === 0) return [{ role: 'user', content: text }]
  const parts = media.map((file) =>
    file.kind === 'image'
      ? { type: 'image_url', image_url: { url: urlOf(file) } }
      : { type: 'file', file: { filename: file.name, file_data: urlOf(file) } },
  )
  return [{ role: 'user', content: [...(text === '' ? [] : [{ type: 'text', text }]), ...parts] }]
}

function responsesItems(message: Message): object[] {
  if (message.role === 'tool') {
    return message.results.map(({ call, content }) => {
      return { type: 'function_call_output', call_id: call.id, output: content }
    })
  }
  if (message.role === 'assistant') {
    const { text, calls } = message
    const written = text === '' ? [] : [{ role: 'assistant', content: text }]
    const called = calls.map(({ id, name, args }) => {
      return { type: 'function_call', call_id: id, name, arguments: args }
    })
    return [...written, ...called]
  }
  const { text, media } = contentOf(message)
  if (media.length === 0) return [{ role: 'user', content: text }]
  const parts = media.map((file) =>
    file.kind === 'image'
      ? { type: 'input_image', image_url: urlOf(file) }
      : { type: 'input_file', filename: file.name, file_data: urlOf(file) },
  )
  const first = text === '' ? [] : [{ type: 'input_text', text }]
  return [{ role: 'user', content: [...first, ...parts] }]
}

function anthropicMessage(message: Message): object {
  if (message.role === 'tool') {
    const content = message.results.map(({ call, content: result }) => {
      return { type: 'tool_result', tool_use_id: call.id, content: result }
    })
    return { role: 'user', content }
  }
  if (message.role === 'assistant') {
    const { text, calls } = message
    if (calls.length === 0) return { role: 'assistant', content: text }
    const used = calls.map(({ id, name, args }) => {
      return { type: 'tool_use', id, name, input: parsed(args) }
    })
    const written = text === '' ? [] : [{ type: 'text', text }]
    return { role: 'assistant', content: [...written, ...used] }
  }
  const { text, media } = contentOf(message)
  if (media.length === 0) return { role: 'user', content: text }
  const parts = media.map(({ kind, name, type, data }) => {
    const source = { type: 'base64', media_type: type, data }
    return kind === 'image' ? { type: 'image', source } : { type: 'document', source, title: name }
  })
  return { role: 'user', content: [...parts, ...(text === '' ? [] : [{ type: 'text', text }])] }
}

function geminiContent(message: Message): object {
  if (message.role === 'tool') {
    const parts = message.results.map(({ call: { id, name }, content }) => {
      return { functionResponse: { id, name, response: { result: content } } }
    })
    return { role: 'user', parts }
  }
  if (message.role === 'assistant') {
    const { text, calls } = message
    const written = text === '' ? [] : [{ text }]
    const called = calls.map(({ id, name, args }) => ({
      functionCall: { id, name, args: parsed(args) },
    }))
    return { role: 'model', parts: [...written, ...called] }
  }
  const { text, media } = contentOf(message)
  const written = text === '' && media.length > 0 ? [] : [{ text }]
  const parts = media.map(({ type, data }) => ({ inlineData: { mimeType: type, data } }))
  return { role: 'user', parts: [...written, ...parts] }
}
