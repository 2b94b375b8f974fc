/** Decodes the names of members, each different name once, and limits their number and length. */
import { malformed } from '../malformed.js'
import { parseOrNull } from '../parse-or-null.js'

/** Each new name costs the parser 0.3 µs or more. */
const MAX_NAMES = 16_384
const MAX_NAME_BYTES = 8_192

/** The names of one body. */
export class MemberNames {
  private readonly isPlain: boolean
  /** Decoded names by the text between their quotes. */
  private readonly names = new Map<string, string>()

  /** `isPlain`: the body is ASCII. */
  constructor(isPlain: boolean) {
    this.isPlain = isPlain
  }

  /**
   * The name of a member; `raw` is the text between its quotes as Latin-1, `path` the position for errors.
   */
  decode(raw: string, path: () => string): string {
    const known = this.names.get(raw)
    if (known !== undefined) return known
    if (raw.length > MAX_NAME_BYTES) {
      throw malformed(`${path()} contains a name of more than ${MAX_NAME_BYTES} bytes`, path())
    }
    if (this.names.size === MAX_NAMES) {
      throw malformed(
        `too_complex: the body has more than ${MAX_NAMES} different names of members, counted up to ${path()}`,
        path(),
      )
    }
    const name = this.decoded(raw)
    this.names.set(raw, name)
    return name
  }

  private decoded(raw: string): string {
    if (!raw.includes('\\')) return this.isPlain ? raw : utf8(raw)
    const key = parseOrNull(`"${utf8(raw)}"`)
    return typeof key === 'string' ? key : raw
  }
}

function utf8(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString('utf8')
}
