/**
 * Generates the output of the emulated model. The same input and seed give the same output.
 */
import { arrayOf, numberOf, objectOf, stringOf, type JsonObject, type JsonValue } from '../base/json.js'
import { tokensOf, type ModelOutput, type ModelInput, type Tool, type ToolCall } from './emulated-exchange.js'
import { directionsOf } from './prompt-directives.js'
import { seededRandom, type RandomSource } from './seeded-random.js'

/** The output for an input; `seed` determines all random values. */
export function generateOutput(modelInput: ModelInput, seed: number): ModelOutput {
  const random = seededRandom(seed)
  const prompt = directionsOf(modelInput.prompt)
  const thinking = modelInput.thinking ? thoughtOn(prompt.text) : ''
  const thinkingTokens = tokensOf(thinking.length)
  const input = Math.max(1, tokensOf(modelInput.inputChars))
  const calls = callsFor(modelInput, prompt.text, random)
  if (calls.length > 0) {
    const chars = calls.reduce((sum, { name, args }) => sum + name.length + JSON.stringify(args).length, 0)
    const usage = { input, output: tokensOf(chars) + thinkingTokens, thinking: thinkingTokens }
    return { thinking, text: '', chunks: [], calls, end: 'tool', stopped: undefined, usage }
  }
  const full =
    prompt.words === undefined ? wordsFor(modelInput, prompt.text, random) : filler(prompt.words, random)
  const { text, end, stopped } = shortened(full, modelInput, thinkingTokens)
  const usage = { input, output: tokensOf(text.length) + thinkingTokens, thinking: thinkingTokens }
  return { thinking, text, chunks: splitText(text), calls: [], end, stopped, usage }
}

function shortened(
  full: string,
  modelInput: ModelInput,
  spent: number,
): { text: string; end: 'stop' | 'length'; stopped: string | undefined } {
  let text = full
  let stopped: string | undefined
  for (const stop of modelInput.stop) {
    const at = stop === '' ? -1 : text.indexOf(stop)
    if (at >= 0) {
      text = text.slice(0, at)
      stopped = stop
    }
  }
  const room = modelInput.limit === undefined ? Infinity : Math.max(0, modelInput.limit - spent) * 4
  if (text.length <= room) {
    return { text, end: 'stop', stopped }
  }
  // A provider cannot send half a surrogate pair.
  const code = text.charCodeAt(room - 1)
  const cut = code >= 0xd800 && code < 0xdc00 ? room - 1 : room
  return { text: text.slice(0, cut), end: 'length', stopped: undefined }
}

function wordsFor(modelInput: ModelInput, prompt: string, random: RandomSource): string {
  if (modelInput.json !== undefined) {
    const context = { random, hint: hintIn(prompt) }
    const value =
      modelInput.json === true
        ? { emulated: true, your_message: echo(prompt) }
        : sampleOf(modelInput.json, context)
    return JSON.stringify(value)
  }
  if (modelInput.results.length > 0) {
    const quoted = modelInput.results.map(
      ({ name, text }) => `${name ?? 'The tool'} returned: “${echo(text)}”`,
    )
    return `This is an emulated reply from ${modelInput.model}. ${quoted.join('; ')}.`
  }
  const count = modelInput.images.length
  const seen =
    count === 0 ? '' : ` You sent ${count} image${count === 1 ? '' : 's'} (${modelInput.images.join(', ')}).`
  return `This is an emulated reply from ${modelInput.model}.${seen} Your message: “${echo(prompt)}”`
}

function echo(text: string): string {
  const points = Array.from(text.slice(0, 600))
  return points.length <= 240 && text.length <= 600 ? text : `${points.slice(0, 240).join('')}…`
}

function thoughtOn(prompt: string): string {
  return `The user wrote ${prompt.length} characters. An emulated model has nothing to work out, so it answers at once.`
}

const WORDS = [
  'a stream of plain words arrives one chunk at a time and every chunk is counted on the way',
  'nothing here was written by a model so read it as water in a pipe',
]
  .join(' ')
  .split(' ')

function filler(count: number, random: RandomSource): string {
  const words: string[] = []
  for (let index = 0; index < count; index += 1) {
    words.push(WORDS[random() % WORDS.length] ?? 'word')
  }
  return words.join(' ')
}

/** A token with its log probability and the most likely alternatives. */
export interface TokenProbability {
  readonly token: string
  readonly logprob: number
  readonly alternatives: readonly { readonly token: string; readonly logprob: number }[]
}

/** The chunks of the text as tokens, each with `alternatives` alternatives, itself included. */
export function tokenProbabilities({ chunks }: ModelOutput, alternatives: number): TokenProbability[] {
  return chunks.map((token, at) => {
    const logprob = -((token.length % 7) + 1) / 8
    const others = Array.from({ length: alternatives }, (_unused, endpoint) => {
      return endpoint === 0 ? { token, logprob } : { token: `${token}~${at + endpoint}`, logprob: -endpoint }
    })
    return { token, logprob, alternatives: others }
  })
}

/**
 * Splits a text into words with their preceding white space. White space at the end stays with the last word.
 */
export function splitText(text: string): string[] {
  const chunks: string[] = []
  let blank = ''
  for (const run of text.match(/\s+|\S+/g) ?? []) {
    if (run.trim() === '') blank = run
    else {
      chunks.push(blank + run)
      blank = ''
    }
  }
  if (blank !== '') chunks.push((chunks.pop() ?? '') + blank)
  return chunks
}

function hintIn(prompt: string): string | undefined {
  return /\b(?:in|for|of|to|about)\s+(\p{Lu}[\p{L}'-]*(?:\s\p{Lu}[\p{L}'-]*)*)/u.exec(prompt)?.[1]
}

function callsFor(modelInput: ModelInput, prompt: string, random: RandomSource): ToolCall[] {
  const context = { random, hint: hintIn(prompt) }
  return pickedTools(modelInput, prompt).map(({ name, schema }) => ({
    name,
    args: sampleObject(schema, context),
  }))
}

function pickedTools(modelInput: ModelInput, prompt: string): Tool[] {
  const { choice, tools } = modelInput
  const [first] = tools
  if (choice === 'none' || first === undefined) {
    return []
  }
  if (typeof choice === 'object') {
    return tools.filter(({ name }) => name === choice.name)
  }
  const text = nextStep(modelInput, prompt).toLowerCase()
  const named = tools.filter(({ name }) => mentions(text, name.toLowerCase()))
  // A demand at the end of the turn holds after the last step too.
  const isDemanded = /\bcall one of the tools now\b/i.test(prompt)
  const isRequested = /\b(use|call|invoke|run)\b.*\btools?\b/.test(text)
  const mustCall = isRequested || isDemanded || choice === 'required'
  const together = modelInput.parallel && /\bin parallel\b/.test(text)
  if (named.length === 0) {
    const unanswered = tools.find(({ name }) => modelInput.results.every((it) => it.name !== name))
    return mustCall ? (together ? [...tools] : [unanswered ?? first]) : []
  }
  if (!modelInput.parallel) {
    return named.slice(0, 1)
  }
  const [only] = named
  return together && named.length === 1 && only !== undefined ? [only, only] : named
}

/** The next step of a prompt such as “Use a, then b”: the one after the last step with results. */
function nextStep({ results }: ModelInput, prompt: string): string {
  const steps = prompt.split(/\bthen\b/i)
  if (results.length === 0) {
    return steps[0] ?? ''
  }
  const done = steps.findLastIndex((step) =>
    results.some(({ name = '' }) => name !== '' && mentions(step.toLowerCase(), name.toLowerCase())),
  )
  return done < 0 ? '' : (steps[done + 1] ?? '')
}

function mentions(text: string, name: string): boolean {
  return text.includes(name) || text.includes(name.replace(/[_-]/g, ' '))
}

/** Sources of sample values. */
interface SampleContext {
  readonly random: RandomSource
  /** Used for the first free string: a place name from the prompt. */
  readonly hint: string | undefined
}

const DEPTH = 6

/**
 * A value that fits a JSON Schema: arguments of tool calls, structured output; an empty object for an empty
 * schema. Type names may be in capitals, as Gemini writes them.
 */
export function sampleOf(schema: JsonValue | undefined, context: SampleContext): JsonValue {
  const root = objectOf(schema)
  return valueOf(root, { name: 'value', depth: 0 }, { ...context, root })
}

/** Like `sampleOf`, for schemas that must describe an object. */
function sampleObject(schema: JsonValue | undefined, context: SampleContext): JsonObject {
  return objectOf(sampleOf(schema, context))
}

interface SchemaContext extends SampleContext {
  /** The whole schema, which references point into. */
  readonly root: JsonObject
}

/** The position of a value. */
interface Position {
  /** The name of the property; an array's items have that of the array. */
  readonly name: string
  readonly depth: number
}

function valueOf(given: JsonObject, position: Position, context: SchemaContext): JsonValue {
  const schema = resolve(context.root, given)
  if (schema.const !== undefined) {
    return schema.const
  }
  const choices = arrayOf(schema.enum)
  if (choices.length > 0) {
    return choices[context.random() % choices.length] ?? null
  }
  switch (typeOf(schema)) {
    case 'object':
      return objectFor(schema, position.depth, context)
    case 'array':
      return arrayFor(schema, position, context)
    case 'integer':
      return numberFor(schema, 1, context)
    case 'number':
      return numberFor(schema, 0.5, context)
    case 'boolean':
      return context.random() % 2 === 0
    case 'null':
      return null
    default:
      return textFor(schema, position.name, context)
  }
}

function resolve(root: JsonObject, given: JsonObject): JsonObject {
  let schema = given
  for (let hops = 0; hops < 8; hops += 1) {
    const ref = stringOf(schema.$ref)
    const branch = [...arrayOf(schema.anyOf), ...arrayOf(schema.oneOf)].find(
      (option) => objectOf(option).type !== 'null',
    )
    if (ref !== undefined) {
      schema = followed(root, ref)
    } else if (branch !== undefined) {
      schema = objectOf(branch)
    } else if (arrayOf(schema.allOf).length > 0) {
      const { allOf, ...rest } = schema
      schema = arrayOf(allOf).reduce<JsonObject>(
        (all, part) => merged(all, resolve(root, objectOf(part))),
        rest,
      )
    } else {
      return schema
    }
  }
  return {}
}

function merged(left: JsonObject, right: JsonObject): JsonObject {
  return {
    ...left,
    ...right,
    properties: { ...objectOf(left.properties), ...objectOf(right.properties) },
    required: [...arrayOf(left.required), ...arrayOf(right.required)],
  }
}

function followed(root: JsonObject, ref: string): JsonObject {
  let node: JsonValue | undefined = root
  for (const step of ref.replace(/^#\/?/, '').split('/')) {
    if (step !== '') {
      node = objectOf(node)[decodeURIComponent(step).replace(/~1/g, '/').replace(/~0/g, '~')]
    }
  }
  return objectOf(node)
}

function typeOf(schema: JsonObject): string {
  const types = isArrayOrOne(schema.type).map((type) => type.toLowerCase())
  const found = types.find((type) => type !== 'null') ?? types[0]
  if (found !== undefined) {
    return found
  }
  if (schema.items !== undefined || schema.prefixItems !== undefined) {
    return 'array'
  }
  const textual = ['format', 'pattern', 'minLength', 'maxLength'].some((key) => key in schema)
  return textual ? 'string' : 'object'
}

function isArrayOrOne(value: JsonValue | undefined): string[] {
  const list = Array.isArray(value) ? value : [value]
  return list.filter((item) => typeof item === 'string')
}

function objectFor(schema: JsonObject, depth: number, context: SchemaContext): JsonObject {
  const required = new Set(arrayOf(schema.required))
  const result: JsonObject = {}
  for (const [name, property] of Object.entries(objectOf(schema.properties))) {
    // A recursive schema ends where only optional properties are left.
    if (depth < DEPTH / 2 || (required.has(name) && depth < DEPTH * 4)) {
      result[name] = valueOf(objectOf(property), { name, depth: depth + 1 }, context)
    }
  }
  return result
}

function arrayFor(schema: JsonObject, { name, depth }: Position, context: SchemaContext): JsonValue[] {
  const least = numberOf(schema.minItems) ?? 0
  const most = numberOf(schema.maxItems) ?? Math.max(least, 2)
  const count = depth > DEPTH ? least : Math.max(least, Math.min(most, 2))
  const prefix = arrayOf(schema.prefixItems)
  return Array.from({ length: Math.max(count, prefix.length) }, (_unused, index) =>
    valueOf(objectOf(prefix[index] ?? schema.items), { name, depth: depth + 1 }, context),
  )
}

function numberFor(schema: JsonObject, grain: number, context: SampleContext): number {
  const step = numberOf(schema.multipleOf) ?? grain
  const above = numberOf(schema.exclusiveMinimum)
  const below = numberOf(schema.exclusiveMaximum)
  const low = boundOf(schema, 'minimum') ?? (above === undefined ? undefined : above + step)
  const high = boundOf(schema, 'maximum') ?? (below === undefined ? undefined : below - step)
  const from = low ?? Math.min(0, high ?? 0)
  const first = Math.ceil(from / step)
  const last = high === undefined ? first + 20 : Math.floor(high / step)
  return Number(((first + (context.random() % Math.max(1, last - first + 1))) * step).toFixed(6))
}

const BOUNDS = { minimum: /\bminimum: (-?\d+)/, maximum: /\bmaximum: (-?\d+)/ } as const

/**
 * The minimum or maximum of a number. Some vendors refuse the keyword: the gateway then states the bound in
 * the description.
 */
function boundOf(schema: JsonObject, name: keyof typeof BOUNDS): number | undefined {
  const words = BOUNDS[name].exec(stringOf(schema.description) ?? '')?.[1]
  return numberOf(schema[name]) ?? (words === undefined ? undefined : Number(words))
}

const FORMATS: Record<string, string> = {
  date: '2026-01-15',
  'date-time': '2026-01-15T09:30:00Z',
  time: '09:30:00Z',
  duration: 'PT30M',
  email: 'someone@example.com',
  hostname: 'example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uri: 'https://example.com/',
  url: 'https://example.com/',
  uuid: '123e4567-e89b-42d3-a456-426614174000',
}

function textFor(schema: JsonObject, name: string, context: SampleContext): string {
  const known = FORMATS[stringOf(schema.format) ?? '']
  if (known !== undefined) {
    return known
  }
  const least = numberOf(schema.minLength) ?? 0
  const most = numberOf(schema.maxLength) ?? Math.max(least, 200)
  const examples = arrayOf(schema.examples).filter((value) => typeof value === 'string')
  const text = examples[0] ?? context.hint ?? `emulated ${name.replace(/_/g, ' ')}`
  return text.padEnd(least, '.').slice(0, most)
}
