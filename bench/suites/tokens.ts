/**
 * The error of token estimates: every recording with reported usage is estimated.
 * `npm run build:test && node build/bench/suites/tokens.js`.
 */
import { arrayOf, isObject, objectOf, type JsonObject, type JsonValue } from '../../src/base/json.js'
import type { ModelFamily } from '../../src/formats/chat/model-facts.js'
import {
  inputTokens,
  jsonBytes,
  maxInputTokens,
  emptyPromptSize,
  outputTokens,
  type PromptSize,
} from '../../src/ledger/estimate-tokens.js'
import { cases, gistOf, type Case } from '../../test/conformance/recordings/recorded.js'

const FAMILY: Readonly<Record<Case['format'], ModelFamily>> = {
  openai: 'openai',
  responses: 'openai',
  anthropic: 'anthropic',
  gemini: 'google',
}

/** Estimated divided by reported; 1 is exact. */
interface Sample {
  readonly ratio: number
  readonly counted: number
  readonly estimated: number
}

const samples = new Map<string, Sample[]>()

function note(row: string, estimated: number, counted: number): void {
  const list = samples.get(row) ?? []
  samples.set(row, list)
  list.push({ ratio: estimated / counted, counted, estimated })
}

/** Recordings with fewer tokens are skipped: one token would be most of the error. */
const LEAST = 30

/** Members whose values are names and state, not text. */
const NOT_TEXT = new Set([
  'type',
  'role',
  'id',
  'signature',
  'thoughtSignature',
  'thought_signature',
  'call_id',
  'tool_use_id',
  'tool_call_id',
  'cache_control',
  'encrypted_content',
  'status',
])
const STATE = /^(signature|thoughtSignature|thought_signature|encrypted_content)$/
const MEDIA = /^(image|document|image_url|input_image|input_file|file|input_audio|audio)$/
const MEDIA_KEYS = ['inlineData', 'inline_data', 'fileData', 'file_data']

/** Adds the text below a node. */
function weigh(node: JsonValue | undefined, bulk: PromptSize): void {
  if (typeof node === 'string') bulk.textBytes += Buffer.byteLength(node)
  else if (Array.isArray(node)) for (const each of node) weigh(each, bulk)
  else if (isObject(node)) {
    const type = node['type']
    if ((typeof type === 'string' && MEDIA.test(type)) || MEDIA_KEYS.some((key) => node[key] !== undefined)) {
      bulk.images += 1
      return
    }
    for (const [key, value] of Object.entries(node)) {
      if (STATE.test(key) && typeof value === 'string') bulk.fileBytes += value.length
      if (NOT_TEXT.has(key)) continue
      if (key === 'input' || key === 'args') bulk.textBytes += jsonBytes(value ?? null)
      else weigh(value, bulk)
    }
  }
}

/** The size of a recorded request of any format; null if it has more than text and functions. */
function bulkOfBody(body: JsonObject): PromptSize | null {
  const bulk = emptyPromptSize()
  const turns = body['messages'] ?? body['contents'] ?? body['input'] ?? null
  if (turns === null || body['previous_response_id'] !== undefined) return null
  weigh(turns, bulk)
  bulk.messages = Array.isArray(turns) ? turns.length : 1
  weigh(body['system'] ?? body['systemInstruction'] ?? body['instructions'] ?? '', bulk)
  for (const tool of arrayOf(body['tools']).map(objectOf)) {
    const functions = arrayOf(tool['functionDeclarations'] ?? tool['function_declarations'])
    const each = functions.length > 0 ? functions : [tool]
    if (!each.every((one) => isFunction(objectOf(one)))) return null
    bulk.tools += each.length
    for (const one of each) bulk.toolBytes += jsonBytes(one)
  }
  const config = objectOf(body['generationConfig'])
  const schema =
    body['response_format'] ??
    objectOf(body['text'])['format'] ??
    objectOf(body['output_config'])['format'] ??
    config['responseSchema'] ??
    config['responseJsonSchema']
  if (isObject(schema)) bulk.schemaBytes += jsonBytes(schema)
  return bulk
}

/** Other tools are the vendor's own, with an unknown number of tokens. */
function isFunction(tool: JsonObject): boolean {
  const type = tool['type'] ?? 'function'
  return type === 'function' || type === 'custom'
}

for (const one of cases()) {
  const { format, label, recording } = one
  if (recording.status !== 200 || !isObject(recording.request_body)) continue
  const gist = gistOf(one)
  if (gist.usage === null) continue
  const vendor = label.split('/')[0]?.replace('vertex-gemini', 'gemini').replace('azure', 'openai')
  const family = FAMILY[format]
  const { prompt, completion, reasoning = 0 } = gist.usage
  const bulk = bulkOfBody(recording.request_body)
  if (bulk !== null && prompt >= LEAST) {
    const kind = bulk.images > 0 ? 'media' : bulk.tools > 0 ? 'tools' : 'words'
    note(`${vendor} prompt, ${kind}`, inputTokens(bulk, family), prompt)
    if (kind !== 'media') note('all, most of a prompt', maxInputTokens(bulk, family), prompt)
  }
  const calls = gist.calls.length
  const args = gist.calls.map(({ name, args: value }) => name + JSON.stringify(value)).join('')
  // Hidden reasoning cannot be estimated, and Claude does not report its length.
  if (gist.thinking !== '' || recording.request_body['thinking'] !== undefined) continue
  if (completion - reasoning < LEAST) continue
  const reply = { bytes: Buffer.byteLength(gist.text + args), calls }
  if (reply.bytes === 0) continue
  note(
    `${vendor} answer, ${calls > 0 ? 'calls' : 'words'}`,
    outputTokens(reply, family),
    completion - reasoning,
  )
}

function at(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN
}

const percent = (share: number): string => `${(share * 100).toFixed(0)} %`

console.log('| what | recordings | median error | 9 of 10 within | all together | too low |')
console.log('| --- | --: | --: | --: | --: | --: |')
for (const [row, list] of [...samples].sort(([a], [b]) => a.localeCompare(b))) {
  const errors = list.map(({ ratio }) => Math.abs(ratio - 1)).sort((a, b) => a - b)
  const estimated = list.reduce((sum, one) => sum + one.estimated, 0)
  const counted = list.reduce((sum, one) => sum + one.counted, 0)
  const low = list.filter(({ ratio }) => ratio < 1).length
  const cells = [
    row,
    list.length,
    percent(at(errors, 0.5)),
    percent(at(errors, 0.9)),
    `${estimated >= counted ? '+' : '−'}${percent(Math.abs(estimated / counted - 1))}`,
    low,
  ]
  console.log(`| ${cells.join(' | ')} |`)
}
