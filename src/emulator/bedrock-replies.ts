/**
 * Replies of Bedrock: Converse, InvokeModel for Claude, their streams, and token counts. They follow recorded
 * traffic of 2025–2026.
 */
import { objectOf, stringOf, type JsonObject } from '../base/json.js'
import { anthropicReply } from './anthropic-replies.js'
import { awsEvent } from './aws-event-stream.js'
import {
  awsChunk,
  bedrockPath,
  checkBedrockKey,
  checkModel,
  isClaude,
  readConverse,
  refuseBedrock,
  STREAM,
  WHOLE,
  type BedrockAction,
} from './bedrock-requests.js'
import { bedrockEmbeddings } from './embeddings.js'
import {
  Refusal,
  replyInForm,
  wholeReply,
  type ModelOutput,
  type ParsedRequest,
  type Reply,
} from './emulated-exchange.js'
import { generateOutput } from './model-output.js'
import { lettersOf, seededRandom, type RandomSource } from './seeded-random.js'
import { signState } from './state-signatures.js'

/**
 * Bedrock answers so, with status 200, to a path that it does not have, such as one with a bare slash in the
 * id of the model.
 */
const UNKNOWN_OPERATION = JSON.stringify({
  Output: { __type: 'com.amazon.coral.service#UnknownOperationException' },
  Version: '1.0',
})

/** The reply to `POST /model/{model}/{action}`. */
export function bedrockReply(request: ParsedRequest): Reply {
  const target = bedrockPath(request.path)
  if (target === null) return wholeReply(WHOLE, UNKNOWN_OPERATION)
  checkBedrockKey(request)
  const { model, action } = target
  const isCount = action === 'count-tokens'
  checkModel(request, model, isCount)
  const { body } = request
  if (body === undefined) refuseBedrock(400, 'Unexpected character in the JSON input.')
  if (isCount) return countReply(request, body, model)
  return action.startsWith('converse')
    ? converseReply(request, body, { model, action })
    : invokeReply(request, body, { model, action })
}

/** The model of a request, and what is requested of it. */
interface Target {
  readonly model: string
  readonly action: BedrockAction
}

function countReply(request: ParsedRequest, body: JsonObject, model: string): Reply {
  const { converse, invokeModel } = objectOf(body.input)
  const encoded = stringOf(objectOf(invokeModel).body)
  if (encoded !== undefined) {
    const own = JSON.parse(Buffer.from(encoded, 'base64').toString()) as JsonObject
    const { counted } = invokeReply(request, own, { model, action: 'invoke' })
    return wholeReply(WHOLE, JSON.stringify({ inputTokens: counted?.input ?? 0 }))
  }
  const { usage } = generateOutput(readConverse(objectOf(converse), model), request.seed)
  return wholeReply(WHOLE, JSON.stringify({ inputTokens: usage.input }))
}

/** The versions of Anthropic's API by those of the body. */
const VERSIONS: Readonly<Record<string, string>> = {
  'bedrock-2023-05-31': '2023-06-01',
  '2023-06-01': '2023-06-01',
  '2026-10-21': '2026-10-21',
}

/** Claude behind InvokeModel: the Messages API, without the members that the path decides. */
function invokeReply(request: ParsedRequest, body: JsonObject, { model, action }: Target): Reply {
  if (/embed/.test(model)) return bedrockEmbeddings(body, model)
  if (!isClaude(model)) {
    refuseBedrock(400, 'emulator: InvokeModel has models of Anthropic and embedding models.')
  }
  const { anthropic_version: version, anthropic_beta: betas, ...rest } = body
  for (const name of ['model', 'stream']) {
    if (rest[name] !== undefined) {
      refuseBedrock(
        400,
        `Malformed input request: #: extraneous key [${name}] is not permitted, please reformat your input and try again.`,
      )
    }
  }
  const known = VERSIONS[stringOf(version) ?? '']
  if (known === undefined) refuseBedrock(400, 'anthropic_version: Field required')
  const stream = action === 'invoke-with-response-stream'
  const own: ParsedRequest = {
    ...request,
    provider: 'anthropic',
    path: '/messages',
    headers: {
      'x-api-key': 'checked',
      'anthropic-version': known,
      ...(Array.isArray(betas) && { 'anthropic-beta': betas.map(String).join(',') }),
    },
    body: { ...rest, model: claudeOf(model), stream },
  }
  const reply = withErrorsOfBedrock(() => anthropicReply(own))
  const { input = 0, output = 0 } = reply.counted ?? {}
  const counts = {
    'x-amzn-bedrock-input-token-count': String(input),
    'x-amzn-bedrock-output-token-count': String(output),
    'x-amzn-bedrock-invocation-latency': '1',
  }
  const whole = (): Reply => ({ ...(reply.whole?.() ?? reply), headers: { ...WHOLE, ...counts } })
  if (!stream) return whole()
  const units = reply.units.flatMap((unit) => chunkOf(String(unit), { input, output }))
  return { ...reply, headers: STREAM, units, whole }
}

/** The reply; a refusal gets the form of Bedrock's errors. */
function withErrorsOfBedrock(reply: () => Reply): Reply {
  try {
    return reply()
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    const parsed: unknown = JSON.parse(String(error.reply.units[0]))
    refuseBedrock(error.reply.status, stringOf(objectOf(objectOf(parsed).error).message) ?? '')
  }
}

/** Anthropic's own id of a model: `claude-sonnet-4-5` for `us.anthropic.claude-sonnet-4-5-20250929-v1:0`. */
function claudeOf(model: string): string {
  return model.replace(/^.*anthropic\./, '').replace(/-v\d+(?::\d+)?$/, '')
}

/** The event of a stream of Messages as a chunk; Bedrock sends no keep-alives. */
function chunkOf(
  event: string,
  { input, output }: { readonly input: number; readonly output: number },
): Buffer[] {
  const json = /^data: ?(.*)$/m.exec(event)?.[1] ?? ''
  if (json.startsWith('{"type": "ping"')) return []
  if (!json.startsWith('{"type":"message_stop"')) return [awsChunk(json)]
  const metrics = {
    inputTokenCount: input,
    outputTokenCount: output,
    invocationLatency: 2,
    firstByteLatency: 1,
  }
  const end = { type: 'message_stop', 'amazon-bedrock-invocationMetrics': metrics }
  return [awsChunk(JSON.stringify(end))]
}

function converseReply(request: ParsedRequest, body: JsonObject, { model, action }: Target): Reply {
  const output = generateOutput(readConverse(body, model), request.seed)
  const random = seededRandom(request.seed)
  const reply = converseOutput(output, { model, random, body })
  const streamed = replyInForm(action === 'converse-stream', {
    wholeHeaders: WHOLE,
    body: () => JSON.stringify(wholeBody(reply)),
    streamHeaders: STREAM,
    units: () => streamOf(reply, random),
    counted: output.usage,
  })
  // `metadata` follows the terminator.
  return streamed.stream ? { ...streamed, terminators: 2 } : streamed
}

/** A content block: whole, its start in a stream if it has one, and its deltas. */
interface Block {
  readonly whole: JsonObject
  readonly start: JsonObject | null
  readonly deltas: readonly JsonObject[]
}

/** A reply before it is encoded. */
interface ConverseOutput {
  readonly blocks: readonly Block[]
  readonly end: JsonObject
  readonly usage: JsonObject
}

function converseOutput(
  output: ModelOutput,
  {
    model,
    random,
    body,
  }: { readonly model: string; readonly random: RandomSource; readonly body: JsonObject },
): ConverseOutput {
  const { usage, end, stopped } = output
  const reason = end === 'tool' ? 'tool_use' : end === 'length' ? 'max_tokens' : 'end_turn'
  const paths = JSON.stringify(body.additionalModelResponseFieldPaths ?? [])
  const fields = paths.includes('/stop_sequence') && stopped !== undefined
  return {
    blocks: blocksOf(output, model, random),
    end: {
      stopReason: stopped === undefined ? reason : 'stop_sequence',
      ...(fields ? { additionalModelResponseFields: { stop_sequence: stopped } } : {}),
    },
    usage: {
      inputTokens: usage.input,
      outputTokens: usage.output,
      totalTokens: usage.input + usage.output,
      cacheReadInputTokens: 0,
      cacheWriteInputTokens: 0,
    },
  }
}

function blocksOf(
  { thinking, text, chunks, calls }: ModelOutput,
  model: string,
  random: RandomSource,
): Block[] {
  const blocks: Block[] = []
  if (thinking !== '') {
    const signature = isClaude(model) ? signState([thinking, ''], random, 152) : undefined
    const parts = thinking.match(/[\s\S]{1,24}/gu) ?? []
    const signed = signature === undefined ? [] : [{ reasoningContent: { signature } }]
    blocks.push({
      whole: {
        reasoningContent: { reasoningText: { text: thinking, ...(signature && { signature }) } },
      },
      start: null,
      deltas: [...parts.map((part) => ({ reasoningContent: { text: part } })), ...signed],
    })
  }
  if (text !== '') {
    const deltas = chunks.map((chunk) => ({ text: chunk }))
    blocks.push({ whole: { text }, start: null, deltas })
  }
  for (const { name, args } of calls) {
    const head = { toolUseId: `tooluse_${lettersOf(random, 22)}`, name }
    const json = Object.keys(args).length === 0 ? '' : JSON.stringify(args)
    blocks.push({
      whole: { toolUse: { ...head, input: args } },
      start: { toolUse: head },
      deltas: (json.match(/[\s\S]{1,9}/gu) ?? []).map((input) => ({ toolUse: { input } })),
    })
  }
  return blocks
}

function wholeBody({ blocks, end, usage }: ConverseOutput): JsonObject {
  const message = { role: 'assistant', content: blocks.map(({ whole }) => whole) }
  return { output: { message }, ...end, usage, metrics: { latencyMs: 1 } }
}

const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'

function streamOf({ blocks, end, usage }: ConverseOutput, random: RandomSource): Buffer[] {
  // Bedrock pads the payload of each event.
  const event = (name: string, payload: JsonObject): Buffer =>
    awsEvent(name, { ...payload, p: LETTERS.slice(0, 1 + (random() % LETTERS.length)) })
  const units = [event('messageStart', { role: 'assistant' })]
  for (const [contentBlockIndex, { start, deltas }] of blocks.entries()) {
    if (start !== null) units.push(event('contentBlockStart', { contentBlockIndex, start }))
    for (const delta of deltas) {
      units.push(event('contentBlockDelta', { contentBlockIndex, delta }))
    }
    units.push(event('contentBlockStop', { contentBlockIndex }))
  }
  units.push(event('messageStop', end), event('metadata', { usage, metrics: { latencyMs: 1 } }))
  return units
}
