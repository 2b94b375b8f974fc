/**
 * What the emulated model says to a request: the same request always gets the same answer.
 * Knows no wire format and no fault.
 */
import { tokensOf } from './ask.js'
import { directionsOf } from './faults/fault.js'
import { sampleObject, sampleOf } from './sample.js'
import { diceOf } from './seed.js'
import type { Answer, Ask, Tool, ToolCall } from './ask.js'
import type { Dice } from './seed.js'

/** The answer to `ask`; `seed` decides everything that looks random. */
export function answerTo(ask: Ask, seed: number): Answer {
  const dice = diceOf(seed)
  const prompt = directionsOf(ask.prompt)
  const thinking = ask.thinking ? thoughtOn(prompt.text) : ''
  const thinkingTokens = tokensOf(thinking.length)
  const input = Math.max(1, tokensOf(ask.inputChars))
  const calls = callsFor(ask, prompt.text, dice)
  if (calls.length > 0) {
    const chars = calls.reduce(
      (sum, { name, args }) => sum + name.length + JSON.stringify(args).length,
      0,
    )
    const usage = { input, output: tokensOf(chars) + thinkingTokens, thinking: thinkingTokens }
    return { thinking, text: '', pieces: [], calls, end: 'tool', stopped: undefined, usage }
  }
  const full =
    prompt.words === undefined ? wordsFor(ask, prompt.text, dice) : filler(prompt.words, dice)
  const { text, end, stopped } = shortened(full, ask, thinkingTokens)
  const usage = { input, output: tokensOf(text.length) + thinkingTokens, thinking: thinkingTokens }
  return { thinking, text, pieces: piecesOf(text), calls: [], end, stopped, usage }
}

function shortened(
  full: string,
  ask: Ask,
  spent: number,
): { text: string; end: 'stop' | 'length'; stopped: string | undefined } {
  let text = full
  let stopped: string | undefined
  for (const stop of ask.stop) {
    const at = stop === '' ? -1 : text.indexOf(stop)
    if (at >= 0) {
      text = text.slice(0, at)
      stopped = stop
    }
  }
  const room = ask.limit === undefined ? Infinity : Math.max(0, ask.limit - spent) * 4
  if (text.length <= room) {
    return { text, end: 'stop', stopped }
  }
  // Half a surrogate pair is not text that a provider could send.
  const code = text.charCodeAt(room - 1)
  const cut = code >= 0xd800 && code < 0xdc00 ? room - 1 : room
  return { text: text.slice(0, cut), end: 'length', stopped: undefined }
}

function wordsFor(ask: Ask, prompt: string, dice: Dice): string {
  if (ask.json !== undefined) {
    const context = { dice, hint: hintIn(prompt) }
    const value =
      ask.json === true ? { emulated: true, you_said: echo(prompt) } : sampleOf(ask.json, context)
    return JSON.stringify(value)
  }
  if (ask.results.length > 0) {
    const quoted = ask.results.map(
      ({ name, text }) => `${name ?? 'The tool'} said: “${echo(text)}”`,
    )
    return `This is an emulated answer from ${ask.model}. ${quoted.join('; ')}.`
  }
  const count = ask.images.length
  const seen =
    count === 0
      ? ''
      : ` You sent ${count} image${count === 1 ? '' : 's'} (${ask.images.join(', ')}).`
  return `This is an emulated answer from ${ask.model}.${seen} You said: “${echo(prompt)}”`
}

function echo(text: string): string {
  const points = Array.from(text.slice(0, 600))
  return points.length <= 240 && text.length <= 600 ? text : `${points.slice(0, 240).join('')}…`
}

function thoughtOn(prompt: string): string {
  return `The user wrote ${prompt.length} characters. An emulated model has nothing to work out, so it answers at once.`
}

const WORDS = [
  'a stream of plain words arrives one piece at a time and every piece is counted on the way',
  'nothing here was written by a model so read it as water in a pipe',
]
  .join(' ')
  .split(' ')

function filler(count: number, dice: Dice): string {
  const words: string[] = []
  for (let index = 0; index < count; index += 1) {
    words.push(WORDS[dice() % WORDS.length] ?? 'word')
  }
  return words.join(' ')
}

/** A token as the emulated model weighs it: how likely, and what else there was, likeliest first. */
export interface Weighed {
  readonly token: string
  readonly logprob: number
  readonly rivals: readonly { readonly token: string; readonly logprob: number }[]
}

/** The tokens of an answer's text, which are its pieces; `rivals` of each, itself included. */
export function weighed({ pieces }: Answer, rivals: number): Weighed[] {
  return pieces.map((token, at) => {
    const logprob = -((token.length % 7) + 1) / 8
    const others = Array.from({ length: rivals }, (_unused, place) => {
      return place === 0 ? { token, logprob } : { token: `${token}~${at + place}`, logprob: -place }
    })
    return { token, logprob, rivals: others }
  })
}

/** Pieces of about one word each, as providers cut text. White space stands before its word, at the end after it. */
export function piecesOf(text: string): string[] {
  const pieces: string[] = []
  let blank = ''
  for (const run of text.match(/\s+|\S+/g) ?? []) {
    if (run.trim() === '') blank = run
    else {
      pieces.push(blank + run)
      blank = ''
    }
  }
  if (blank !== '') pieces.push((pieces.pop() ?? '') + blank)
  return pieces
}

function hintIn(prompt: string): string | undefined {
  return /\b(?:in|for|of|to|about)\s+(\p{Lu}[\p{L}'-]*(?:\s\p{Lu}[\p{L}'-]*)*)/u.exec(prompt)?.[1]
}

function callsFor(ask: Ask, prompt: string, dice: Dice): ToolCall[] {
  const context = { dice, hint: hintIn(prompt) }
  return pickedTools(ask, prompt).map(({ name, schema }) => ({
    name,
    args: sampleObject(schema, context),
  }))
}

function pickedTools(ask: Ask, prompt: string): Tool[] {
  const { choice, tools } = ask
  const [first] = tools
  if (choice === 'none' || first === undefined) {
    return []
  }
  if (typeof choice === 'object') {
    return tools.filter(({ name }) => name === choice.name)
  }
  const said = stepDue(ask, prompt).toLowerCase()
  const named = tools.filter(({ name }) => mentions(said, name.toLowerCase()))
  const asked = /\b(use|call|invoke|run)\b.*\btools?\b/.test(said) || choice === 'required'
  const together = ask.parallel && /\bin parallel\b/.test(said)
  if (named.length === 0) {
    const unanswered = tools.find(({ name }) => ask.results.every((it) => it.name !== name))
    return asked ? (together ? [...tools] : [unanswered ?? first]) : []
  }
  if (!ask.parallel) {
    return named.slice(0, 1)
  }
  const [only] = named
  return together && named.length === 1 && only !== undefined ? [only, only] : named
}

/** “Use a, then b” asks for one step after the other: what comes after the step that has its results. */
function stepDue({ results }: Ask, prompt: string): string {
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

function mentions(said: string, name: string): boolean {
  return said.includes(name) || said.includes(name.replace(/[_-]/g, ' '))
}
