/**
 * Compiles regular expressions in RE2 syntax to programs that `text-scan.ts` runs over text that arrives in
 * parts, in linear time. `re2js` parses and compiles them; its own matchers need the whole text.
 */
import { createRequire } from 'node:module'
import type { RE2JS } from 're2js'

const require = createRequire(import.meta.url)
/** Loaded with the first expression: a gateway without guardrails does not need it. */
let loaded: typeof RE2JS | null = null

/** More instructions take too long for each character. */
const MAX_INSTRUCTIONS = 10_000
/** The same for all expressions of a guardrail. */
export const MAX_INSTRUCTIONS_TOGETHER = 20_000

/** Why an expression is not used, as the rest of a sentence that begins with it. */
export class ExpressionError extends Error {}

/** The operations of a program. */
export const OP = { fork: 1, empty: 2, match: 3, pass: 4, char: 5, fail: 6 } as const

/** One instruction. `out` is the next one; a fork has a second next one, `other`. */
interface Instruction {
  readonly op: (typeof OP)[keyof typeof OP]
  readonly out: number
  readonly other: number
  /** The conditions of `empty`: a set of `AT`. */
  readonly conditions: number
  /** The characters that match; only of `char`. */
  readonly characters: Characters
}

/** A set of characters. Sets with the same `id` have the same characters. */
export interface Characters {
  readonly id: string
  readonly has: (codePoint: number) => boolean
}

/** A compiled expression. */
export interface Program {
  readonly instructions: readonly Instruction[]
  readonly start: number
}

/** Conditions on the characters beside a position, as RE2 numbers them. */
const AT = {
  lineStart: 1,
  lineEnd: 2,
  textStart: 4,
  textEnd: 8,
  wordBoundary: 16,
  noWordBoundary: 32,
} as const

/** In place of a character: the beginning or the end of the text. */
export const EDGE = -1
const NEWLINE = 10

export function isDigit(char: number): boolean {
  return char >= 48 && char <= 57
}

export function isWord(char: number): boolean {
  return isDigit(char) || (char >= 65 && char <= 90) || (char >= 97 && char <= 122) || char === 95
}

/** The conditions that a position between two characters meets. */
export function conditionsBetween(before: number, char: number): number {
  let met = isWord(before) === isWord(char) ? AT.noWordBoundary : AT.wordBoundary
  if (before === EDGE) met |= AT.textStart | AT.lineStart
  if (before === NEWLINE) met |= AT.lineStart
  if (char === EDGE) met |= AT.textEnd | AT.lineEnd
  if (char === NEWLINE) met |= AT.lineEnd
  return met
}

/** The instruction numbers of `re2js`. */
const RE2_OPS: Readonly<Record<number, Instruction['op']>> = {
  1: OP.fork,
  2: OP.fork,
  3: OP.pass,
  4: OP.empty,
  5: OP.fail,
  6: OP.match,
  7: OP.pass,
  8: OP.char,
  9: OP.char,
  10: OP.char,
  11: OP.char,
}
const ANY = 10
const ANY_BUT_NEWLINE = 11

/**
 * The program of an expression. Throws `ExpressionError` if it is not valid in RE2 syntax, which has no
 * look-around and no back-references, if it matches the empty text, or if it is too large.
 */
export function compileExpression(expression: string): Program {
  const program = programOf(expression)
  if (program.instructions.length > MAX_INSTRUCTIONS) {
    throw new ExpressionError('is too large: use fewer or smaller repetitions')
  }
  if (matchesEmpty(program)) {
    throw new ExpressionError('matches the empty text: it must match at least one character')
  }
  return program
}

function programOf(expression: string): Program {
  let compiled: RE2JS
  try {
    compiled = re2().compile(expression)
  } catch (error) {
    throw new ExpressionError(refusalOf(expression, error))
  }
  const program: unknown = compiled.re2Input.prog
  if (!isRe2Program(program)) throw new ExpressionError('is not supported')
  return { instructions: program.inst.map(instructionOf), start: program.start }
}

function re2(): typeof RE2JS {
  loaded ??= re2In(require('re2js'))
  return loaded
}

function re2In(module: unknown): typeof RE2JS {
  const isModule = typeof module === 'object' && module !== null && 'RE2JS' in module
  if (!isModule || !isRe2(module.RE2JS)) throw new Error('re2js is not installed: run npm ci')
  return module.RE2JS
}

function isRe2(value: unknown): value is typeof RE2JS {
  return typeof value === 'function' && 'compile' in value
}

function refusalOf(expression: string, error: unknown): string {
  if (/\(\?<?[=!]/.test(expression)) return 'has a look-around, which RE2 does not have'
  if (/\\[1-9]|\\k</.test(expression)) return 'has a back-reference, which RE2 does not have'
  const why = error instanceof Error ? error.message : String(error)
  return `is not a valid RE2 expression: ${why.replace(/^error parsing regexp: /, '')}`
}

function isRe2Program(value: unknown): value is { inst: readonly unknown[]; start: number } {
  if (typeof value !== 'object' || value === null) return false
  return 'inst' in value && Array.isArray(value.inst) && 'start' in value
}

/** An instruction of `re2js`, of the properties that are used. */
interface Re2Instruction {
  readonly op: number
  readonly out: number
  readonly arg: number
  readonly runes: ArrayLike<number>
  matchRune(codePoint: number): boolean
}

function isRe2Instruction(value: unknown): value is Re2Instruction {
  if (typeof value !== 'object' || value === null) return false
  return 'op' in value && 'out' in value && 'arg' in value && 'runes' in value && 'matchRune' in value
}

function instructionOf(value: unknown): Instruction {
  const op = isRe2Instruction(value) ? RE2_OPS[value.op] : undefined
  if (!isRe2Instruction(value) || op === undefined) throw new ExpressionError('is not supported')
  const { out, arg } = value
  return {
    op,
    out,
    other: op === OP.fork ? arg : 0,
    conditions: op === OP.empty ? arg : 0,
    characters: op === OP.char ? charactersOf(value) : NONE,
  }
}

const NONE: Characters = { id: 'none', has: () => false }

function charactersOf(instruction: Re2Instruction): Characters {
  if (instruction.op === ANY) return { id: 'any', has: () => true }
  if (instruction.op === ANY_BUT_NEWLINE) return { id: 'line', has: (codePoint) => codePoint !== NEWLINE }
  return {
    // `arg` has the flag for both cases of a letter.
    id: `${instruction.arg} ${Array.from(instruction.runes).join(' ')}`,
    has: (codePoint) => instruction.matchRune(codePoint),
  }
}

/** Whether the end can be reached without a character. */
function matchesEmpty({ instructions, start }: Program): boolean {
  const seen = new Set<number>()
  const waiting = [start]
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const instruction = instructions[at]
    if (instruction === undefined || seen.has(at)) continue
    seen.add(at)
    if (instruction.op === OP.match) return true
    if (instruction.op === OP.char || instruction.op === OP.fail) continue
    waiting.push(instruction.out)
    if (instruction.op === OP.fork) waiting.push(instruction.other)
  }
  return false
}
