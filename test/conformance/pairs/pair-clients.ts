/**
 * One client of each format, built on its vendor's SDK, with one interface, for tests over all pairs of
 * formats.
 */
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI, type GenerateContentResponse, type Part } from '@google/genai'
import OpenAI from 'openai'
import { objectOf, type JsonObject } from '../../../src/base/json.js'
import type { TestGateway } from '../../helpers/gateway.js'
import { PIXEL } from '../client-scenarios.js'

/** A request of any format. */
export interface PairAsk {
  readonly model: string
  readonly prompt: string
  readonly image?: boolean
  readonly tools?: boolean
  readonly schema?: JsonObject
  readonly maxTokens?: number
  readonly signal?: AbortSignal
}

/** A reply of any format. */
export interface PairReply {
  readonly text: string
  readonly calls: readonly { readonly name: string; readonly args: JsonObject }[]
  readonly end: 'stop' | 'length' | 'tools' | 'other'
  readonly input: number
  readonly output: number
}

/** A client of one format. Whole and streamed calls reject with the SDK's errors. */
export interface PairClient {
  readonly format: 'chat' | 'responses' | 'messages' | 'gemini'
  whole(ask: PairAsk): Promise<PairReply>
  streamed(ask: PairAsk): Promise<PairReply>
}

const WEATHER = {
  type: 'object' as const,
  properties: {
    city: { type: 'string' },
    unit: { type: 'string', enum: ['celsius', 'fahrenheit'] },
  },
  required: ['city', 'unit'],
  additionalProperties: false,
}
const NOTHING = { type: 'object' as const, properties: {}, additionalProperties: false }
const TOOLS = [
  { name: 'get_weather', schema: WEATHER },
  { name: 'get_time', schema: NOTHING },
]

function parsed(json: string): JsonObject {
  return objectOf(JSON.parse(json === '' ? '{}' : json))
}

function options(signal: AbortSignal | undefined): { signal?: AbortSignal } {
  return signal === undefined ? {} : { signal }
}

/** The clients of a gateway. */
export function clientsOf(gateway: TestGateway): readonly PairClient[] {
  const { secret: apiKey, origin, baseUrl: baseURL } = gateway
  const openai = new OpenAI({ apiKey, baseURL, maxRetries: 0 })
  const anthropic = new Anthropic({ apiKey, baseURL: origin, maxRetries: 0 })
  const google = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: origin } })
  return [chatOf(openai), responsesOf(openai), messagesOf(anthropic), geminiOf(google)]
}

function chatOf(openai: OpenAI): PairClient {
  const bodyOf = ({ model, prompt, image, tools, schema, maxTokens }: PairAsk) => ({
    model,
    messages: [
      {
        role: 'user' as const,
        content: [
          { type: 'text' as const, text: prompt },
          ...(image === true
            ? [{ type: 'image_url' as const, image_url: { url: `data:image/png;base64,${PIXEL}` } }]
            : []),
        ],
      },
    ],
    ...(tools === true && {
      tools: TOOLS.map(({ name, schema: parameters }) => ({
        type: 'function' as const,
        function: { name, parameters },
      })),
    }),
    ...(schema !== undefined && {
      response_format: {
        type: 'json_schema' as const,
        json_schema: { name: 'it', schema, strict: true },
      },
    }),
    ...(maxTokens !== undefined && { max_completion_tokens: maxTokens }),
  })
  const reply = ({ choices: [choice], usage }: OpenAI.ChatCompletion): PairReply => ({
    text: choice?.message.content ?? '',
    calls: (choice?.message.tool_calls ?? []).flatMap((call) =>
      call.type === 'function' ? [{ name: call.function.name, args: parsed(call.function.arguments) }] : [],
    ),
    end: endOf(choice?.finish_reason, { tools: 'tool_calls' }),
    input: usage?.prompt_tokens ?? 0,
    output: usage?.completion_tokens ?? 0,
  })
  return {
    format: 'chat',
    whole: async (ask) => reply(await openai.chat.completions.create(bodyOf(ask), options(ask.signal))),
    async streamed(ask) {
      const body = { ...bodyOf(ask), stream_options: { include_usage: true } }
      const stream = openai.chat.completions.stream(body, options(ask.signal))
      const completion = await stream.finalChatCompletion()
      return reply(completion)
    },
  }
}

function responsesOf(openai: OpenAI): PairClient {
  const bodyOf = ({ model, prompt, image, tools, schema, maxTokens }: PairAsk) => ({
    model,
    store: false,
    input: [
      {
        role: 'user' as const,
        content: [
          { type: 'input_text' as const, text: prompt },
          ...(image === true
            ? [
                {
                  type: 'input_image' as const,
                  detail: 'auto' as const,
                  image_url: `data:image/png;base64,${PIXEL}`,
                },
              ]
            : []),
        ],
      },
    ],
    ...(tools === true && {
      tools: TOOLS.map(({ name, schema: parameters }) => ({
        type: 'function' as const,
        name,
        parameters,
        strict: false,
      })),
    }),
    ...(schema !== undefined && {
      text: { format: { type: 'json_schema' as const, name: 'it', schema, strict: true } },
    }),
    ...(maxTokens !== undefined && { max_output_tokens: maxTokens }),
  })
  const reply = (response: OpenAI.Responses.Response): PairReply => {
    const calls = response.output.flatMap((item) =>
      item.type === 'function_call' ? [{ name: item.name, args: parsed(item.arguments) }] : [],
    )
    const isCut = response.incomplete_details?.reason === 'max_output_tokens'
    return {
      text: response.output_text,
      calls,
      end: isCut ? 'length' : calls.length > 0 ? 'tools' : 'stop',
      input: response.usage?.input_tokens ?? 0,
      output: response.usage?.output_tokens ?? 0,
    }
  }
  return {
    format: 'responses',
    whole: async (ask) => reply(await openai.responses.create(bodyOf(ask), options(ask.signal))),
    async streamed(ask) {
      return reply(await openai.responses.stream(bodyOf(ask), options(ask.signal)).finalResponse())
    },
  }
}

function messagesOf(anthropic: Anthropic): PairClient {
  const bodyOf = ({ model, prompt, image, tools, schema, maxTokens }: PairAsk) => ({
    model,
    max_tokens: maxTokens ?? 4000,
    messages: [
      {
        role: 'user' as const,
        content: [
          { type: 'text' as const, text: prompt },
          ...(image === true
            ? [
                {
                  type: 'image' as const,
                  source: {
                    type: 'base64' as const,
                    media_type: 'image/png' as const,
                    data: PIXEL,
                  },
                },
              ]
            : []),
        ],
      },
    ],
    ...(tools === true && {
      tools: TOOLS.map(({ name, schema: inputSchema }) => ({ name, input_schema: inputSchema })),
    }),
    ...(schema !== undefined && {
      output_config: { format: { type: 'json_schema' as const, schema } },
    }),
  })
  const reply = ({ content, stop_reason: reason, usage }: Anthropic.Message): PairReply => ({
    text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
    calls: content.flatMap((block) =>
      block.type === 'tool_use' ? [{ name: block.name, args: objectOf(block.input) }] : [],
    ),
    end: endOf(reason, { stop: 'end_turn', length: 'max_tokens', tools: 'tool_use' }),
    input: usage.input_tokens,
    output: usage.output_tokens,
  })
  return {
    format: 'messages',
    whole: async (ask) => reply(await anthropic.messages.create(bodyOf(ask), options(ask.signal))),
    async streamed(ask) {
      const stream = anthropic.messages.stream(bodyOf(ask), options(ask.signal))
      return reply(await stream.finalMessage())
    },
  }
}

function geminiOf(google: GoogleGenAI): PairClient {
  const paramsOf = ({ model, prompt, image, tools, schema, maxTokens, signal }: PairAsk) => ({
    model,
    contents: [
      {
        role: 'user',
        parts: [
          { text: prompt },
          ...(image === true ? [{ inlineData: { mimeType: 'image/png', data: PIXEL } }] : []),
        ],
      },
    ],
    config: {
      ...(tools === true && {
        tools: [
          {
            functionDeclarations: TOOLS.map(({ name, schema: parametersJsonSchema }) => ({
              name,
              parametersJsonSchema,
            })),
          },
        ],
      }),
      ...(schema !== undefined && {
        responseMimeType: 'application/json',
        responseJsonSchema: schema,
      }),
      ...(maxTokens !== undefined && { maxOutputTokens: maxTokens }),
      ...(signal !== undefined && { abortSignal: signal }),
    },
  })
  const reply = (chunks: readonly GenerateContentResponse[]): PairReply => {
    const parts = chunks.flatMap(({ candidates }): Part[] => candidates?.[0]?.content?.parts ?? [])
    const calls = parts.flatMap(({ functionCall }) =>
      functionCall === undefined
        ? []
        : [{ name: functionCall.name ?? '', args: objectOf(functionCall.args) }],
    )
    const reasons = chunks.map(({ candidates }) => candidates?.[0]?.finishReason)
    const reason = reasons.findLast((each) => each !== undefined)
    const usage = chunks.findLast(({ usageMetadata }) => usageMetadata !== undefined)?.usageMetadata
    const end = endOf(reason, { stop: 'STOP', length: 'MAX_TOKENS' })
    return {
      text: parts.map(({ text = '', thought }) => (thought === true ? '' : text)).join(''),
      calls,
      end: end === 'stop' && calls.length > 0 ? 'tools' : end,
      input: usage?.promptTokenCount ?? 0,
      output: usage?.candidatesTokenCount ?? 0,
    }
  }
  return {
    format: 'gemini',
    whole: async (ask) => reply([await google.models.generateContent(paramsOf(ask))]),
    async streamed(ask) {
      const chunks: GenerateContentResponse[] = []
      for await (const chunk of await google.models.generateContentStream(paramsOf(ask))) {
        chunks.push(chunk)
      }
      return reply(chunks)
    },
  }
}

/** Finish reasons by format; omitted ones are those of chat completions. */
function endOf(
  word: string | null | undefined,
  words: { readonly stop?: string; readonly length?: string; readonly tools?: string },
): PairReply['end'] {
  if (word === (words.stop ?? 'stop')) return 'stop'
  if (word === (words.length ?? 'length')) return 'length'
  return word === words.tools ? 'tools' : 'other'
}
