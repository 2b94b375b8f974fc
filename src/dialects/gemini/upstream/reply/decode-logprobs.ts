/**
 * `logprobsResult` as the canon has it: the chosen tokens, each with the likeliest at its place.
 * Knows nothing of texts. `avgLogprobs` says no more than these do.
 */
import { arrayOf, numberOf, objectOf, stringOf, type JsonValue } from '../../../../chat/json.js'
import { logprobOf, type Logprob, type TokenLogprob } from '../../../../chat/reply/logprobs.js'

/** As the client asked for them: where it wanted no others, only the chosen. */
export function logprobsOf(value: JsonValue | undefined, top: number): TokenLogprob[] {
  const result = objectOf(value)
  const others = arrayOf(result.topCandidates)
  return arrayOf(result.chosenCandidates).flatMap((chosen, at) => {
    return likelyOf(chosen).map((token) => {
      const rivals = top === 0 ? [] : arrayOf(objectOf(others[at]).candidates)
      return { ...token, top: rivals.slice(0, top).flatMap(likelyOf) }
    })
  })
}

function likelyOf(value: JsonValue): Logprob[] {
  const { token, logProbability } = objectOf(value)
  const text = stringOf(token)
  const logprob = numberOf(logProbability)
  return text === undefined || logprob === undefined ? [] : [logprobOf(text, logprob)]
}
