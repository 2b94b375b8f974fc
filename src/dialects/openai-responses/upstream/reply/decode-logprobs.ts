/**
 * `logprobs` of a text as the canon has them.
 * Streams leave the bytes out, which are those of the token's own text unless it says that it is bytes.
 */
import { arrayOf, numberOf, objectOf, stringOf, type JsonValue } from '../../../../chat/json.js'
import { logprobOf, type Logprob, type TokenLogprob } from '../../../../chat/reply/logprobs.js'

/** The tokens of a piece or of a whole text. */
export function logprobsOf(value: JsonValue | undefined): TokenLogprob[] {
  return arrayOf(value).flatMap((item) => {
    return likelyOf(item).map((token) => {
      return { ...token, top: arrayOf(objectOf(item)['top_logprobs']).flatMap(likelyOf) }
    })
  })
}

function likelyOf(value: JsonValue): Logprob[] {
  const item = objectOf(value)
  const token = stringOf(item['token'])
  const logprob = numberOf(item['logprob'])
  if (token === undefined || logprob === undefined) return []
  const { bytes } = item
  if (Array.isArray(bytes)) {
    return [{ token, logprob, bytes: bytes.filter((byte) => typeof byte === 'number') }]
  }
  return [token.startsWith('bytes:') ? { token, logprob, bytes: null } : logprobOf(token, logprob)]
}
