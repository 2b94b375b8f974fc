/**
 * A naive reader of recordings: text, calls, finish reason and usage in the terms of a chat completion. It
 * shares no code with the dialects, since their results are compared with it.
 */
import { arrayOf, objectOf, stringOf, type JsonObject } from '../../../src/base/json.js'
import { fixtures, type Recording } from '../../helpers/fixtures.js'

/** The wire format of a recording's reply. */
export type Format = 'openai' | 'responses' | 'anthropic' | 'gemini'

/** A recording of one of the formats. */
export interface Case {
  readonly format: Format
  /** `provider/name`. */
  readonly label: string
  readonly recording: Recording
}

/** Counts as a chat completion names them; a detail that was not reported is absent. */
export interface Counts {
  prompt: number
  completion: number
  cached?: number
  written?: number
  reasoning?: number
}

/** A reply of any format. */
export interface Gist {
  text: string
  thinking: string
  calls: { name: string; args: unknown }[]
  /** Null if the reply is a failure despite its status. */
  finish: string | null
  /** Null if none was reported. */
  usage: Counts | null
}

const SOURCES: readonly (readonly [provider: string, api: string, format: Format])[] = [
  ['openai', 'chat.completions', 'openai'],
  ['azure', 'chat.completions', 'openai'],
  ['groq', 'chat.completions', 'openai'],
  ['mistral', 'chat.completions', 'openai'],
  ['deepseek', 'chat.completions', 'openai'],
  ['openrouter', 'chat.completions', 'openai'],
  ['gemini', 'chat.completions', 'openai'],
  ['openai', 'responses', 'responses'],
  ['azure', 'responses', 'responses'],
  ['deepseek', 'responses', 'responses'],
  ['openrouter', 'responses', 'responses'],
  ['anthropic', 'messages', 'anthropic'],
  ['gemini', 'generateContent', 'gemini'],
  ['gemini', 'streamGenerateContent', 'gemini'],
  ['vertex-gemini', 'generateContent', 'gemini'],
  ['vertex-gemini', 'streamGenerateContent', 'gemini'],
]

/** One file with the streams of four turns, one behind the other: no provider replies like this. */
const SEVERAL_REPLIES = 'azure/vercel-ai__azure-reasoning-encrypted-content.1.chunks'

/** Every recording of a chat in one of the formats. */
export function cases(): Case[] {
  return SOURCES.flatMap(([provider, api, format]) =>
    fixtures({ provider, api }).map((recording) => {
      return { format, label: `${provider}/${recording.name}`, recording }
    }),
  ).filter(({ label }) => label !== SEVERAL_REPLIES)
}

/** The recording's reply; only for status 200. */
export function gistOf({ format, recording }: Case): Gist {
  const objects = objectsOf(recording.response_body)
  if (format === 'openai') return fromOpenAi(objects)
  if (format === 'responses') return fromResponses(objects)
  return format === 'anthropic' ? fromAnthropic(objects) : fromGemini(objects)
}

/** The features of a reply, for the counts of the conformance page. */
export function featuresOf({ text, thinking, calls, finish, usage }: Gist): string[] {
  const features: (readonly [string, boolean])[] = [
    ['text', text !== ''],
    ['thoughts', thinking !== ''],
    ['calls', calls.length > 0],
    ['several calls', calls.length > 1],
    ['cut at the limit', finish === 'length'],
    ['filtered', finish === 'content_filter'],
    ['counts', usage !== null],
    ['cache reads', (usage?.cached ?? 0) > 0],
    ['cache writes', (usage?.written ?? 0) > 0],
    ['reasoning counts', (usage?.reasoning ?? 0) > 0],
  ]
  return features.filter(([, has]) => has).map(([name]) => name)
}

/** The JSON objects of a body: one, an array of them, or the data of events. */
export function objectsOf(body: string): JsonObject[] {
  const text = body.trim()
  if (text.startsWith('{')) return [objectOf(JSON.parse(text))]
  if (text.startsWith('[')) return arrayOf(JSON.parse(text)).map(objectOf)
  return text
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5).trim())
    .filter((data) => data !== '[DONE]' && data !== '')
    .map((data) => objectOf(JSON.parse(data)))
}

function empty(): Gist {
  return { text: '', thinking: '', calls: [], finish: null, usage: null }
}

function count(value: unknown): number {
  return typeof value === 'number' ? value : 0
}

function detail(name: keyof Counts, value: unknown): Partial<Counts> {
  return typeof value === 'number' ? { [name]: value } : {}
}

function argsOf(text: string): unknown {
  if (text.trim() === '') return {}
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Chat completions: whole replies and chunks alike; only the first choice. */
export function fromOpenAi(objects: readonly JsonObject[]): Gist {
  const gist = empty()
  const calls: ({ name: string; json: string } | undefined)[] = []
  for (const object of objects) {
    const usage = object['usage'] ?? objectOf(object['x_groq'])['usage']
    if (usage !== undefined && usage !== null) gist.usage = openAiCounts(objectOf(usage))
    const choice = arrayOf(object['choices']).map(objectOf).find(isFirst)
    const message = objectOf(choice?.['delta'] ?? choice?.['message'])
    gist.text += openAiText(message['content'])
    gist.thinking += stringOf(message['reasoning_content'] ?? message['reasoning']) ?? ''
    gist.thinking += openAiThinking(message['content'])
    for (const [at, call] of arrayOf(message['tool_calls']).map(objectOf).entries()) {
      const made = objectOf(call['function'] ?? call['custom'])
      const place = typeof call['index'] === 'number' ? call['index'] : at
      const slot = (calls[place] ??= { name: '', json: '' })
      slot.name += stringOf(made['name']) ?? ''
      slot.json += stringOf(made['arguments'] ?? made['input']) ?? ''
    }
    const legacy = objectOf(message['function_call'])
    if (Object.keys(legacy).length > 0) {
      const slot = (calls[0] ??= { name: '', json: '' })
      slot.name += stringOf(legacy['name']) ?? ''
      slot.json += stringOf(legacy['arguments']) ?? ''
    }
    gist.finish = stringOf(choice?.['finish_reason']) ?? gist.finish
    if (object['error'] !== undefined) return { ...gist, finish: null }
  }
  gist.calls = calls.map((call) => ({ name: call?.name ?? '', args: argsOf(call?.json ?? '') }))
  return gist
}

function isFirst(choice: JsonObject): boolean {
  return (choice['index'] ?? 0) === 0
}

/** Mistral writes an array of parts if it thinks. */
function openAiText(content: unknown): string {
  if (typeof content === 'string') return content
  return arrayOf(content)
    .map((part) => stringOf(objectOf(part)['text']) ?? '')
    .join('')
}

function openAiThinking(content: unknown): string {
  return arrayOf(content)
    .flatMap((part) => arrayOf(objectOf(part)['thinking']))
    .map((part) => stringOf(objectOf(part)['text']) ?? '')
    .join('')
}

function openAiCounts(usage: JsonObject): Counts {
  const prompt = objectOf(usage['prompt_tokens_details'])
  const cached = prompt['cached_tokens'] ?? usage['prompt_cache_hit_tokens'] ?? usage['num_cached_tokens']
  return {
    prompt: count(usage['prompt_tokens']),
    // Some vendors count reasoning in the total only.
    completion: Math.max(
      count(usage['completion_tokens']),
      count(usage['total_tokens']) - count(usage['prompt_tokens']),
    ),
    ...detail('cached', cached),
    ...detail('written', prompt['cache_write_tokens']),
    ...detail('reasoning', objectOf(usage['completion_tokens_details'])['reasoning_tokens']),
  }
}

/** Responses: the whole one, or the one that a stream's last event repeats. */
export function fromResponses(objects: readonly JsonObject[]): Gist {
  const gist = empty()
  const last = objects.at(-1) ?? {}
  const response = objectOf(last['response'] ?? last)
  for (const item of arrayOf(response['output']).map(objectOf)) {
    const content = arrayOf(item['content']).map(objectOf)
    if (item['type'] === 'message') gist.text += content.map((part) => textOf(part)).join('')
    if (item['type'] === 'reasoning') {
      // The parts of one item are paragraphs.
      const parts = [...arrayOf(item['summary']).map(objectOf), ...content].map(textOf)
      gist.thinking += parts.filter((text) => text !== '').join('\n\n')
    }
    if (item['type'] === 'function_call') {
      const json = stringOf(item['arguments']) ?? ''
      gist.calls.push({ name: stringOf(item['name']) ?? '', args: argsOf(json) })
    }
  }
  gist.finish = RESPONSES_FINISH[stringOf(response['status']) ?? ''] ?? null
  const why = objectOf(response['incomplete_details'])['reason']
  if (gist.finish === 'length' && why === 'content_filter') gist.finish = why
  if (gist.finish === 'stop' && gist.calls.length > 0) gist.finish = 'tool_calls'
  gist.usage = responsesCounts(objectOf(response['usage']))
  return gist
}

/** An unfinished response is not a reply; some recordings have `complete`. */
const RESPONSES_FINISH: Readonly<Record<string, string>> = {
  completed: 'stop',
  complete: 'stop',
  incomplete: 'length',
}

function textOf(part: JsonObject): string {
  return stringOf(part['text']) ?? ''
}

function responsesCounts(usage: JsonObject): Counts | null {
  if (Object.keys(usage).length === 0) return null
  const input = objectOf(usage['input_tokens_details'])
  return {
    prompt: count(usage['input_tokens']),
    completion: count(usage['output_tokens']),
    ...detail('cached', input['cached_tokens']),
    ...detail('written', input['cache_write_tokens']),
    ...detail('reasoning', objectOf(usage['output_tokens_details'])['reasoning_tokens']),
  }
}

const ANTHROPIC_FINISH: Readonly<Record<string, string>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  tool_use: 'tool_calls',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  refusal: 'content_filter',
  pause_turn: 'stop',
}

export function fromAnthropic(objects: readonly JsonObject[]): Gist {
  const [first] = objects
  return first?.['type'] === 'message' ? anthropicWhole(first) : anthropicStream(objects)
}

function anthropicWhole(message: JsonObject): Gist {
  const gist = empty()
  for (const block of arrayOf(message['content']).map(objectOf)) {
    if (block['type'] === 'text') gist.text += stringOf(block['text']) ?? ''
    if (block['type'] === 'thinking') gist.thinking += stringOf(block['thinking']) ?? ''
    if (block['type'] === 'tool_use') {
      gist.calls.push({ name: stringOf(block['name']) ?? '', args: block['input'] ?? {} })
    }
  }
  gist.finish = ANTHROPIC_FINISH[stringOf(message['stop_reason']) ?? ''] ?? 'stop'
  gist.usage = anthropicCounts(objectOf(message['usage']))
  return gist
}

/** Joins the blocks and reads them as a whole message. */
function anthropicStream(events: readonly JsonObject[]): Gist {
  const blocks: JsonObject[] = []
  const json: string[] = []
  const usage: JsonObject = {}
  let reason: string | undefined
  for (const event of events) {
    const at = count(event['index'])
    const delta = objectOf(event['delta'])
    if (event['type'] === 'content_block_start') {
      blocks[at] = { ...objectOf(event['content_block']) }
      json[at] = ''
    }
    const block = blocks[at] ?? {}
    if (event['type'] === 'content_block_delta') {
      for (const name of ['text', 'thinking']) {
        const fragment = stringOf(delta[name])
        if (fragment !== undefined) block[name] = (stringOf(block[name]) ?? '') + fragment
      }
      json[at] = (json[at] ?? '') + (stringOf(delta['partial_json']) ?? '')
    }
    const counts = objectOf(objectOf(event['message'])['usage'] ?? event['usage'])
    for (const [name, value] of Object.entries(counts)) {
      if (value !== null) usage[name] = value
    }
    reason = stringOf(delta['stop_reason']) ?? reason
  }
  const content = blocks.map((block, at) => {
    const typed = json[at] ?? ''
    return block['type'] === 'tool_use' && typed !== ''
      ? { ...block, input: objectOf(JSON.parse(typed)) }
      : block
  })
  return anthropicWhole({ content, usage, stop_reason: reason ?? null })
}

/**
 * A compaction is a separate call, which the top level excludes and the iterations contain
 * (Anthropic, "Compaction": add up the iterations for what is billed).
 */
function anthropicCounts(usage: JsonObject): Counts {
  const iterations = arrayOf(usage['iterations']).map(objectOf)
  if (iterations.some((one) => one['type'] === 'compaction')) {
    const sums: JsonObject = {}
    for (const one of iterations) {
      for (const [name, value] of Object.entries(one)) {
        if (typeof value === 'number') sums[name] = count(sums[name]) + value
      }
    }
    return anthropicCounts(sums)
  }
  const { input_tokens, cache_creation_input_tokens, cache_read_input_tokens } = usage
  return {
    prompt: count(input_tokens) + count(cache_creation_input_tokens) + count(cache_read_input_tokens),
    completion: count(usage['output_tokens']),
    ...detail('cached', cache_read_input_tokens),
    ...detail('written', cache_creation_input_tokens),
    ...detail('reasoning', objectOf(usage['output_tokens_details'])['thinking_tokens']),
  }
}

const GEMINI_LENGTH = new Set(['MAX_TOKENS', 'CONTINUATION', '2'])
const GEMINI_STOP = new Set(['STOP', 'FINISH_REASON_UNSPECIFIED', '1', '0'])
const GEMINI_FILTER =
  /^(?:SAFETY|RECITATION|LANGUAGE|BLOCKLIST|PROHIBITED_CONTENT|SPII|IMAGE_SAFETY|IMAGE_PROHIBITED_CONTENT|IMAGE_RECITATION|MODEL_ARMOR)$/
const GEMINI_FAILURE =
  /^(?:MALFORMED_FUNCTION_CALL|UNEXPECTED_TOOL_CALL|TOO_MANY_TOOL_CALLS|MALFORMED_RESPONSE)$/

export function fromGemini(chunks: readonly JsonObject[]): Gist {
  const gist = empty()
  const counts: JsonObject = {}
  let reason: string | null = null
  let blocked = false
  for (const chunk of chunks) {
    Object.assign(counts, objectOf(chunk['usageMetadata']))
    blocked ||= objectOf(chunk['promptFeedback'])['blockReason'] !== undefined
    const candidate = arrayOf(chunk['candidates']).map(objectOf).find(isFirst)
    const given = candidate?.['finishReason']
    if (typeof given === 'string' || typeof given === 'number') reason = String(given)
    for (const part of arrayOf(objectOf(candidate?.['content'])['parts']).map(objectOf)) {
      gist[part['thought'] === true ? 'thinking' : 'text'] += stringOf(part['text']) ?? ''
      const call = part['functionCall']
      if (call === undefined) continue
      const { name, args } = objectOf(call)
      gist.calls.push({ name: stringOf(name) ?? '', args: args ?? {} })
    }
  }
  gist.finish = geminiFinish(reason, blocked, gist)
  if (Object.keys(counts).length > 0) gist.usage = geminiCounts(counts)
  return gist
}

function geminiFinish(reason: string | null, blocked: boolean, gist: Gist): string | null {
  if (reason === null) return blocked ? 'content_filter' : null
  if (GEMINI_LENGTH.has(reason)) return 'length'
  if (GEMINI_FILTER.test(reason)) return 'content_filter'
  if (GEMINI_FAILURE.test(reason)) return null
  if (gist.calls.length > 0) return 'tool_calls'
  return GEMINI_STOP.has(reason) || gist.text !== '' ? 'stop' : null
}

function geminiCounts(usage: JsonObject): Counts {
  return {
    prompt: count(usage['promptTokenCount']) + count(usage['toolUsePromptTokenCount']),
    completion: count(usage['candidatesTokenCount']) + count(usage['thoughtsTokenCount']),
    ...detail('cached', usage['cachedContentTokenCount']),
    ...detail('reasoning', usage['thoughtsTokenCount']),
  }
}
