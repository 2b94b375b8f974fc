/**
 * The thinking signature for models of other providers: a token with the provider's reasoning state, which
 * the client returns on the next turn. Its checksum detects tokens that a client changed. It is not
 * encrypted: providers encrypt state that must stay secret (decision 0054).
 */
import { PROVIDER } from '../constants.js'

/** The prefix of every token. Anthropic's signatures are base64, which has no dot. */
const PREFIX = 'sluice1.'
const CHECK_CHARS = 8

/** Dialects of upstreams by their letter in a token. */
const ORIGINS: Readonly<Record<string, string>> = {
  c: 'openai-chat',
  g: 'gemini',
  r: 'openai-responses',
}

/**
 * The content of a token: the dialect of the upstream and its state, which is empty for reasoning without
 * state.
 */
interface ThinkingState {
  readonly origin: string
  readonly state: string
}

/** The token for a state; `origin` is the dialect of the upstream. */
export function sealThinking(origin: string, state: string): string {
  const letter = Object.keys(ORIGINS).find((key) => ORIGINS[key] === origin) ?? 'c'
  return `${PREFIX}${letter}.${checksumOf(letter, state)}.${state}`
}

/** True for a token of the gateway, intact or not, which Anthropic would reject. */
export function isThinkingToken(signature: string): boolean {
  return signature.startsWith(PREFIX)
}

/** Opens a token; null if its checksum is wrong. */
export function openThinking(token: string): ThinkingState | null {
  const [letter = '', check = ''] = token
    .slice(PREFIX.length, PREFIX.length + 2 + CHECK_CHARS)
    .split('.')
  const origin = Object.hasOwn(ORIGINS, letter) ? ORIGINS[letter] : undefined
  const head = `${PREFIX}${letter}.${check}.`
  if (origin === undefined || !token.startsWith(head)) return null
  const state = token.slice(head.length)
  return checksumOf(letter, state) === check ? { origin, state } : null
}

/** FNV-1a in 32 bits: a state can have megabytes, for which a cryptographic hash takes too long. */
function checksumOf(letter: string, state: string): string {
  let hash = 0x811c9dc5 ^ letter.charCodeAt(0)
  for (let at = 0; at < state.length; at += 1) {
    hash = Math.imul(hash ^ state.charCodeAt(at), 0x01000193)
  }
  return (hash >>> 0).toString(16).padStart(CHECK_CHARS, '0')
}

/** The signature of a thinking block: Anthropic's own, or the gateway's token for other upstreams. */
export function encodeSignature(origin: string | undefined, signature: string | undefined): string {
  if (origin === PROVIDER) return signature ?? ''
  return sealThinking(origin ?? '', signature ?? '')
}
