/**
 * Decodes a request of OpenAI's legacy completions as a chat with one user message. Fields that require an
 * upstream with the same endpoint become native fields.
 *
 * Source: OpenAI API reference, "Create completion", and the SDK's types, read 2026-11-20.
 */
import type { JsonObject, JsonValue } from '../../../chat/json.js'
import type { ChatRequest, NativeField } from '../../../chat/request.js'
import { array, boolean, given, integer, refuse, string } from '../../../wire/json/check-fields.js'
import { decodeRequest } from '../client/decode-request.js'

const MAX_PROMPTS = 2048
const TOKEN_IDS = { min: 0, max: 2 ** 31 }

/** The start of the errors about fields that chats cannot express. */
const CHAT_ONLY =
  'The upstream of this model has no completions endpoint. Its chat endpoint accepts'

/** Throws `malformed_request` naming the field that breaks a rule. */
export function decodeCompletion(body: JsonObject): ChatRequest {
  const { prompt, echo, best_of: best, suffix, logprobs, ...chat } = body
  if (chat['messages'] !== undefined)
    refuse('messages', 'is not a field of completions: send prompt instead')
  const { texts, tokenIds } = promptOf(prompt)
  const isPlain = tokenIds === 0 && texts.length === 1 && texts[0] !== ''
  // All other fields have the rules of chats.
  const request = decodeRequest({ ...chat, messages: [{ role: 'user', content: 'prompt' }] })
  request.messages = [
    { role: 'user', index: 0, parts: texts.map((text) => ({ type: 'text', text })) },
  ]
  const native: NativeField[] = []
  if (!isPlain) {
    const rule = tokenIds > 0 ? 'text and no token ids' : 'one prompt that is not empty'
    native.push({ path: 'prompt', refusal: `${CHAT_ONLY} ${rule}. Send one string as prompt.` })
  }
  if (given(echo) && boolean(echo, 'echo')) {
    native.push({ path: 'echo', refusal: `${CHAT_ONLY} no echo. Leave it out.` })
  }
  if (given(suffix) && string(suffix, 'suffix') !== '') {
    native.push({ path: 'suffix', refusal: `${CHAT_ONLY} no suffix. Leave it out.` })
  }
  if (given(best) && integer(best, 'best_of', { min: 1, max: 20 }) > 1)
    native.push({ path: 'best_of' })
  if (given(logprobs) && integer(logprobs, 'logprobs', { min: 0, max: 5 }) >= 0)
    native.push({ path: 'logprobs' })
  const prompts = Math.max(1, texts.length)
  return {
    ...request,
    ...(prompts > 1 && { candidates: (request.candidates ?? 1) * prompts }),
    ...(tokenIds > 0 && { tokenIds }),
    ...(native.length > 0 && { native }),
  }
}

/** The texts of the prompts, and the number of token ids in prompts of token ids. */
function promptOf(prompt: JsonValue | undefined): { texts: string[]; tokenIds: number } {
  if (!given(prompt)) return { texts: [''], tokenIds: 0 }
  if (typeof prompt === 'string') return { texts: [prompt], tokenIds: 0 }
  const items = array(prompt, 'prompt', 200_000)
  if (items.length === 0) refuse('prompt', 'must not be empty')
  if (typeof items[0] === 'number') return { texts: [], tokenIds: idsIn(items, 'prompt') }
  if (items.length > MAX_PROMPTS) refuse('prompt', `must have at most ${MAX_PROMPTS} items`)
  const texts: string[] = []
  let tokenIds = 0
  for (const [at, item] of items.entries()) {
    if (typeof item === 'string') texts.push(item)
    else tokenIds += idsIn(array(item, `prompt[${at}]`, 200_000), `prompt[${at}]`)
  }
  return { texts, tokenIds }
}

function idsIn(items: readonly JsonValue[], path: string): number {
  items.forEach((id, at) => integer(id, `${path}[${at}]`, TOKEN_IDS))
  return items.length
}
