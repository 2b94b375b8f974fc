/**
 * Decodes `logprobsResult`: the chosen tokens, each with the most likely tokens at its position.
 */
import { arrayOf, numberOf, objectOf, stringOf, type JsonValue } from '../../../../chat/json.js'
import { logprobOf, type Logprob, type TokenLogprob } from '../../../../chat/reply/logprobs.js'

/** The log probabilities of the chosen tokens, each with the `top` most likely ones. */
export function logprobsOf(value: JsonValue | undefined, top: number): TokenLogprob[] {
  const result = objectOf(value)
  const others = arrayOf(result.topCandidates)
  return arrayOf(result.chosenCandidates).flatMap((chosen, at) => {
    return likelyOf(chosen).map((token) => {
      const likely = top === 0 ? [] : arrayOf(objectOf(others[at]).candidates)
      return { ...token, top: likely.slice(0, top).flatMap(likelyOf) }
    })
  })
}

function likelyOf(value: JsonValue): Logprob[] {
  const { token, logProbability } = objectOf(value)
  const text = stringOf(token)
  const logprob = numberOf(logProbability)
  return text === undefined || logprob === undefined ? [] : [logprobOf(text, logprob)]
}
