/** What a guardrail judges, and what it may decide. */

/** A text that is judged alone. */
export interface Part {
  readonly kind: 'text' | 'reasoning' | 'arguments'
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly text: string
  /** The arguments are JSON text; else free text. */
  readonly isJson: boolean
  /** The tool of arguments and results; null for any other part. */
  readonly tool: string | null
}

/** The verdict on parts. */
export type Verdict =
  | { readonly kind: 'pass' }
  /** A text for each part. */
  | { readonly kind: 'mask'; readonly texts: readonly string[] }
  /** `index`: the part; null if it is not known. */
  | {
      readonly kind: 'block'
      readonly reason: string | null
      readonly index: number | null
      /** The own rule that matched. */
      readonly rule?: string | null
    }
  | { readonly kind: 'report' }

/** The part may pass. */
export const PASS: Verdict = { kind: 'pass' }

/** A guard that could not judge. The message is for the log and has no text of the request. */
export class GuardError extends Error {}

/** A guard that no text has reached. */
export class UnreachableError extends GuardError {}

/** A guard that could not judge these texts; it may judge others, so its breaker does not count it. */
export class TextError extends GuardError {}

/** The texts are larger than the guard takes: the client can send less. */
export class TextTooLarge extends TextError {
  /** The index of the part; null for all together. */
  readonly index: number | null

  constructor(index: number | null) {
    super('the text is too large')
    this.index = index
  }
}
