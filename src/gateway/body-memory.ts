/**
 * Limits the memory of request bodies and whole replies in this process, and the share of each account.
 * Counts the real use: raw bytes, the decoded text, the parsed copy and the encoded copy.
 */
import type { JsonObject, JsonValue } from '../base/json.js'
import { longTextOf } from '../formats/chat/long-text.js'
import { GatewayError } from '../errors.js'

/** One account may hold at most this share of the budget. */
const ACCOUNT_SHARE = 0.5
/** Most bodies are freed within seconds. */
const RETRY_AFTER_SECONDS = 1

/** The budget of a process. */
export class BodyMemory {
  private readonly maxBytes: number
  private readonly accountBytes: number
  private held = 0
  private readonly accounts = new Map<string, number>()

  /** `maxBytes` for all accounts together; each may hold at most `accountBytes`, half of it by default. */
  constructor(maxBytes: number, accountBytes = maxBytes * ACCOUNT_SHARE) {
    this.maxBytes = maxBytes
    this.accountBytes = accountBytes
  }

  /** Bytes in use. */
  get heldBytes(): number {
    return this.held
  }

  /** Number of accounts with bytes in use. */
  get size(): number {
    return this.accounts.size
  }

  /** Starts counting the memory of one exchange of the account, at 0 bytes. */
  open(account: string): HeldMemory {
    return new HeldMemory(this, account)
  }

  /**
   * Throws `body_too_large` if the exchange alone exceeds the share of an account, `rate_limited` if the
   * account does with its other requests, and `overloaded` if the process does. `heldBytes`: bytes of the
   * exchange itself.
   */
  assertRoom(account: string, bytes: number, heldBytes: number): void {
    const retry = { retryAfterSeconds: RETRY_AFTER_SECONDS }
    if (heldBytes + bytes > this.accountBytes) {
      const message = 'The body needs more memory than the gateway has for one account: send less.'
      throw new GatewayError('body_too_large', message)
    }
    if ((this.accounts.get(account) ?? 0) + bytes > this.accountBytes) {
      const message = 'The requests of this account that are running are too large together; try again.'
      throw new GatewayError('rate_limited', message, retry)
    }
    if (this.held + bytes > this.maxBytes) {
      const message = 'The gateway holds too many request bodies; try again.'
      throw new GatewayError('overloaded', message, retry)
    }
  }

  /**
   * Whether optional work may use the bytes: the account then uses at most `share` of the budget, and all
   * accounts together at most half of it.
   */
  hasSpareRoom(account: string, bytes: number, share: number): boolean {
    const accountBytes = (this.accounts.get(account) ?? 0) + bytes
    return accountBytes <= this.maxBytes * share && this.held + bytes <= this.maxBytes / 2
  }

  /** Adds the bytes to the counts; a negative number frees them. Called by `HeldMemory`. */
  count(account: string, bytes: number): void {
    this.held += bytes
    const held = (this.accounts.get(account) ?? 0) + bytes
    if (held > 0) this.accounts.set(account, held)
    else this.accounts.delete(account)
  }
}

/** The memory of the bodies of one exchange; `end` frees it. */
export class HeldMemory {
  private readonly budget: BodyMemory
  private readonly account: string
  private bytes = 0
  private textBytes = 0
  private isOver = false

  constructor(budget: BodyMemory, account: string) {
    this.budget = budget
    this.account = account
  }

  /** Bytes in use by the exchange. */
  get heldBytes(): number {
    return this.bytes
  }

  /** Throws as `BodyMemory.assertRoom` if this many more bytes do not fit. Takes nothing. */
  check(bytes: number): void {
    this.budget.assertRoom(this.account, bytes, this.bytes)
  }

  /** Takes the bytes. Throws as `check` and takes nothing in that case. Does nothing after `end`. */
  take(bytes: number): void {
    if (this.isOver) return
    this.check(bytes)
    this.bytes += bytes
    this.budget.count(this.account, bytes)
  }

  /**
   * Takes the memory for the strings during parsing, and for the copies of a body of this size. `isPlain`:
   * the body is ASCII. Throws as `check`.
   */
  beginParsing(bytes: number, isPlain: boolean): void {
    // The text for the parser: a byte a character, else two, and a copy while it is decoded.
    const textBytes = bytes * (isPlain ? 1 : 3)
    this.take(textBytes + copiesOf(bytes, isPlain))
    this.textBytes = textBytes
  }

  /** After parsing: frees the texts and takes the memory of the parsed structure. Throws as `check`. */
  endParsing(body: JsonObject): void {
    this.free(this.textBytes)
    this.textBytes = 0
    this.take(structureOf(body))
  }

  /** As `take`, for a reply; throws `overloaded` if it does not fit, since the client cannot send less. */
  takeReply(bytes: number): void {
    try {
      this.take(bytes)
    } catch (cause) {
      const message = 'The gateway has no memory for the reply of the upstream; try again.'
      const retryAfterSeconds = RETRY_AFTER_SECONDS
      throw new GatewayError('overloaded', message, { retryAfterSeconds, cause })
    }
  }

  /** Frees bytes that `take` took, before the end. */
  release(bytes: number): void {
    this.free(bytes)
  }

  /** Frees all bytes; later calls of `take` do nothing. */
  end(): void {
    this.isOver = true
    this.free(this.bytes)
  }

  /** Gives bytes back before the end. */
  free(bytes: number): void {
    const given = Math.min(bytes, this.bytes)
    this.bytes -= given
    if (given > 0) this.budget.count(this.account, -given)
  }
}

/**
 * The memory of the copies of a JSON text: parsed, and encoded for the other side. V8 stores a string with
 * any character outside Latin-1 at two bytes a character.
 */
export function copiesOf(bytes: number, isPlain: boolean): number {
  return bytes * (isPlain ? 2 : 4)
}

/** Memory of an object or array without its strings, in the parsed body and in the encoded one. */
const NODE_BYTES = 128

/**
 * The memory of a parsed body's structure without its texts. Long texts stay encoded
 * (`formats/chat/long-text.ts`).
 */
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
