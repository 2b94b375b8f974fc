/**
 * Finds the matches of a set of rules in one text that arrives in parts, and replaces them. Each decision
 * depends on the text alone, character by character, so the result is the same for every division into parts.
 * Takes time linear in the text for each instruction of the rules, and never goes back further than `limit`.
 */
import type { Steps } from '../../base/steps.js'
import type { Starts } from './match-starts.js'
import { conditionsBetween, EDGE, isDigit, OP } from './expressions.js'
import type { RuleSet } from './rule-set.js'

/** The end of released text that checks and conditions may still read, in code units. */
const CONTEXT = 256
/** Code units of a part in which the beginnings of matches are found first. */
const LARGE = 4_096

/** A match so far. */
interface Match {
  readonly rule: number
  readonly start: number
  /** Raised while the match grows. */
  end: number
}

/** Live positions in the program with the beginning of their match, in ascending order of it. */
class Threads {
  readonly at: Int32Array
  readonly start: Float64Array
  size = 0

  constructor(capacity: number) {
    this.at = new Int32Array(capacity)
    this.start = new Float64Array(capacity)
  }

  add(at: number, start: number): void {
    this.at[this.size] = at
    this.start[this.size] = start
    this.size += 1
  }
}

/** The lists of a scan, which the next one uses again: they take more time than the scan of a short text. */
export class ScanLists {
  readonly seen: Int32Array
  readonly stack: Int32Array
  readonly threads: Threads
  readonly next: Threads
  /** The number in `seen` of the last character. */
  round = 0

  constructor({ op }: RuleSet) {
    const size = op.length + 1
    this.threads = new Threads(size)
    this.next = new Threads(size)
    this.seen = new Int32Array(size)
    this.stack = new Int32Array(size * 2)
  }
}

/** What a match does: it is replaced, or only noted. */
type ScanMode = 'mask' | 'find'

/** How a text is scanned. */
interface ScanOptions {
  readonly mode: ScanMode
  /** Maximum number of characters that are held back. */
  readonly limit: number
  /** Whether a rule may match, by its index; null or absent: any may. */
  readonly candidates?: Uint8Array | null
  /** Of a scan that has ended; absent: new ones. */
  readonly lists?: ScanLists
}

/** The scan of one text. Positions are code units from its beginning. */
export class TextScan {
  /** The name of the first rule that matched; null if none has. */
  found: string | null = null
  private readonly rules: RuleSet
  private readonly mode: ScanMode
  /** Maximum number of characters that are held back. */
  private readonly limit: number
  /** The text from `base` on. */
  private text = ''
  private base = 0
  /** The next character to read; what is before `released` was released. */
  private at = 0
  private released = 0
  /** Characters from `released` to `at`. */
  private withheld = 0
  private before = EDGE
  private threads: Threads
  private next: Threads
  private readonly lists: ScanLists
  private readonly seen: Int32Array
  private readonly stack: Int32Array
  /** The character that threads are followed to, and the conditions before it. */
  private char = EDGE
  private conditions = 0
  private best: Match | null = null
  /** A match that was replaced and still grows. */
  private growing: Match | null = null
  /** The text up to this one belongs to the match that was replaced last. */
  private until: string | null = null
  private readonly ready = new Fragments()
  /** The end of the released text that is in `ready`: one copy for each match, not for each character. */
  private copied = 0
  private hasEnded = false
  /** The places at which a match can begin; null if they are not known. */
  private starts: Starts | null = null
  /** Only the first match that can begin is followed: it is the one that counts. */
  private isAlone = false
  /** A long match was followed alone, and all are now, since another one may end before it. */
  private isCrowded = false

  /** Whether a rule may match, by its index; null: any may. */
  private readonly candidates: Uint8Array | null

  constructor(rules: RuleSet, { mode, limit, candidates = null, lists = new ScanLists(rules) }: ScanOptions) {
    this.rules = rules
    this.candidates = candidates
    this.mode = mode
    this.limit = limit
    this.lists = lists
    this.threads = lists.threads
    this.next = lists.next
    this.threads.size = 0
    this.next.size = 0
    this.seen = lists.seen
    this.stack = lists.stack
  }

  /** Takes a part of the text; returns what can be released of the text so far. */
  write(part: string): string {
    this.add(part)
    while (!this.advance());
    return this.take()
  }

  /** The text has ended: returns the rest. */
  end(): string {
    this.hasEnded = true
    while (!this.advance());
    return this.take()
  }

  /** `write`, or with `isLast` also `end`, in steps. */
  *steps(part: string, isLast: boolean): Steps<string> {
    this.add(part)
    if (part.length >= LARGE) yield* this.findStarts(isLast)
    while (!this.advance()) yield
    if (isLast) {
      this.hasEnded = true
      while (!this.advance()) yield
    }
    return this.take()
  }

  private *findStarts(isLast: boolean): Steps<void> {
    const { rules, at, base, before, mode, text, isIdle } = this
    const starts = yield* rules.matchStarts.in(text.slice(at - base), { from: at, before, isLast })
    this.starts = starts
    if (starts === null || !isLast || !rules.isExact || !isIdle) return
    if (mode === 'mask') this.isAlone = true
    else if (!starts.isEmpty) this.found = rules.onlyName
  }

  /** Code units that are released and not taken. */
  get readyUnits(): number {
    return this.ready.length
  }

  /** What was not taken: masked as far unchanged released, then the text unchanged. */
  get rest(): string {
    return this.ready.text + this.text.slice(this.copied - this.base)
  }

  private add(part: string): void {
    this.text += part
  }

  private take(): string {
    this.copy()
    const ready = this.ready.take()
    const keptFrom = Math.max(this.base, Math.min(this.released, this.at) - CONTEXT)
    if (keptFrom > this.base) {
      this.text = this.text.slice(keptFrom - this.base)
      this.base = keptFrom
    }
    return ready
  }

  /** Scans one step; true if all that has arrived was scanned. */
  private advance(): boolean {
    const stepEnd = this.at + this.rules.stepUnits
    for (;;) {
      if (this.isDone) {
        this.releaseTo(this.textEnd)
        this.at = this.textEnd
        return true
      }
      if (this.until !== null && !this.passTail(this.until)) return true
      if (this.isIdle) this.skip()
      if (this.at >= stepEnd) return false
      const char = this.peek()
      if (char === null) return true
      if (char !== EDGE) {
        this.step(char)
        continue
      }
      this.expand(EDGE)
      this.threads.size = 0
      if (!this.decide(true)) {
        this.releaseTo(this.textEnd)
        return true
      }
    }
  }

  private get textEnd(): number {
    return this.base + this.text.length
  }

  /** Only the first match counts. */
  private get isDone(): boolean {
    return this.mode === 'find' && this.found !== null
  }

  private get isIdle(): boolean {
    return this.threads.size === 0 && this.best === null && this.growing === null
  }

  /** The next character; `EDGE` at the end of the text; null if more of the text must arrive first. */
  private peek(): number | null {
    const index = this.at - this.base
    if (index >= this.text.length) return this.hasEnded ? EDGE : null
    const char = this.text.codePointAt(index) ?? EDGE
    const isHalf = char >= 0xd800 && char <= 0xdbff && index + 1 === this.text.length
    return isHalf && !this.hasEnded ? null : char
  }

  /** Passes characters that begin no match. */
  private skip(): void {
    const { text, base, starts } = this
    const { mayBegin } = this.rules
    let index = this.at - base
    if (starts?.covers(this.at) === true) {
      const next = Math.min(starts.next(this.at), this.textEnd)
      if (next > this.at) this.before = text.charCodeAt(next - base - 1)
      index = next - base
    }
    for (; index < text.length; index += 1) {
      const unit = text.charCodeAt(index)
      if (mayBegin[unit < 128 ? unit : 128] === 1) break
      this.before = unit
    }
    this.at = base + index
    this.releaseTo(this.at)
    this.withheld = 0
  }

  /** Reads one character. */
  private step(char: number): void {
    this.expand(char)
    const { threads, next } = this
    this.threads = next
    this.next = threads
    next.size = this.sizeBefore(next)
    this.at += char > 0xffff ? 2 : 1
    this.withheld += 1
    this.before = char
    if (this.isDone) return
    if (this.growing !== null) {
      if (next.size === 0 || this.withheld >= this.limit) this.restart(this.growing.end)
      return
    }
    if (this.decide(false)) return
    if (this.isAlone && !this.isCrowded && this.best === null && this.withheld >= this.limit) {
      this.restart(next.start[0] ?? this.at)
      this.isCrowded = true
      return
    }
    const first = next.size === 0 ? this.at : (next.start[0] ?? this.at)
    this.releaseTo(Math.min(first, this.best?.start ?? first))
    while (this.withheld > this.limit) this.releaseOne()
  }

  /** The number of threads that begin no later than the best match. */
  private sizeBefore({ size, start }: Threads): number {
    if (this.best === null) return size
    const last = this.best.start
    let kept = size
    while (kept > 0 && (start[kept - 1] ?? 0) > last) kept -= 1
    return kept
  }

  /** Follows all threads to the next character, which `char` is, and starts those that it begins. */
  private expand(char: number): void {
    const { threads, next, best, growing, rules } = this
    this.lists.round += 1
    next.size = 0
    this.char = char
    this.conditions = conditionsBetween(this.before, char)
    for (let index = 0; index < threads.size; index += 1) {
      this.follow(threads.at[index] ?? 0, threads.start[index] ?? 0)
    }
    if (best !== null || growing !== null || char === EDGE || !this.canBegin) return
    for (const first of rules.startsAt(char)) {
      if (this.candidates?.[rules.ruleOf[first] ?? 0] === 0) continue
      const { isSeparate } = rules.rules[rules.ruleOf[first] ?? 0] ?? {}
      if (isSeparate === true && isDigit(this.before)) continue
      this.follow(first, this.at)
    }
  }

  /** Whether a match can begin at the next character. */
  private get canBegin(): boolean {
    const { starts, at } = this
    if (starts?.covers(at) !== true) return true
    if (this.isAlone && !this.isCrowded && this.threads.size > 0) return false
    return starts.has(at)
  }

  private follow(from: number, start: number): void {
    const { rules, seen, stack, next, char, conditions } = this
    const { round } = this.lists
    const { op, out } = rules
    let depth = 0
    stack[depth++] = from
    while (depth > 0) {
      const at = stack[--depth] ?? 0
      if (seen[at] === round) continue
      seen[at] = round
      switch (op[at]) {
        case OP.char:
          if (char !== EDGE && rules.takes(at, char)) next.add(out[at] ?? 0, start)
          break
        case OP.fork:
          stack[depth++] = rules.other[at] ?? 0
          stack[depth++] = out[at] ?? 0
          break
        case OP.empty: {
          const needed = rules.conditions[at] ?? 0
          if ((needed & ~conditions) === 0) stack[depth++] = out[at] ?? 0
          break
        }
        case OP.pass:
          stack[depth++] = out[at] ?? 0
          break
        case OP.match:
          this.matched(rules.ruleOf[at] ?? 0, start, char)
          break
        default:
      }
    }
  }

  /** A candidate ends before `char`. */
  private matched(rule: number, start: number, char: number): void {
    const { best, growing } = this
    const { isSeparate, check, name = '' } = this.rules.rules[rule] ?? {}
    if (isSeparate === true && isDigit(char)) return
    if (growing !== null) {
      if (start !== growing.start) return
      growing.end = this.at
      this.released = this.at
      this.copied = this.at
      this.withheld = 0
      return
    }
    if (best !== null && (start > best.start || (start === best.start && best.end >= this.at))) {
      return
    }
    if (check?.(this.slice(start, this.at)) === false) return
    this.found ??= name
    this.best = { rule, start, end: this.at }
  }

  /**
   * Replaces the best match if no other can take its place, or if the withheld text is full. True if the scan
   * continues at another place.
   */
  private decide(isEnd: boolean): boolean {
    const { best, threads } = this
    if (best === null) return false
    const isFull = this.withheld >= this.limit && this.released >= best.start
    if (!isEnd && !isFull && threads.size > 0) return false
    this.best = null
    this.releaseTo(Math.max(best.start, this.released))
    const rule = this.rules.rules[best.rule]
    this.copy()
    this.ready.add(`[${rule?.name ?? ''}]`)
    this.released = best.end
    this.copied = best.end
    if (rule?.until !== undefined) {
      this.until = rule.until(this.slice(best.start, best.end))
      this.restart(best.end)
      return true
    }
    const grows = isEnd ? 0 : keepOnly(threads, best.start)
    if (grows === 0) {
      this.restart(best.end)
      return true
    }
    this.growing = best
    this.withheld = this.count(best.end, this.at)
    return true
  }

  /** Continues behind a match. */
  private restart(at: number): void {
    this.growing = null
    this.isCrowded = false
    this.threads.size = 0
    this.at = at
    this.copy()
    this.released = at
    this.copied = at
    this.withheld = 0
    this.before = at === 0 ? EDGE : this.text.charCodeAt(at - 1 - this.base)
  }

  /** Drops the text up to `tail`; false if it has not arrived. */
  private passTail(tail: string): boolean {
    const index = this.text.indexOf(tail, this.at - this.base)
    const found = index >= 0
    const end = found
      ? this.base + index + tail.length
      : Math.max(this.at, this.textEnd - (this.hasEnded ? 0 : tail.length - 1))
    if (found) this.until = null
    if (end > this.at) this.restart(end)
    return found
  }

  private releaseTo(end: number): void {
    if (end <= this.released) return
    this.withheld -= this.count(this.released, end)
    this.released = end
  }

  /** Copies what was released to the result. */
  private copy(): void {
    this.ready.add(this.text.slice(this.copied - this.base, this.released - this.base))
    this.copied = this.released
  }

  private releaseOne(): void {
    const char = this.text.codePointAt(this.released - this.base) ?? 0
    this.releaseTo(this.released + (char > 0xffff ? 2 : 1))
  }

  /** The number of characters. */
  private count(from: number, to: number): number {
    let units = to - from
    for (let index = from - this.base; index < to - this.base; index += 1) {
      const unit = this.text.charCodeAt(index)
      if (unit >= 0xdc00 && unit <= 0xdfff && index > 0) units -= 1
    }
    return units
  }

  private slice(from: number, to: number): string {
    return this.text.slice(Math.max(0, from - this.base), to - this.base)
  }
}

/** Fragments that are joined early: a long list of them takes several times the memory of its text. */
const MAX_FRAGMENTS = 4_096

/** A text that is made of many fragments. */
export class Fragments {
  /** Code units. */
  length = 0
  private fragments: string[] = []
  private readonly joined: string[] = []

  add(fragment: string): void {
    if (fragment === '') return
    this.length += fragment.length
    this.fragments.push(fragment)
    if (this.fragments.length < MAX_FRAGMENTS) return
    this.joined.push(this.fragments.join(''))
    this.fragments = []
  }

  get text(): string {
    return this.joined.join('') + this.fragments.join('')
  }

  take(): string {
    const { text } = this
    this.length = 0
    this.joined.length = 0
    this.fragments = []
    return text
  }
}

/** Keeps the threads of one match; returns their number. */
function keepOnly(threads: Threads, start: number): number {
  let kept = 0
  for (let index = 0; index < threads.size; index += 1) {
    if (threads.start[index] !== start) continue
    threads.at[kept] = threads.at[index] ?? 0
    threads.start[kept] = start
    kept += 1
  }
  threads.size = kept
  return kept
}
