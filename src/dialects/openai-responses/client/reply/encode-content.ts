/**
 * Output items and their parts as JSON text, the same for a whole reply and for the events of a stream.
 * Knows neither requests nor events.
 *
 * Source: OpenAI API reference, "The response object", read 2026-11-20.
 */
import type { Citation } from '../../../../chat/event.js'
import type { JsonObject } from '../../../../chat/json.js'
import type { Logprob, TokenLogprob } from '../../../../chat/reply/logprobs.js'
import type { ChatRequest } from '../../../../chat/request.js'
import { quote } from '../../../../wire/json/quote.js'

/** Prefixes of the ids of items. */
export type ItemPrefix = 'msg' | 'fc' | 'ctc' | 'rs' | 'ig'

/** The gateway's own ids: the prefix, the id of the request, and the place of the item in the output. */
const OWN_ID = /^(?:msg|fc|ctc|rs|ig)_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}_\d{1,4}$/

/** Whether a gateway made the id, so that no upstream knows it. */
export function isOwnItemId(id: string): boolean {
  return OWN_ID.test(id)
}

/** The id of the item at a place of the output. `responseId` begins with `resp_`. */
export function itemId(prefix: ItemPrefix, responseId: string, place: number): string {
  return `${prefix}_${responseId.slice(responseId.indexOf('_') + 1)}_${place}`
}

/** A call as items have it; `json` is the text of its arguments or of its input. */
export interface CallItem {
  readonly callId: string
  readonly name: string
  readonly json: string
  readonly custom: boolean
  /** The namespace that the client keeps the tool in. */
  readonly namespace?: string | undefined
}

/** The call of a tool under the name that the client gave it. */
export function namedCall(
  { namespaces }: ChatRequest,
  call: Omit<CallItem, 'namespace'>,
): CallItem {
  const own = namespaces?.get(call.name)
  return own === undefined ? call : { ...call, ...own }
}

/** `output_text` with all that belongs to it; `annotations` and `logprobs` are the texts of arrays. */
export function textPart(text: string, annotations = '[]', logprobs = '[]'): string {
  return `{"type":"output_text","annotations":${annotations},"logprobs":${logprobs},"text":${quote(text)}}`
}

/** `refusal`. */
export function refusalPart(text: string): string {
  return `{"type":"refusal","refusal":${quote(text)}}`
}

/** A message of the model; `parts` are the texts of its parts. */
export function messageItem(id: string, parts: readonly string[], status: string): string {
  return `{"id":"${id}","type":"message","status":"${status}","content":[${parts.join(',')}],"role":"assistant"}`
}

/** A part of a reasoning summary. */
export function summaryPart(text: string): string {
  return `{"type":"summary_text","text":${quote(text)}}`
}

/** Reasoning: what is told of it, and its state if the client wants that. */
export function reasoningItem(id: string, summary: string, token: string | undefined): string {
  const parts = summary === '' ? '' : summaryPart(summary)
  const sealed = token === undefined ? '' : `,"encrypted_content":${quote(token)}`
  return `{"id":"${id}","type":"reasoning","summary":[${parts}]${sealed}}`
}

/** A call of a function or of a custom tool. */
export function callItem(id: string, call: CallItem, status: string): string {
  const kept = call.namespace === undefined ? '' : `,"namespace":${quote(call.namespace)}`
  const said = `"call_id":${quote(call.callId)},"name":${quote(call.name)}${kept}`
  const [type, key] = call.custom ? ['custom_tool_call', 'input'] : ['function_call', 'arguments']
  return `{"id":"${id}","type":"${type}","status":"${status}","${key}":${quote(call.json)},${said}}`
}

/** A picture of the model's as OpenAI's tool for pictures gives it; null for one that is an address. */
export function imageItem(id: string, url: string): string | null {
  const data = imageData(url)
  if (data === null) return null
  return `{"id":"${id}","type":"image_generation_call","status":"completed","result":${quote(data)}}`
}

/** The base64 of a `data:` URL; null for any other. */
export function imageData(url: string): string | null {
  const comma = url.startsWith('data:') ? url.slice(0, 256).indexOf(';base64,') : -1
  return comma < 0 ? null : url.slice(comma + 8)
}

/** A citation as JSON text; null if it names no address. */
export function annotationOf({ url, title, start = 0, end }: Citation): string | null {
  if (url === undefined) return null
  const note: JsonObject = {
    type: 'url_citation',
    url,
    title: title ?? '',
    start_index: start,
    end_index: end ?? start,
  }
  return JSON.stringify(note)
}

/** `logprobs` of a text. */
export function logprobsOut(tokens: readonly TokenLogprob[]): string {
  return JSON.stringify(
    tokens.map(({ top, ...token }) => ({ ...likelyOut(token), top_logprobs: top.map(likelyOut) })),
  )
}

function likelyOut({ token, logprob, bytes }: Logprob): JsonObject {
  return { token, logprob, bytes: bytes === null ? [] : [...bytes] }
}
