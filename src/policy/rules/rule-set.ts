/** The rules of one guardrail, merged to one program that `text-scan.ts` runs. */
import type { Rule } from './built-in-rules.js'
import { compileExpression, OP, type Program } from './expressions.js'

const ASCII = 128

/** The rules that may begin with a character, by the first instructions of their programs. */
const NO_STARTS = new Int32Array(0)

/** Rules with their merged program, in arrays: one index is one instruction. */
export class RuleSet {
  readonly rules: readonly Rule[]
  readonly op: Uint8Array
  readonly out: Int32Array
  readonly other: Int32Array
  readonly conditions: Uint8Array
  /** The index of the rule whose instruction it is. */
  readonly ruleOf: Uint16Array
  /** Code units that may begin a match, as a fast filter. Others than ASCII are the last element. */
  readonly mayBegin: Uint8Array
  /** For each ASCII character, whether an instruction takes it. */
  private readonly ascii: Uint8Array
  private readonly matchers: readonly ((codePoint: number) => boolean)[]
  private readonly starts: readonly Int32Array[]

  constructor(rules: readonly Rule[]) {
    this.rules = rules
    const programs = rules.map(({ expression }) => compileExpression(expression))
    const size = programs.reduce((sum, { instructions }) => sum + instructions.length, 0)
    this.op = new Uint8Array(size)
    this.out = new Int32Array(size)
    this.other = new Int32Array(size)
    this.conditions = new Uint8Array(size)
    this.ruleOf = new Uint16Array(size)
    this.ascii = new Uint8Array(size * ASCII)
    const matchers: ((codePoint: number) => boolean)[] = []
    const first: number[] = []
    programs.forEach((program, rule) => {
      first.push(matchers.length + program.start)
      this.append(program, rule, matchers)
    })
    this.matchers = matchers
    this.starts = Array.from({ length: ASCII + 1 }, (_, char) => this.startsOf(first, char))
    this.mayBegin = Uint8Array.from(this.starts, (starts) => (starts.length > 0 ? 1 : 0))
  }

  private append(
    { instructions }: Program,
    rule: number,
    matchers: ((codePoint: number) => boolean)[],
  ): void {
    const base = matchers.length
    for (const { op, out, other, conditions, matches } of instructions) {
      const at = matchers.length
      this.op[at] = op
      this.out[at] = base + out
      this.other[at] = base + other
      this.conditions[at] = conditions
      this.ruleOf[at] = rule
      if (op === OP.char) {
        for (let char = 0; char < ASCII; char += 1) {
          this.ascii[at * ASCII + char] = matches(char) ? 1 : 0
        }
      }
      matchers.push(matches)
    }
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
        if (char === ASCII || this.ascii[at * ASCII + char] === 1) return true
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
    if (codePoint < ASCII) return this.ascii[at * ASCII + codePoint] === 1
    return this.matchers[at]?.(codePoint) === true
  }
}
