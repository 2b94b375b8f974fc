/**
 * Encodes output items and their parts as JSON text, for whole replies and for events of streams.
 *
 * Source: OpenAI API reference, "The response object", read 2026-11-20.
 */
import type { ChatRequest } from '../../../../chat/request.js'
import { quote } from '../../../../wire/json/quote.js'

/** Prefixes of the ids of items. */
export type ItemPrefix = 'msg' | 'fc' | 'ctc' | 'rs' | 'ig'

/** The gateway's own ids: the prefix, the id of the request, and the index of the item in the output. */
const OWN_ID = /^(?:msg|fc|ctc|rs|ig)_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}_\d{1,4}$/

/** Whether a gateway made the id, which upstreams refuse. */
export function isOwnItemId(id: string): boolean {
  return OWN_ID.test(id)
}

/** The id of the item with an index in the output. `responseId` begins with `resp_`. */
export function itemId(prefix: ItemPrefix, responseId: string, index: number): string {
  return `${prefix}_${responseId.slice(responseId.indexOf('_') + 1)}_${index}`
}

/** A call; `json` is the text of its arguments or of its input. */
export interface CallItem {
  readonly callId: string
  readonly name: string
  readonly json: string
  readonly custom: boolean
  /** The namespace of the tool in the client's request. */
  readonly namespace?: string | undefined
}

/** The call with the tool's name and namespace of the client's request. */
export function namedCall(
  { namespaces }: ChatRequest,
  call: Omit<CallItem, 'namespace'>,
): CallItem {
  const own = namespaces?.get(call.name)
  return own === undefined ? call : { ...call, ...own }
}

/** An `output_text` part; `annotations` and `logprobs` are JSON texts of arrays. */
export function textPart(text: string, annotations = '[]', logprobs = '[]'): string {
  return `{"type":"output_text","annotations":${annotations},"logprobs":${logprobs},"text":${quote(text)}}`
}

/** A `refusal` part. */
export function refusalPart(text: string): string {
  return `{"type":"refusal","refusal":${quote(text)}}`
}

/** A message of the model; `parts` are the JSON texts of its parts. */
export function messageItem(id: string, parts: readonly string[], status: string): string {
  return `{"id":"${id}","type":"message","status":"${status}","content":[${parts.join(',')}],"role":"assistant"}`
}

/** A part of a reasoning summary. */
export function summaryPart(text: string): string {
  return `{"type":"summary_text","text":${quote(text)}}`
}

/** A reasoning item: its summary, and its state if the client requests that. */
export function reasoningItem(id: string, summary: string, token: string | undefined): string {
  const parts = summary === '' ? '' : summaryPart(summary)
  const state = token === undefined ? '' : `,"encrypted_content":${quote(token)}`
  return `{"id":"${id}","type":"reasoning","summary":[${parts}]${state}}`
}

/** A call of a function or of a custom tool. */
export function callItem(id: string, call: CallItem, status: string): string {
  const namespace = call.namespace === undefined ? '' : `,"namespace":${quote(call.namespace)}`
  const names = `"call_id":${quote(call.callId)},"name":${quote(call.name)}${namespace}`
  const [type, key] = call.custom ? ['custom_tool_call', 'input'] : ['function_call', 'arguments']
  return `{"id":"${id}","type":"${type}","status":"${status}","${key}":${quote(call.json)},${names}}`
}

/** An image as an item of OpenAI's image generation tool; null for an image that is a web address. */
export function imageItem(id: string, url: string): string | null {
  const data = imageData(url)
  if (data === null) return null
  return `{"id":"${id}","type":"image_generation_call","status":"completed","result":${quote(data)}}`
}

/** The base64 of a `data:` URL; null for any other URL. */
export function imageData(url: string): string | null {
  const comma = url.startsWith('data:') ? url.slice(0, 256).indexOf(';base64,') : -1
  return comma < 0 ? null : url.slice(comma + 8)
}
