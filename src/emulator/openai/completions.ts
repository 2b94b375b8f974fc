/**
 * Replies of OpenAI's legacy completions, whole and streamed.
 */
import { arrayOf, numberOf, objectOf, stringOf } from '../../chat/json.js'
import { generateOutput } from '../model-output.js'
import { replyInForm } from '../emulated-exchange.js'
import type { ModelOutput, ModelInput, ParsedRequest, Reply } from '../emulated-exchange.js'
import { checkOpenAiKey } from './decode-chat-request.js'
import { refuseOpenAi, STREAM, WHOLE } from './errors.js'
import { seededRandom, lettersOf } from '../seeded-random.js'

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
  const prompts = typeof body.prompt === 'string' ? [body.prompt] : arrayOf(body.prompt).map(String)
  const answers = prompts.map((prompt) =>
    generateOutput(modelInputOf(request, model, prompt), request.seed),
  )
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
    answers.map((modelOutput, index) =>
      choiceOf(index, echo(index) + modelOutput.text, modelOutput),
    )
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
    units: () => [
      ...frames(),
      ...(includeUsage ? [frame({ choices: [], usage })] : []),
      'data: [DONE]\n\n',
    ],
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
