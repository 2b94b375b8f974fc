/** Probabilities of tokens. */

/** A token and the natural logarithm of its probability. */
export interface Logprob {
  readonly token: string
  readonly logprob: number
  /** The bytes of the token, which need not be whole UTF-8 characters; null if unknown. */
  readonly bytes: readonly number[] | null
}

/** A token of the reply. `top`: the most likely tokens at its position, if the request needs them. */
export interface TokenLogprob extends Logprob {
  readonly top: readonly Logprob[]
}

/** The token with the UTF-8 bytes of its text. */
export function logprobOf(token: string, logprob: number): Logprob {
  return { token, logprob, bytes: [...Buffer.from(token)] }
}
