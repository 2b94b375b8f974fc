/**
 * Finds where the matches of a set of rules begin, before `text-scan.ts` follows them: it reads the text from
 * its end and keeps the set of instructions from which a match is reached. Most expressions have few such
 * sets, and each is computed once (a lazy automaton): then a character costs one look into a table. The
 * result is exact, apart from what `Rule.check` and `isSeparate` refuse.
 *
 * Time of CPU on one core, in ms, for 2 MB under `[A-Za-z0-9+/]{40,200}={0,2}\.corp`, base64 without a match
 * and full of them, 1 MB of `a` and one `b` under `(a+)+$`, and 1 MB under `a.{0,500}b.{0,500}c$`:
 *
 *   text-scan.ts alone     over 20,000  over 20,000    900  over 20,000
 *   with this file                  70          350     20           25
 *   re2js 2.10.0                     1       36,000     60       51,000  (cannot be interrupted)
 *   re2-wasm 1.0.2                 950          980     70          610  (only whether one matches)
 *   rregex 1.13.1 (Rust)           180          720     90          270  (another syntax, no longest match)
 *
 * `re2` is compiled by a script at its installation, which npm may refuse.
 */
import type { Steps } from '../../base/steps.js'
import { conditionsBetween, EDGE, isWord, OP, type Characters } from './expressions.js'

/** Characters below it have places in tables. */
const ASCII = 128

/** Work in one step, in instructions: at most a few milliseconds. */
const STEP_WORK = 65_536
/** Work for a set of instructions, besides that for each of its members. */
const NEW_SET_WORK = 16
/** A set that enters the table takes more. */
const NEW_SET_FACTOR = 4
/** Numbers in the table of one set of rules. With the members of the sets they take 8 MB. */
const MAX_NUMBERS = 1_048_576
/** A table that is full after fewer characters for each set is not worth its work. */
const MIN_CHARS_A_SET = 10
/** More without a table is not worth it. */
const MAX_WORK_A_CHAR = 64
/** Classes of characters for which a new table has room. */
const FIRST_CLASSES = 16
/** Sets for which a new table has room. */
const FIRST_SETS = 16
/** Characters outside the first plane whose class is kept. */
const MAX_RARE = 4_096

/** The positions at which a match begins, in a text from `from` to `end`. */
export class Starts {
  private readonly from: number
  private readonly end: number
  private readonly bits: Uint32Array

  constructor(from: number, length: number) {
    this.from = from
    this.end = from + length
    this.bits = new Uint32Array((length + 31) >>> 5)
  }

  add(index: number): void {
    this.bits[index >>> 5] = (this.bits[index >>> 5] ?? 0) | (1 << (index & 31))
  }

  get isEmpty(): boolean {
    return this.bits.every((bits) => bits === 0)
  }

  /** Whether the position is in the text. A match that began before it may lead back there. */
  covers(at: number): boolean {
    return at >= this.from && at < this.end
  }

  has(at: number): boolean {
    const index = at - this.from
    return ((this.bits[index >>> 5] ?? 0) & (1 << (index & 31))) !== 0
  }

  /** The first position from `at` on; `end` if there is none. */
  next(at: number): number {
    const { bits, from, end } = this
    let index = at - from
    while (from + index < end) {
      const rest = (bits[index >>> 5] ?? 0) >>> (index & 31)
      if (rest !== 0) return from + index + 31 - Math.clz32(rest & -rest)
      index = (index | 31) + 1
    }
    return end
  }
}

/** The programs of rules in arrays, as `RuleSet` has them. */
export interface MergedRules {
  readonly op: Uint8Array
  readonly out: Int32Array
  readonly other: Int32Array
  readonly conditions: Uint8Array
  readonly setOf: Uint16Array
  readonly sets: readonly Characters[]
  readonly first: readonly number[]
  has(set: number, codePoint: number): boolean
}

/** Characters of the same sets of characters, which conditions cannot distinguish either, are one class. */
class CharacterClasses {
  /** Without conditions, words and lines are alike. */
  private readonly hasConditions: boolean
  private readonly rules: MergedRules
  private readonly ascii: Uint16Array
  /** Of the first plane, one more than the class; 0 is not known. */
  private wide: Uint16Array | null = null
  private readonly rare = new Map<number, number>()
  private readonly bySignature = new Map<string, number>()
  private readonly members: Uint8Array[] = []
  private readonly near: number[] = []

  constructor(rules: MergedRules) {
    this.rules = rules
    this.hasConditions = rules.conditions.some((conditions) => conditions !== 0)
    this.ascii = Uint16Array.from({ length: ASCII }, (_, char) => this.classify(char))
  }

  get size(): number {
    return this.members.length
  }

  of(char: number): number {
    if (char < ASCII) return this.ascii[char] ?? 0
    if (char > 0xffff) {
      const known = this.rare.get(char)
      if (known !== undefined) return known
      if (this.rare.size >= MAX_RARE) this.rare.clear()
      const found = this.classify(char)
      this.rare.set(char, found)
      return found
    }
    this.wide ??= new Uint16Array(0x10000)
    const known = this.wide[char] ?? 0
    if (known > 0) return known - 1
    const found = this.classify(char)
    this.wide[char] = found + 1
    return found
  }

  has(of: number, set: number): boolean {
    return this.members[of]?.[set] === 1
  }

  /** A character that meets the same conditions as those of the class. */
  like(of: number): number {
    return this.near[of] ?? SPACE
  }

  private classify(char: number): number {
    const { rules } = this
    const near = this.hasConditions ? likeOf(char) : SPACE
    const members = Uint8Array.from(rules.sets, (_, set) => (rules.has(set, char) ? 1 : 0))
    const signature = `${near} ${members.join('')}`
    const known = this.bySignature.get(signature)
    if (known !== undefined) return known
    this.bySignature.set(signature, this.members.length)
    this.near.push(near)
    return this.members.push(members) - 1
  }
}

const SPACE = 32
const LETTER = 97
const NEWLINE = 10

/** A character that conditions cannot distinguish from this one. */
function likeOf(char: number): number {
  if (char === EDGE || char === NEWLINE) return char
  return isWord(char) ? LETTER : SPACE
}

/** A set of instructions that take the next character on the way to a match. */
interface ReachingSet {
  readonly members: Uint16Array
  /** A character like the next one. */
  readonly near: number
}

/** The set before the end of the text. */
const END: ReachingSet = { members: new Uint16Array(0), near: EDGE }
/** The text goes on: any instruction may reach a match. */
const ANY: ReachingSet = { members: new Uint16Array(0), near: SPACE }

/** How far a text was read. */
interface Progress {
  /** Everything from here on was read. */
  at: number
  /** At this place. */
  set: ReachingSet
  /** Whether the table is worth its work. */
  usesTable: boolean
  /** Work for characters that were read without the table. */
  work: number
  chars: number
}

/** A text and its place. */
interface StartsOptions {
  readonly from: number
  /** The character before the text, or `EDGE`. */
  readonly before: number
  /** No more text follows. */
  readonly isLast: boolean
}

/** The automaton of the rules of one guardrail. It keeps its table from one text to the next. */
export class MatchStarts {
  private readonly rules: MergedRules
  private readonly classes: CharacterClasses
  /** The instructions that lead to one without a character, by the latter. */
  private readonly leading: Lists
  /** The instructions that lead to one with a character. */
  private readonly takers: Lists
  private readonly matches: readonly number[]

  private sets: ReachingSet[] = []
  private readonly bySignature = new Map<string, number>()
  /** By set and class: 0 if not known, else one more than twice the next set, plus 1 if a match begins. */
  private table = new Int32Array(0)
  private width = FIRST_CLASSES
  private numbers = 0
  private charsSinceClear = 0

  private readonly reached: Int32Array
  private readonly seen: Int32Array
  private reachedCount = 0
  private round = 0
  private readonly taking: Uint16Array
  private takingCount = 0
  /** Work of the last step. */
  private stepWork = 0

  constructor(rules: MergedRules) {
    const { op, out, other } = rules
    const size = op.length
    this.rules = rules
    this.classes = new CharacterClasses(rules)
    const leading: Pair[] = []
    const takers: Pair[] = []
    const matches: number[] = []
    op.forEach((each, at) => {
      if (each === OP.match) matches.push(at)
      else if (each === OP.char) takers.push([out[at] ?? 0, at])
      else if (each !== OP.fail) leading.push([out[at] ?? 0, at])
      if (each === OP.fork) leading.push([other[at] ?? 0, at])
    })
    this.leading = new Lists(size, leading)
    this.takers = new Lists(size, takers)
    this.matches = matches
    this.reached = new Int32Array(size)
    this.seen = new Int32Array(size)
    this.taking = new Uint16Array(size)
  }

  /**
   * The positions at which a match begins; near the end of a text that is not the last one, those at which a
   * match may begin. Null if finding them takes more work than following all that may begin.
   */
  *in(text: string, { from, before, isLast }: StartsOptions): Steps<Starts | null> {
    // The first half of a character is no character.
    const length = text.length - (!isLast && isHigh(text.charCodeAt(text.length - 1)) ? 1 : 0)
    const starts = new Starts(from, length)
    const progress: Progress = { at: length, set: isLast ? END : ANY, usesTable: true, work: 0, chars: 0 }
    while (progress.at > 0) {
      if (progress.work > progress.chars * MAX_WORK_A_CHAR) return null
      if (progress.usesTable) this.readByTable(text, progress, starts)
      else this.read(text, progress, starts)
      yield
    }
    if (length > 0 && this.step(progress.set, likeOf(before), null)) starts.add(0)
    return starts
  }

  private readByTable(text: string, progress: Progress, starts: Starts): void {
    let { at } = progress
    let set = this.indexOf(progress.set)
    let work = STEP_WORK
    let { table, width } = this
    while (at > 0 && work > 0 && progress.usesTable) {
      const char = charBefore(text, at)
      const of = this.classes.of(char)
      if (of >= width) {
        const { [set]: current = ANY } = this.sets
        this.widen()
        set = this.indexOf(current)
        ;({ table, width } = this)
      }
      let next = table[set * width + of] ?? 0
      if (next === 0) {
        next = this.computed(set, of, progress)
        work -= this.stepWork * NEW_SET_FACTOR
        ;({ table } = this)
      }
      if ((next & 1) === 1) starts.add(at)
      set = (next >> 1) - 1
      at -= char > 0xffff ? 2 : 1
      work -= 1
    }
    this.charsSinceClear += progress.at - at
    progress.at = at
    progress.set = this.sets[set] ?? ANY
  }

  /** Without the table. */
  private read(text: string, progress: Progress, starts: Starts): void {
    let { at, set } = progress
    let work = STEP_WORK
    while (at > 0 && work > 0) {
      const char = charBefore(text, at)
      const of = this.classes.of(char)
      if (this.step(set, this.classes.like(of), of)) starts.add(at)
      set = this.takingSet(of)
      at -= char > 0xffff ? 2 : 1
      work -= this.stepWork
      progress.chars += 1
    }
    progress.work += STEP_WORK - work
    progress.at = at
    progress.set = set
  }

  /** The element of the table for a set and a class. */
  private computed(set: number, of: number, progress: Progress): number {
    const { sets, charsSinceClear } = this
    const begins = this.step(sets[set] ?? ANY, this.classes.like(of), of)
    const reaching = this.takingSet(of)
    reaching.members.sort()
    const next = (this.indexOf(reaching) + 1) * 2 + (begins ? 1 : 0)
    // A new table has other indexes.
    if (this.sets === sets) this.table[set * this.width + of] = next
    else progress.usesTable = charsSinceClear >= sets.length * MIN_CHARS_A_SET
    return next
  }

  /**
   * Goes back over one character: whether a match begins behind it. `taking` has the instructions that take
   * it then. `of`: its class; null at the beginning of the text.
   */
  private step(set: ReachingSet, char: number, of: number | null): boolean {
    const { rules, classes, leading, takers, reached, seen, taking } = this
    const { conditions, setOf, first } = rules
    this.takingCount = 0
    if (set === ANY) {
      for (const at of takers.items)
        if (of !== null && classes.has(of, setOf[at] ?? 0)) taking[this.takingCount++] = at
      this.stepWork = takers.items.length
      return false
    }
    const met = conditionsBetween(char, set.near)
    this.round += 1
    this.reachedCount = 0
    for (const at of this.matches) this.reach(at)
    for (const at of set.members) this.reach(at)
    for (let index = 0; index < this.reachedCount; index += 1) {
      const at = reached[index] ?? 0
      const end = leading.starts[at + 1] ?? 0
      for (let each = leading.starts[at] ?? 0; each < end; each += 1) {
        const lead = leading.items[each] ?? 0
        if (((conditions[lead] ?? 0) & ~met) === 0) this.reach(lead)
      }
      if (of === null) continue
      const takersEnd = takers.starts[at + 1] ?? 0
      for (let each = takers.starts[at] ?? 0; each < takersEnd; each += 1) {
        const taker = takers.items[each] ?? 0
        if (classes.has(of, setOf[taker] ?? 0)) taking[this.takingCount++] = taker
      }
    }
    this.stepWork = this.reachedCount + NEW_SET_WORK
    return first.some((start) => seen[start] === this.round)
  }

  private reach(at: number): void {
    if (this.seen[at] === this.round) return
    this.seen[at] = this.round
    this.reached[this.reachedCount++] = at
  }

  /** The set of the instructions that take a character of the class. */
  private takingSet(of: number): ReachingSet {
    return { members: this.taking.slice(0, this.takingCount), near: this.classes.like(of) }
  }

  private indexOf(set: ReachingSet): number {
    const signature = set === ANY ? 'any' : String.fromCharCode(set.near + 1, ...set.members)
    const known = this.bySignature.get(signature)
    if (known !== undefined) return known
    if (this.numbers >= MAX_NUMBERS) this.clear()
    const index = this.sets.push(set) - 1
    this.bySignature.set(signature, index)
    this.numbers += this.width + set.members.length
    if (this.sets.length * this.width > this.table.length) {
      const table = new Int32Array(Math.max(this.width * FIRST_SETS, this.table.length * 2))
      table.set(this.table)
      this.table = table
    }
    return index
  }

  private widen(): void {
    while (this.width < this.classes.size) this.width *= 2
    this.clear()
  }

  private clear(): void {
    this.sets = []
    this.bySignature.clear()
    this.table = new Int32Array(0)
    this.numbers = 0
    this.charsSinceClear = 0
  }
}

type Pair = readonly [key: number, item: number]

/** A list of numbers for each number below `size`. */
class Lists {
  /** The items of `key` are from `starts[key]` to `starts[key + 1]`. */
  readonly starts: Int32Array
  readonly items: Int32Array

  constructor(size: number, pairs: readonly Pair[]) {
    const starts = new Int32Array(size + 1)
    for (const [key] of pairs) starts[key + 1] = (starts[key + 1] ?? 0) + 1
    for (let key = 0; key < size; key += 1) starts[key + 1] = (starts[key + 1] ?? 0) + (starts[key] ?? 0)
    this.starts = starts
    this.items = Int32Array.from(
      [...pairs].sort(([one], [other]) => one - other),
      ([, item]) => item,
    )
  }
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}

/** The character that ends at a position. */
function charBefore(text: string, at: number): number {
  const unit = text.charCodeAt(at - 1)
  const isLow = unit >= 0xdc00 && unit <= 0xdfff && at > 1
  return isLow && isHigh(text.charCodeAt(at - 2)) ? (text.codePointAt(at - 2) ?? unit) : unit
}
