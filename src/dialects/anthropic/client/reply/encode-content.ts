/**
 * Members of content blocks that streams and whole replies share: signatures, citations and tool input.
 */
import type { Citation } from '../../../../chat/event.js'
import type { JsonObject } from '../../../../chat/json.js'
import { PROVIDER } from '../../shared/constants.js'
import { sealThinking } from './thinking-token.js'

/** The signature of a thinking block: Anthropic's own, or the gateway's token for other upstreams. */
export function encodeSignature(origin: string | undefined, signature: string | undefined): string {
  if (origin === PROVIDER) return signature ?? ''
  return sealThinking(origin ?? '', signature ?? '')
}

/** A citation with a URL as a web search result; null for one without a URL. */
export function encodeCitation({ url, title, citedText }: Citation): JsonObject | null {
  if (url === undefined) return null
  return {
    type: 'web_search_result_location',
    cited_text: citedText ?? '',
    encrypted_index: '',
    title: title ?? null,
    url,
  }
}

/**
 * The JSON text of `input` for a call's arguments. Arguments that are not a JSON object become `{"_raw":
 * text}`.
 */
export function encodeToolInput(json: string, isCustom: boolean): string {
  if (isCustom) return JSON.stringify({ input: json })
  if (json.trim() === '') return '{}'
  return isObjectText(json) ? json : JSON.stringify({ _raw: json })
}

function isObjectText(json: string): boolean {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}
