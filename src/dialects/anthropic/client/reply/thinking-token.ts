/**
 * The signature under which clients of the Messages API get the reasoning of models that are not Anthropic's. It holds
 * the provider's own state, so that the next turn can bring it back, and a checksum: what a client has changed is not
 * taken for state. It is no secret: providers seal what may not be read (docs/decisions/0054).
 */

/** How every token begins. A signature of Anthropic's is base64, which has no dot. */
const PREFIX = 'sluice1.'
const CHECK_CHARS = 8

/** The dialects whose reasoning may be in a token, by the letter that stands for each. */
const ORIGINS: Readonly<Record<string, string>> = {
  c: 'openai-chat',
  g: 'gemini',
  r: 'openai-responses',
}

/** What a token holds: the dialect of the upstream, and its state; empty if the text was all there was. */
export interface ThinkingState {
  readonly origin: string
  readonly state: string
}

/** The token for a state; `origin` is the dialect of the upstream. */
export function sealThinking(origin: string, state: string): string {
  const letter = Object.keys(ORIGINS).find((key) => ORIGINS[key] === origin) ?? 'c'
  return `${PREFIX}${letter}.${checkOf(letter, state)}.${state}`
}

/** Whether the signature is a token of the gateway's, intact or not: it means nothing to Anthropic. */
export function isThinkingToken(signature: string): boolean {
  return signature.startsWith(PREFIX)
}

/** What the token holds; null if it was changed. */
export function openThinking(token: string): ThinkingState | null {
  const [letter = '', check = ''] = token
    .slice(PREFIX.length, PREFIX.length + 2 + CHECK_CHARS)
    .split('.')
  const origin = Object.hasOwn(ORIGINS, letter) ? ORIGINS[letter] : undefined
  const head = `${PREFIX}${letter}.${check}.`
  if (origin === undefined || !token.startsWith(head)) return null
  const state = token.slice(head.length)
  return checkOf(letter, state) === check ? { origin, state } : null
}

/** FNV-1a in 32 bits: a state may have megabytes, for which a cryptographic hash takes too long. */
function checkOf(letter: string, state: string): string {
  let hash = 0x811c9dc5 ^ letter.charCodeAt(0)
  for (let at = 0; at < state.length; at += 1) {
    hash = Math.imul(hash ^ state.charCodeAt(at), 0x01000193)
  }
  return (hash >>> 0).toString(16).padStart(CHECK_CHARS, '0')
}
