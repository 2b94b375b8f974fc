/**
 * Judges the strings of a JSON text: each key and each text alone, decoded, and numbers by their digits.
 * Reads it token by token, since the value of a text of many small arrays takes a hundred times its memory.
 */
import type { JsonValue } from '../base/json.js'
import { isKept, parseExact, stringifyExact } from '../formats/wire/json/exact-numbers.js'
import type { Steps } from '../base/steps.js'
import { Fragments } from './rules/text-scan.js'

/** Judges one text; returns what replaces it. */
type JudgeText = (text: string) => Steps<string>

/** The value of arguments; undefined if they are not JSON. */
export function argumentsIn(json: string): JsonValue | undefined {
  try {
    return parseExact(json)
  } catch {
    return undefined
  }
}

/** The arguments as JSON text without escapes that JSON does not require; unchanged if they are not JSON. */
export function plainArguments(json: string): string {
  const value = argumentsIn(json)
  return value === undefined ? json : stringifyExact(value)
}

/** The arguments with what `judge` replaces; the same text if it replaces nothing. */
export function* judgedArguments(json: string, judge: JudgeText): Steps<string> {
  if (!(yield* isJson(json))) return yield* judge(json)
  const tokens = new JsonTokens(json)
  const judged = new Fragments()
  let copied = 0
  for (let count = 1; tokens.next(); count += 1) {
    if (count % STEP_TOKENS === 0) yield
    const { text } = tokens
    if (text === null) continue
    const next = tokens.nameFor(yield* judge(text))
    if (next === text) continue
    judged.add(json.slice(copied, tokens.start))
    judged.add(JSON.stringify(next))
    copied = tokens.end
  }
  if (copied === 0) return json
  judged.add(json.slice(copied))
  return judged.take()
}

/** Tokens that are read in one step. */
const STEP_TOKENS = 8_192

/** Whether a text is JSON, in steps. */
export function* isJson(text: string): Steps<boolean> {
  const tokens = new JsonTokens(text)
  for (let count = 1; tokens.next(); count += 1) if (count % STEP_TOKENS === 0) yield
  return tokens.isComplete
}

const QUOTE = 34
const COMMA = 44
const COLON = 58
const OPEN_ARRAY = 91
const BACKSLASH = 92
const CLOSE_ARRAY = 93
const OPEN_OBJECT = 123
const CLOSE_OBJECT = 125
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const LITERAL = /true|false|null/y

/** What may follow in a JSON text. */
type Expected = 'value' | 'item' | 'key' | 'first key' | 'colon' | 'comma' | 'end'

/** A set has the names in an object that may be equal to one that was masked. */
type Level = 'array' | 'object' | Set<string>

/** Reads the tokens of a text until it ends or is no JSON. */
class JsonTokens {
  /** The last token. */
  start = 0
  end = 0
  /** The decoded key or string, or the digits of the number; null for other tokens. */
  text: string | null = null
  private isKey = false
  private expected: Expected | null = 'value'
  private readonly json: string
  private readonly levels: Level[] = []

  constructor(json: string) {
    this.json = json
  }

  /** The text has ended, and was JSON. */
  get isComplete(): boolean {
    return this.expected === 'end' && this.end === this.json.length
  }

  /** Reads a token; false at the end, and where the text is no JSON. */
  next(): boolean {
    const { json } = this
    while (isBlank(json.charCodeAt(this.end))) this.end += 1
    this.start = this.end
    this.text = null
    if (this.start === json.length) return false
    this.expected = this.read(json.charCodeAt(this.start))
    return this.expected !== null
  }

  /** What replaces the text: two keys of an object that were masked may be equal, and get a number. */
  nameFor(judged: string): string {
    // What replaces a match begins with a bracket.
    if (!this.isKey || !judged.includes('[')) return judged
    const level = this.levels.at(-1)
    const names = level instanceof Set ? level : new Set<string>()
    this.levels[this.levels.length - 1] = names
    let name = judged
    for (let number = 2; names.has(name); number += 1) name = `${judged} ${number}`
    names.add(name)
    return name
  }

  /** What may follow; null if the token may not stand here. */
  private read(code: number): Expected | null {
    const { expected, levels } = this
    this.isKey = false
    switch (expected) {
      case 'value':
        return this.value(code)
      case 'item':
        return code === CLOSE_ARRAY ? this.close() : this.value(code)
      case 'first key':
        return code === CLOSE_OBJECT ? this.close() : this.key(code)
      case 'key':
        return this.key(code)
      case 'colon':
        return code === COLON ? this.pass('value') : null
      case 'comma': {
        const isArray = levels.at(-1) === 'array'
        if (code === COMMA) return this.pass(isArray ? 'value' : 'key')
        return code === (isArray ? CLOSE_ARRAY : CLOSE_OBJECT) ? this.close() : null
      }
      case 'end':
      case null:
        return null
      default:
        return expected satisfies never
    }
  }

  private pass(expected: Expected): Expected {
    this.end += 1
    return expected
  }

  private close(): Expected {
    this.levels.pop()
    return this.pass(this.afterValue)
  }

  private get afterValue(): Expected {
    return this.levels.length === 0 ? 'end' : 'comma'
  }

  private key(code: number): Expected | null {
    this.isKey = true
    return code === QUOTE && this.string() ? 'colon' : null
  }

  private value(code: number): Expected | null {
    switch (code) {
      case OPEN_ARRAY:
        this.levels.push('array')
        return this.pass('item')
      case OPEN_OBJECT:
        this.levels.push('object')
        return this.pass('first key')
      case QUOTE:
        return this.string() ? this.afterValue : null
      default: {
        const token = this.matched(NUMBER)
        if (token !== null) this.text = isKept(token) ? String(Number(token)) : token
        return token === null && this.matched(LITERAL) === null ? null : this.afterValue
      }
    }
  }

  /** Reads a token of the expression. */
  private matched(expression: RegExp): string | null {
    expression.lastIndex = this.start
    if (!expression.test(this.json)) return null
    this.end = expression.lastIndex
    return this.json.slice(this.start, this.end)
  }

  /** Reads a string; false if it is none. */
  private string(): boolean {
    const { json, start } = this
    for (let end = json.indexOf('"', start + 1); end > 0; end = json.indexOf('"', end + 1)) {
      let slashes = 0
      while (json.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes += 1
      if (slashes % 2 === 1) continue
      this.end = end + 1
      this.text = decoded(json.slice(start, end + 1))
      return this.text !== null
    }
    return false
  }
}

function isBlank(code: number): boolean {
  return code === 32 || code === 10 || code === 13 || code === 9
}

/** The text of a string; null if it has an invalid escape or a control character. */
function decoded(token: string): string | null {
  try {
    return String(JSON.parse(token))
  } catch {
    return null
  }
}
