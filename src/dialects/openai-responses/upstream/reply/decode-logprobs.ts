/**
 * Decodes the `logprobs` of a text. Streams omit the bytes of a token; they are the UTF-8 bytes of its text,
 * except for tokens whose text begins with `bytes:`.
 */
import { arrayOf, numberOf, objectOf, stringOf, type JsonValue } from '../../../../chat/json.js'
import { logprobOf, type Logprob, type TokenLogprob } from '../../../../chat/reply/logprobs.js'

/** The tokens of a fragment or of a whole text. */
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
