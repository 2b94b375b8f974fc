/**
 * How likely a model found each token that it chose, and which others it thought of.
 * Knows no dialect. Logarithms are natural ones.
 */

/** A token, and the logarithm of how likely it was. */
export interface Logprob {
  readonly token: string
  readonly logprob: number
  /** Its bytes in UTF-8, which need not be whole characters; null where the upstream cannot say. */
  readonly bytes: readonly number[] | null
}

/** A token of the answer, with the likeliest ones at its place where they were asked for. */
export interface TokenLogprob extends Logprob {
  readonly top: readonly Logprob[]
}

/** The token as it is written, with the bytes that it is written in. */
export function logprobOf(token: string, logprob: number): Logprob {
  return { token, logprob, bytes: [...Buffer.from(token)] }
}
