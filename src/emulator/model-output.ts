/**
 * Generates the output of the emulated model. The same input and seed give the same output.
 */
import { tokensOf } from './emulated-exchange.js'
import { directionsOf } from './faults/fault-table.js'
import { sampleObject, sampleOf } from './sample-json.js'
import { seededRandom } from './seeded-random.js'
import type { ModelOutput, ModelInput, Tool, ToolCall } from './emulated-exchange.js'
import type { RandomSource } from './seeded-random.js'

/** The output for an input; `seed` determines all random values. */
export function generateOutput(modelInput: ModelInput, seed: number): ModelOutput {
  const random = seededRandom(seed)
  const prompt = directionsOf(modelInput.prompt)
  const thinking = modelInput.thinking ? thoughtOn(prompt.text) : ''
  const thinkingTokens = tokensOf(thinking.length)
  const input = Math.max(1, tokensOf(modelInput.inputChars))
  const calls = callsFor(modelInput, prompt.text, random)
  if (calls.length > 0) {
    const chars = calls.reduce(
      (sum, { name, args }) => sum + name.length + JSON.stringify(args).length,
      0,
    )
    const usage = { input, output: tokensOf(chars) + thinkingTokens, thinking: thinkingTokens }
    return { thinking, text: '', chunks: [], calls, end: 'tool', stopped: undefined, usage }
  }
  const full =
    prompt.words === undefined
      ? wordsFor(modelInput, prompt.text, random)
      : filler(prompt.words, random)
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
    count === 0
      ? ''
      : ` You sent ${count} image${count === 1 ? '' : 's'} (${modelInput.images.join(', ')}).`
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
export function tokenProbabilities(
  { chunks }: ModelOutput,
  alternatives: number,
): TokenProbability[] {
  return chunks.map((token, at) => {
    const logprob = -((token.length % 7) + 1) / 8
    const others = Array.from({ length: alternatives }, (_unused, endpoint) => {
      return endpoint === 0
        ? { token, logprob }
        : { token: `${token}~${at + endpoint}`, logprob: -endpoint }
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
  const mustCall = /\b(use|call|invoke|run)\b.*\btools?\b/.test(text) || choice === 'required'
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
    results.some(
      ({ name = '' }) => name !== '' && mentions(step.toLowerCase(), name.toLowerCase()),
    ),
  )
  return done < 0 ? '' : (steps[done + 1] ?? '')
}

function mentions(text: string, name: string): boolean {
  return text.includes(name) || text.includes(name.replace(/[_-]/g, ' '))
}
