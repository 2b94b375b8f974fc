/** The rules of one guardrail, merged to one program that `text-scan.ts` runs. */
import { builtInRule, type Rule } from './built-in-rules.js'
import { compileExpression, OP, type Characters, type Program } from './expressions.js'
import { MatchStarts, type MergedRules } from './match-starts.js'

const ASCII = 128

/** Code units that are scanned in one step of a large text: at most a few milliseconds. */
const STEP_UNITS = 1024
/** Instructions that are run in one step if each code unit runs all of them. */
const STEP_INSTRUCTIONS = 262_144

/** The rules that may begin with a character, by the first instructions of their programs. */
const NO_STARTS = new Int32Array(0)

/** The rules of a guardrail: built-in ones by their names, and expressions. */
export function ruleSetOf(guardrail: string, patterns: readonly string[]): RuleSet {
  return new RuleSet(
    patterns.map((pattern): Rule => builtInRule(pattern) ?? { name: guardrail, expression: pattern }),
  )
}

/** Rules with their merged program, in arrays: one index is one instruction. */
export class RuleSet implements MergedRules {
  readonly rules: readonly Rule[]
  readonly op: Uint8Array
  readonly out: Int32Array
  readonly other: Int32Array
  readonly conditions: Uint8Array
  /** The index of the rule whose instruction it is. */
  readonly ruleOf: Uint16Array
  /** The index in `sets` of the characters that an instruction takes. */
  readonly setOf: Uint16Array
  readonly sets: readonly Characters[]
  /** The first instruction of each rule. */
  readonly first: readonly number[]
  /** Code units that are scanned in one step. */
  readonly stepUnits: number
  /** Finds where matches begin in large texts. */
  readonly matchStarts: MatchStarts
  /** Whether an expression decides alone: no rule has a check, or a condition that RE2 cannot express. */
  readonly isExact: boolean
  /** Code units that may begin a match, as a fast filter. Others than ASCII are the last element. */
  readonly mayBegin: Uint8Array
  /** For each set and ASCII character, whether the set has it. */
  private readonly ascii: Uint8Array
  private readonly starts: readonly Int32Array[]
  /** The name of all rules; null if they have several. */
  readonly onlyName: string | null

  constructor(rules: readonly Rule[]) {
    this.rules = rules
    const name = rules[0]?.name ?? null
    this.onlyName = rules.every((rule) => rule.name === name) ? name : null
    const programs = rules.map(({ expression }) => compileExpression(expression))
    const size = programs.reduce((sum, { instructions }) => sum + instructions.length, 0)
    this.stepUnits = Math.max(1, Math.min(STEP_UNITS, Math.floor(STEP_INSTRUCTIONS / (size + 1))))
    this.op = new Uint8Array(size)
    this.out = new Int32Array(size)
    this.other = new Int32Array(size)
    this.conditions = new Uint8Array(size)
    this.ruleOf = new Uint16Array(size)
    this.setOf = new Uint16Array(size)
    const sets: Characters[] = []
    const indexes = new Map<string, number>()
    const indexOf = (characters: Characters): number => {
      const known = indexes.get(characters.id)
      if (known !== undefined) return known
      indexes.set(characters.id, sets.length)
      return sets.push(characters) - 1
    }
    const first: number[] = []
    let base = 0
    programs.forEach((program, rule) => {
      first.push(base + program.start)
      this.append(program, rule, base, indexOf)
      base += program.instructions.length
    })
    this.first = first
    this.sets = sets
    this.ascii = new Uint8Array(this.sets.length * ASCII)
    this.sets.forEach(({ has }, set) => {
      for (let char = 0; char < ASCII; char += 1) this.ascii[set * ASCII + char] = has(char) ? 1 : 0
    })
    this.starts = Array.from({ length: ASCII + 1 }, (_, char) => this.startsOf(first, char))
    this.mayBegin = Uint8Array.from(this.starts, (starts) => (starts.length > 0 ? 1 : 0))
    this.isExact = rules.every(({ check, isSeparate }) => check === undefined && isSeparate === undefined)
    this.matchStarts = new MatchStarts(this)
  }

  private append(
    { instructions }: Program,
    rule: number,
    base: number,
    indexOf: (characters: Characters) => number,
  ): void {
    instructions.forEach(({ op, out, other, conditions, characters }, index) => {
      const at = base + index
      this.op[at] = op
      this.out[at] = base + out
      this.other[at] = base + other
      this.conditions[at] = conditions
      this.ruleOf[at] = rule
      if (op === OP.char) this.setOf[at] = indexOf(characters)
    })
  }

  /** The first instructions of the rules that a character may begin; `ASCII` is any other character. */
  private startsOf(first: readonly number[], char: number): Int32Array {
    const fitting = first.filter((start) => this.begins(start, char))
    return fitting.length === 0 ? NO_STARTS : Int32Array.from(fitting)
  }

  private begins(start: number, char: number): boolean {
    const seen = new Set<number>()
    const waiting = [start]
    for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
      if (seen.has(at)) continue
      seen.add(at)
      const op = this.op[at]
      if (op === OP.char) {
        // Sets of characters outside ASCII are not listed: any of them may match.
        if (char === ASCII || this.takes(at, char)) return true
        continue
      }
      if (op === OP.fail || op === OP.match) continue
      waiting.push(this.out[at] ?? 0)
      if (op === OP.fork) waiting.push(this.other[at] ?? 0)
    }
    return false
  }

  /** The rules that a whole text may match, by a quick look at it; null if none does. */
  candidatesIn(text: string): Uint8Array | null {
    const hasDigit = /[0-9]/.test(text)
    const candidates = Uint8Array.from(this.rules, ({ needs, isSeparate }) => {
      if (needs === undefined) return isSeparate !== true || hasDigit ? 1 : 0
      return needs.some((needed) => text.includes(needed)) ? 1 : 0
    })
    return candidates.includes(1) ? candidates : null
  }

  /** The first instructions of the rules that the character may begin. */
  startsAt(codePoint: number): Int32Array {
    return this.starts[codePoint < ASCII ? codePoint : ASCII] ?? NO_STARTS
  }

  takes(at: number, codePoint: number): boolean {
    return this.has(this.setOf[at] ?? 0, codePoint)
  }

  /** Whether the set has the character. */
  has(set: number, codePoint: number): boolean {
    if (codePoint < ASCII) return this.ascii[set * ASCII + codePoint] === 1
    return this.sets[set]?.has(codePoint) === true
  }
}
