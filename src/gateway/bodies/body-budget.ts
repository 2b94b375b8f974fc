/**
 * Memory that requests and whole replies hold in this process, and the share of each account in it.
 * Counts what is really held: raw bytes, the text decoded from them, the parsed copy and the encoded one.
 */
import { isAscii } from 'node:buffer'
import type { JsonObject, JsonValue } from '../../chat/json.js'
import { longTextOf } from '../../chat/long-text.js'
import { GatewayError } from '../../errors.js'

/** One account may hold at most this share of the budget. */
const ACCOUNT_SHARE = 0.5
/** Bodies end in seconds. */
const RETRY_AFTER_SECONDS = 1

/** The budget of a process. */
export class BodyBudget {
  private readonly maxBytes: number
  private readonly accountBytes: number
  private held = 0
  private readonly accounts = new Map<string, number>()

  /** `maxBytes` for all accounts together; each may hold at most `accountBytes`, half of it by default. */
  constructor(maxBytes: number, accountBytes = maxBytes * ACCOUNT_SHARE) {
    this.maxBytes = maxBytes
    this.accountBytes = accountBytes
  }

  /** What is held at the moment. */
  get heldBytes(): number {
    return this.held
  }

  /** How many accounts hold something. */
  get size(): number {
    return this.accounts.size
  }

  /** What one exchange of the account will hold; nothing yet. */
  open(account: string): Holding {
    return new Holding(this, account)
  }

  /**
   * Throws `body_too_large` for what no account may ever hold, `rate_limited` if the account holds too much
   * already, `overloaded` if the process does. `heldBytes`: what the exchange itself holds.
   */
  assertRoom(account: string, bytes: number, heldBytes: number): void {
    const retry = { retryAfterSeconds: RETRY_AFTER_SECONDS }
    if (heldBytes + bytes > this.accountBytes) {
      const message = 'The body needs more memory than the gateway has for one account: send less.'
      throw new GatewayError('body_too_large', message)
    }
    if ((this.accounts.get(account) ?? 0) + bytes > this.accountBytes) {
      const message =
        'The requests of this account that are running are too large together; try again.'
      throw new GatewayError('rate_limited', message, retry)
    }
    if (this.held + bytes > this.maxBytes) {
      const message = 'The gateway holds too many request bodies; try again.'
      throw new GatewayError('overloaded', message, retry)
    }
  }

  /**
   * Whether work that may be left undone can hold the bytes: the account then holds at most `share` of the budget, and
   * all together at most half of it.
   */
  hasSpareRoom(account: string, bytes: number, share: number): boolean {
    const own = (this.accounts.get(account) ?? 0) + bytes
    return own <= this.maxBytes * share && this.held + bytes <= this.maxBytes / 2
  }

  /** For `Holding`: adds what it has taken, or takes off what it gives back. */
  count(account: string, bytes: number): void {
    this.held += bytes
    const held = (this.accounts.get(account) ?? 0) + bytes
    if (held > 0) this.accounts.set(account, held)
    else this.accounts.delete(account)
  }
}

/** What one exchange holds; `end` gives it all back. */
export class Holding {
  private readonly budget: BodyBudget
  private readonly account: string
  private bytes = 0
  private textBytes = 0
  private isOver = false

  constructor(budget: BodyBudget, account: string) {
    this.budget = budget
    this.account = account
  }

  /** What it holds now. */
  get heldBytes(): number {
    return this.bytes
  }

  /** Throws as `BodyBudget.assertRoom` if so many bytes more could not be held. Takes nothing. */
  check(bytes: number): void {
    this.budget.assertRoom(this.account, bytes, this.bytes)
  }

  /** Takes the bytes. Throws as `check`, and then takes nothing. After `end` nothing is taken. */
  take(bytes: number): void {
    if (this.isOver) return
    this.check(bytes)
    this.bytes += bytes
    this.budget.count(this.account, bytes)
  }

  /** Takes what the body needs until it is parsed, and its copies. Throws as `check`. */
  beginParsing(body: Buffer): void {
    const textBytes = textsOf(body)
    this.take(textBytes + copiesOf(body))
    this.textBytes = textBytes
  }

  /** The body is parsed: its texts are no longer held, and its structure is. Throws as `check`. */
  endParsing(body: JsonObject): void {
    this.give(this.textBytes)
    this.textBytes = 0
    this.take(structureOf(body))
  }

  /** As `take`, for a reply: that there is no room for it is never the request's fault. */
  takeReply(bytes: number): void {
    try {
      this.take(bytes)
    } catch (cause) {
      const message = 'The gateway holds too much to take the reply of the upstream; try again.'
      const retryAfterSeconds = RETRY_AFTER_SECONDS
      throw new GatewayError('overloaded', message, { retryAfterSeconds, cause })
    }
  }

  /** Gives all of it back, once. */
  end(): void {
    this.isOver = true
    this.give(this.bytes)
  }

  private give(bytes: number): void {
    const given = Math.min(bytes, this.bytes)
    this.bytes -= given
    if (given > 0) this.budget.count(this.account, -given)
  }
}

/**
 * What a JSON text takes besides its bytes: parsed, and encoded for the other side. V8 keeps a text with a
 * single character beyond Latin-1 at two bytes a character.
 */
export function copiesOf(bytes: Buffer): number {
  return bytes.length * (isAscii(bytes) ? 2 : 4)
}

/** The texts that are parsed: the bytes as Latin-1, and decoded if they are not ASCII. */
function textsOf(bytes: Buffer): number {
  return bytes.length * (isAscii(bytes) ? 1 : 3)
}

/** An object or array of V8 takes so much besides its texts, in the parsed body and in what is made of it. */
const NODE_BYTES = 128

/** What the structure of a parsed body takes, apart from its texts. Long texts stay encoded (`chat/long-text.ts`). */
function structureOf(body: JsonObject): number {
  let nodes = 0
  const pending: JsonValue[] = [body]
  for (let value = pending.pop(); value !== undefined; value = pending.pop()) {
    nodes += 1
    if (Array.isArray(value)) {
      for (const item of value) pending.push(item)
    } else if (typeof value === 'object' && value !== null) {
      for (const key of Object.keys(value)) {
        const inner = longTextOf(value, key) === null ? value[key] : null
        if (inner !== undefined) pending.push(inner)
      }
    }
  }
  return nodes * NODE_BYTES
}
