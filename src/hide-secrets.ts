/**
 * Hides secrets in texts that leave the process: error messages, log lines, ledger entries, the ops port.
 * Finds the configured secrets of this process and texts that look like a key or a token. Successful replies
 * are not searched (decision 0062).
 */

/** Shorter secrets are not searched for, because they occur in ordinary words. */
const MIN_CHARS = 8
/** A prefix of a secret of this length is hidden too, because messages truncate keys. */
const PREFIX_CHARS = 12
/** Upstreams' error texts are searched for any part of a secret of this length. */
const PART_CHARS = 16
/** Number of configurations whose secrets stay hidden, for running requests and delayed log lines. */
const MAX_SETS = 20
/** Only the start of a longer value, such as a certificate, is searched for. */
const MAX_CHARS = 4_096
/**
 * What follows a part of a secret goes with it: otherwise a client that sends the beginning of a secret, such
 * as the head of a JWT, and one more character sees by what is hidden whether that character is the next one.
 */
const REST = /[^\s"'`\\<>(){}[\]]*/y

/** Sluice's keys and tokens, keys of OpenAI, Anthropic and Google, and password hashes. */
const SECRET_FORMS =
  /sk[-_][A-Za-z0-9_-]{12,}|(?:sat|slt|slr)_[A-Za-z0-9]{12,}|AIza[A-Za-z0-9_-]{16,}|ya29\.[A-Za-z0-9_-]{12,}|[Bb]earer\s+[A-Za-z0-9._~+/=-]+|\$argon2[^\s"\\]+/g

/** Finds a set of secrets, and their prefixes of 12 characters or more, in time linear in the text. */
export class SecretFinder {
  /** Matches any prefix; null if there are no secrets. */
  private readonly prefixes: RegExp | null
  /** Forms of secrets by their first `PREFIX_CHARS` characters, or all of a shorter one. */
  private readonly forms = new Map<string, string[]>()
  private readonly secrets: readonly string[]
  private parts: ReadonlySet<string> | null = null

  constructor(secrets: Iterable<string>) {
    this.secrets = [...secrets]
    for (const secret of this.secrets) {
      for (const form of formsOf(secret.slice(0, MAX_CHARS))) {
        const prefix = form.slice(0, PREFIX_CHARS)
        const known = this.forms.get(prefix)
        if (known === undefined) this.forms.set(prefix, [form])
        else if (!known.includes(form)) known.push(form)
      }
    }
    // Longer ones first, so that the longest match wins.
    const prefixes = [...this.forms.keys()].sort((one, other) => other.length - one.length)
    this.prefixes = prefixes.length === 0 ? null : new RegExp(prefixes.map(escaped).join('|'), 'g')
  }

  /** The text with `mark` in place of each secret. */
  hide(text: string, mark: string): string {
    const { prefixes } = this
    if (prefixes === null) return text
    let hidden = ''
    let from = 0
    prefixes.lastIndex = 0
    for (let found = prefixes.exec(text); found !== null; found = prefixes.exec(text)) {
      hidden += text.slice(from, found.index) + mark
      from = this.endAt(text, found.index, found[0])
      prefixes.lastIndex = from
    }
    return from === 0 ? text : hidden + text.slice(from)
  }

  /**
   * The text with `mark` in place of each part of a secret of 16 characters or more, also in hex. Takes
   * longer than `hide`; for short texts.
   */
  hideParts(text: string, mark: string): string {
    this.parts ??= partsOf(this.secrets)
    let hidden = ''
    let from = 0
    for (let at = 0; at + PART_CHARS <= text.length; at += 1) {
      if (!this.parts.has(text.slice(at, at + PART_CHARS))) continue
      hidden += text.slice(from, at) + mark
      // The part is as long as the secrets' parts of 16 characters follow each other.
      while (this.parts.has(text.slice(at + 1, at + 1 + PART_CHARS))) at += 1
      from = endOfRest(text, at + PART_CHARS)
      at = from - 1
    }
    return from === 0 ? text : hidden + text.slice(from)
  }

  /** The end of the longest prefix of a secret, with what follows it unless the secret is whole. */
  private endAt(text: string, start: number, prefix: string): number {
    let end = start + prefix.length
    let isWhole = false
    for (const form of this.forms.get(prefix) ?? []) {
      let length = prefix.length
      while (length < form.length && text[start + length] === form[length]) length += 1
      if (start + length < end) continue
      end = start + length
      isWhole = length === form.length
    }
    return isWhole ? end : endOfRest(text, end)
  }
}

/** A secret in plain text, in a URL, in JSON and in base64 at any offset. */
function formsOf(secret: string): Set<string> {
  if (secret.length < MIN_CHARS) return new Set()
  const bare = Buffer.from(secret)
  const inUrl = encodeURIComponent(bare.toString())
  const lowerUrl = inUrl.replace(/%[0-9A-F]{2}/g, (escape) => escape.toLowerCase())
  const inJson = JSON.stringify(secret).slice(1, -1)
  const forms = new Set([secret, inUrl, lowerUrl, inJson])
  for (const before of [0, 1, 2]) {
    const bytes = Buffer.concat([Buffer.alloc(before), bare])
    // Without the characters that also encode neighbouring bytes.
    const whole = bytes.subarray(0, bytes.length - (bytes.length % 3)).toString('base64')
    const base64 = whole.slice(before === 0 ? 0 : before + 1)
    if (base64.length < PREFIX_CHARS) continue
    forms.add(base64)
    forms.add(base64.replaceAll('+', '-').replaceAll('/', '_'))
  }
  return forms
}

/** Each part of 16 characters of each form of the secrets. */
function partsOf(secrets: readonly string[]): Set<string> {
  const parts = new Set<string>()
  for (const secret of secrets) {
    const searched = secret.slice(0, MAX_CHARS)
    const hex = Buffer.from(searched).toString('hex')
    for (const form of [...formsOf(searched), hex, hex.toUpperCase()]) {
      for (let at = 0; at + PART_CHARS <= form.length; at += 1) {
        parts.add(form.slice(at, at + PART_CHARS))
      }
    }
  }
  return parts
}

function endOfRest(text: string, from: number): number {
  REST.lastIndex = from
  REST.exec(text)
  return Math.max(from, REST.lastIndex)
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
}

const sets = new Map<string, readonly string[]>()
let finder = new SecretFinder([])

/**
 * Makes `hideSecrets` find these secrets in this process, and those of the 19 sets before. Called with all
 * secrets of each configuration.
 */
export function protectSecrets(secrets: readonly string[]): void {
  const key = JSON.stringify(secrets)
  const isKnown = sets.delete(key)
  sets.set(key, secrets)
  if (isKnown) return
  const [oldest] = sets.keys()
  if (sets.size > MAX_SETS && oldest !== undefined) sets.delete(oldest)
  finder = new SecretFinder(new Set([...sets.values()].flat()))
}

/** The text with `mark` in place of configured secrets and of texts that look like a key or a token. */
export function hideSecrets(text: string, mark = '[redacted]'): string {
  return finder.hide(text, mark).replace(SECRET_FORMS, mark)
}

/** The value as JSON, without secrets in its texts. */
export function jsonWithoutSecrets(value: object, mark = '***'): string {
  return JSON.stringify(value, (_, inner: unknown) => {
    return typeof inner === 'string' ? hideSecrets(inner, mark) : inner
  })
}

/** As `hideSecrets`, and without parts of configured secrets of 16 characters or more. For short texts. */
export function hideSecretParts(text: string, mark = '[redacted]'): string {
  return finder.hideParts(hideSecrets(text, mark), mark)
}
