/**
 * Replies of OpenAI's chat completions, whole and streamed. They follow recorded traffic of 2025–2026.
 */
import { arrayOf, numberOf, objectOf, stringOf, type JsonObject, type JsonValue } from '../base/json.js'
import {
  replyInForm,
  type ModelOutput,
  type ParsedRequest,
  type Reply,
  type ModelInput,
} from './emulated-exchange.js'
import { generateOutput } from './model-output.js'
import { readOpenAi, STREAM, WHOLE, checkOpenAiKey, refuseOpenAi } from './openai-requests.js'
import { seededRandom, lettersOf, type RandomSource } from './seeded-random.js'

/** The reply to `POST /chat/completions`. */
export function openAiReply(request: ParsedRequest): Reply {
  const { modelInput, stream, includeUsage, count, obfuscate } = readOpenAi(request)
  const modelOutput = generateOutput(modelInput, request.seed)
  const random = seededRandom(request.seed)
  const head = {
    id: `chatcmpl-${lettersOf(random, 29)}`,
    created: request.now,
    model: datedModel(modelInput.model),
    tier: servedTier(request.body?.['service_tier']),
    fingerprint: `fp_${random().toString(16).padStart(10, '0').slice(0, 10)}`,
  }
  const counted = { input: modelOutput.usage.input, output: modelOutput.usage.output * count }
  return replyInForm(stream, {
    wholeHeaders: WHOLE,
    body: () => wholeBody(head, modelOutput, { count, random }),
    streamHeaders: STREAM,
    units: () => streamOf(head, modelOutput, { includeUsage, count, obfuscate, random }),
    counted,
  })
}

interface Head {
  readonly id: string
  readonly created: number
  readonly model: string
  readonly tier: string
  readonly fingerprint: string
}

/** The requested service tier, or the default. */
function servedTier(requested: JsonValue | undefined): string {
  return requested === 'flex' || requested === 'priority' ? requested : 'default'
}

function finishOf(modelOutput: ModelOutput): string {
  return modelOutput.end === 'tool' ? 'tool_calls' : modelOutput.end
}

function usageOf(modelOutput: ModelOutput, count: number): JsonObject {
  const { input, output, thinking } = modelOutput.usage
  return {
    prompt_tokens: input,
    completion_tokens: output * count,
    total_tokens: input + output * count,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: thinking * count,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  }
}

function wholeBody(
  head: Head,
  modelOutput: ModelOutput,
  { count, random }: Pick<StreamOptions, 'count' | 'random'>,
): string {
  const choices = Array.from({ length: count }, (_unused, index) => ({
    index,
    message: {
      role: 'assistant',
      content: modelOutput.calls.length > 0 ? null : modelOutput.text,
      ...(modelOutput.calls.length > 0 && {
        tool_calls: modelOutput.calls.map(({ name, args }) => ({
          id: callId(random),
          type: 'function',
          function: { name, arguments: JSON.stringify(args) },
        })),
      }),
      refusal: null,
      annotations: [],
    },
    logprobs: null,
    finish_reason: finishOf(modelOutput),
  }))
  const body = {
    id: head.id,
    object: 'chat.completion',
    created: head.created,
    model: head.model,
    choices,
    usage: usageOf(modelOutput, count),
    service_tier: head.tier,
    system_fingerprint: head.fingerprint,
  }
  return `${JSON.stringify(body, undefined, 2)}\n`
}

function callId(random: RandomSource): string {
  return `call_${lettersOf(random, 24)}`
}

interface StreamOptions {
  readonly includeUsage: boolean
  readonly count: number
  readonly obfuscate: boolean
  readonly random: RandomSource
}

function streamOf(head: Head, modelOutput: ModelOutput, options: StreamOptions): string[] {
  const { includeUsage, count, random } = options
  const start =
    `data: {"id":"${head.id}","object":"chat.completion.chunk","created":${head.created},` +
    `"model":${JSON.stringify(head.model)},"service_tier":"${head.tier}",` +
    `"system_fingerprint":"${head.fingerprint}",`
  const chaff = lettersOf(random, 64)
  let turn = random()
  const end = (): string => {
    turn = (Math.imul(turn, 1664525) + 1013904223) >>> 0
    const padding = options.obfuscate
      ? `,"obfuscation":"${chaff.slice(turn % 31, (turn % 31) + 1 + ((turn >>> 8) % 15))}"`
      : ''
    return `${includeUsage ? ',"usage":null' : ''}${padding}}\n\n`
  }
  const units: string[] = []
  const add = (index: number, delta: string, finish = 'null'): void => {
    units.push(
      `${start}"choices":[{"index":${index},"delta":${delta},"logprobs":null,` +
        `"finish_reason":${finish}}]${end()}`,
    )
  }
  // Choices are interleaved: one chunk of each in turn.
  const choices = Array.from({ length: count }, () => deltasOf(modelOutput, random))
  for (const at of (choices[0] ?? []).keys()) {
    for (const [index, deltas] of choices.entries()) {
      add(index, deltas[at] ?? '{}')
    }
  }
  for (const index of choices.keys()) {
    add(index, '{}', JSON.stringify(finishOf(modelOutput)))
  }
  if (includeUsage) {
    const padding = options.obfuscate ? `,"obfuscation":""` : ''
    units.push(`${start}"choices":[],"usage":${JSON.stringify(usageOf(modelOutput, count))}${padding}}\n\n`)
  }
  units.push('data: [DONE]\n\n')
  return units
}

/** The deltas of one choice, without its end. */
function deltasOf(modelOutput: ModelOutput, random: RandomSource): string[] {
  const deltas: string[] = []
  if (modelOutput.calls.length === 0) {
    deltas.push('{"role":"assistant","content":"","refusal":null}')
    deltas.push(...modelOutput.chunks.map((chunk) => `{"content":${JSON.stringify(chunk)}}`))
  }
  for (const [at, { name, args }] of modelOutput.calls.entries()) {
    const header = JSON.stringify([
      { index: at, id: callId(random), type: 'function', function: { name, arguments: '' } },
    ])
    // The first call shares its chunk with the role; later ones have chunks of their own.
    deltas.push(
      at === 0
        ? `{"role":"assistant","content":null,"tool_calls":${header},"refusal":null}`
        : `{"tool_calls":${header}}`,
    )
    for (const chunk of JSON.stringify(args).match(/[\s\S]{1,6}/gu) ?? []) {
      deltas.push(`{"tool_calls":[{"index":${at},"function":{"arguments":${JSON.stringify(chunk)}}}]}`)
    }
  }
  return deltas
}

const DATES: Record<string, string> = {
  'gpt-4': 'gpt-4-0613',
  'gpt-4o': 'gpt-4o-2024-08-06',
  'gpt-4o-mini': 'gpt-4o-mini-2024-07-18',
  'gpt-4.1': 'gpt-4.1-2025-04-14',
  'gpt-4.1-mini': 'gpt-4.1-mini-2025-04-14',
  'gpt-4.1-nano': 'gpt-4.1-nano-2025-04-14',
  'gpt-3.5-turbo': 'gpt-3.5-turbo-0125',
  'gpt-5': 'gpt-5-2025-08-07',
  'gpt-5-mini': 'gpt-5-mini-2025-08-07',
  'gpt-5-nano': 'gpt-5-nano-2025-08-07',
  'gpt-5.2': 'gpt-5.2-2025-12-11',
  'gpt-5.4': 'gpt-5.4-2026-03-05',
  'gpt-5.5': 'gpt-5.5-2026-04-23',
  'gpt-5.6': 'gpt-5.6-sol',
  'o3-mini': 'o3-mini-2025-01-31',
  'o4-mini': 'o4-mini-2025-04-16',
}

/** The dated model id in OpenAI's reply to an alias. */
export function datedModel(model: string): string {
  return DATES[model] ?? model
}

/** OpenAI's models with this endpoint; other servers of the format offer it for all models. */
const FAMILIES = /^(?:gpt-3\.5-turbo-instruct|davinci-002|babbage-002)/

/** The reply to `POST /completions`. */
export function completionsReply(request: ParsedRequest): Reply {
  checkOpenAiKey(request)
  const body = request.body ?? {}
  const model = stringOf(body.model) ?? ''
  if (!request.anyModel && !FAMILIES.test(model)) {
    const message =
      'This is a chat model and not supported in the v1/completions endpoint. Did you mean to use v1/chat/completions?'
    refuseOpenAi(404, message, { param: 'model' })
  }
  const prompts = promptsOf(body.prompt)
  const answers = prompts.map((prompt) => generateOutput(modelInputOf(request, model, prompt), request.seed))
  const id = `cmpl-${lettersOf(seededRandom(request.seed), 29)}`
  const head = { id, object: 'text_completion', created: request.now, model }
  const counted = {
    input: answers.reduce((sum, { usage }) => sum + usage.input, 0),
    output: answers.reduce((sum, { usage }) => sum + usage.output, 0),
  }
  const usage = {
    prompt_tokens: counted.input,
    completion_tokens: counted.output,
    total_tokens: counted.input + counted.output,
  }
  const echo = (at: number): string => (body.echo === true ? (prompts[at] ?? '') : '')
  const choices = (): object[] =>
    answers.map((modelOutput, index) => choiceOf(index, echo(index) + modelOutput.text, modelOutput))
  const includeUsage = objectOf(body.stream_options).include_usage === true
  const frame = (data: object): string => `data: ${JSON.stringify({ ...head, ...data })}\n\n`
  const frames = (): string[] =>
    answers.flatMap((modelOutput, index) => [
      ...(echo(index) === '' ? [] : [frame({ choices: [choiceOf(index, echo(index), null)] })]),
      ...modelOutput.chunks.map((chunk) => frame({ choices: [choiceOf(index, chunk, null)] })),
      frame({ choices: [choiceOf(index, '', modelOutput)] }),
    ])
  return replyInForm(body.stream === true, {
    wholeHeaders: WHOLE,
    body: () => JSON.stringify({ ...head, choices: choices(), usage }),
    streamHeaders: STREAM,
    units: () => [...frames(), ...(includeUsage ? [frame({ choices: [], usage })] : []), 'data: [DONE]\n\n'],
    counted,
  })
}

function choiceOf(index: number, text: string, modelOutput: ModelOutput | null): object {
  return {
    text,
    index,
    logprobs: null,
    finish_reason: modelOutput === null ? null : modelOutput.end,
  }
}

/** A list of token ids is one prompt. */
function promptsOf(prompt: unknown): string[] {
  if (typeof prompt === 'string') return [prompt]
  const items = arrayOf(prompt)
  const isTokens = items.length > 0 && items.every((item) => typeof item === 'number')
  return isTokens ? [String(items)] : items.map(String)
}

function modelInputOf({ body = {} }: ParsedRequest, model: string, prompt: string): ModelInput {
  const stops = typeof body.stop === 'string' ? [body.stop] : arrayOf(body.stop)
  return {
    model,
    prompt,
    results: [],
    tools: [],
    choice: 'none',
    parallel: false,
    images: [],
    json: undefined,
    stop: stops.filter((stop) => typeof stop === 'string'),
    limit: numberOf(body.max_tokens) ?? 16,
    thinking: false,
    inputChars: prompt.length,
  }
}
