/** How requests refer to stored responses, and how a stored response becomes the input of a later request. */
import { arrayOf, isObject, type JsonObject, type JsonValue, stringOf } from '../../../base/json.js'
import type { ExpandedRequest, StoredItem, StoredReply, ReplyStorage } from '../../chat/stored-reply.js'
import { refuse } from '../../wire/json/check-fields.js'
import { isReasoningToken } from '../../wire/reasoning-token.js'
import { decodeRequest, referencesIn } from './decode-request.js'
import { repeatedOf } from './response-object.js'

/** The storage rules of the format. */
export const storage: ReplyStorage = {
  previousParam: 'previous_response_id',
  references: referencesIn,
  // Responses are stored by default.
  shouldStore: (body) => body['store'] !== false,
  inputOf: ({ input }) => itemsOf(input).map((item) => ({ item, upstream: null })),
  outputOf,
  idOf: (item) => (isObject(item) ? (stringOf(item['id']) ?? null) : null),
  expand,
  inputPage: list,
  deletedReply: (id) => ({ id, object: 'response', deleted: true }),
}

const NOT_STORED =
  'It is unknown, has expired, or was created with store: false or by another account. Send the whole item'

function itemsOf(input: JsonValue | undefined): JsonValue[] {
  if (typeof input === 'string') return [{ type: 'message', role: 'user', content: input }]
  return arrayOf(input)
}

/** Leaves out reasoning without its encrypted state, unless the upstream stores the response itself. */
function outputOf({ reply, upstream }: Pick<StoredReply, 'reply' | 'upstream'>): StoredItem[] {
  return arrayOf(reply['output']).flatMap((item): StoredItem[] => {
    const isUnusable = isBareReasoning(item) && (upstream === null || reply['store'] !== true)
    return isUnusable ? [] : [{ item, upstream }]
  })
}

function isBareReasoning(item: JsonValue): boolean {
  if (!isObject(item) || item['type'] !== 'reasoning') return false
  return typeof item['encrypted_content'] !== 'string'
}

/** Replaces references with the stored items. */
function expand(
  body: JsonObject,
  history: readonly StoredItem[],
  found: ReadonlyMap<string, StoredItem>,
): ExpandedRequest {
  const own = itemsOf(body['input']).map((item, at): StoredItem => {
    if (!isObject(item) || item['type'] !== 'item_reference') return { item, upstream: null }
    const id = stringOf(item['id']) ?? ''
    const stored = found.get(id)
    if (stored !== undefined) return stored
    return refuse(`input[${at}]`, `refers to ${JSON.stringify(id)}, which is not stored. ${NOT_STORED}`)
  })
  const input = [...history, ...own]
  const expanded: JsonObject = { ...body, input: input.map(({ item }) => item) }
  Reflect.deleteProperty(expanded, 'previous_response_id')
  const request = decodeRequest(expanded, history.length)
  return {
    request: { ...request, repeated: repeatedOf(body) },
    input,
    members: ['previous_response_id', 'input'],
    bodyFor: (upstream, drop) => ({ ...expanded, input: inputFor(input, upstream, drop) }),
  }
}

/** Leaves out reasoning of other upstreams, because only its own upstream can decrypt it. */
function inputFor(
  input: readonly StoredItem[],
  upstream: string | undefined,
  drop: (path: string) => void,
): JsonValue[] {
  const known = input.filter(({ item, upstream: origin }) => {
    const isForeign = isReasoning(item) && origin !== null && origin !== upstream
    if (isForeign) drop('input.reasoning')
    return !isForeign
  })
  return known.map(({ item }) => item)
}

/** Whether the item is reasoning of an upstream. Tokens of a gateway are handled when the body is encoded. */
function isReasoning(item: JsonValue): boolean {
  if (!isObject(item) || item['type'] !== 'reasoning') return false
  return !isReasoningToken(stringOf(item['encrypted_content']) ?? '')
}

/** The page of input items of a response, as `GET /v1/responses/{id}/input_items` gives it. */
function list(id: string, { input }: StoredReply): JsonObject {
  const data = input.map(({ item }, at) => listed(item, `${id.replace(/^resp_/, 'msg_')}_in${at}`))
  const ids = data.map((item) => stringOf(item['id']) ?? null)
  return {
    object: 'list',
    data,
    first_id: ids[0] ?? null,
    last_id: ids.at(-1) ?? null,
    has_more: false,
  }
}

function listed(item: JsonValue, id: string): JsonObject {
  const whole: JsonObject = isObject(item) ? { id, ...item } : { id }
  if (stringOf(whole['type']) === undefined) whole['type'] = 'message'
  const { content, role } = whole
  if (typeof content !== 'string') return whole
  const type = role === 'assistant' ? 'output_text' : 'input_text'
  return { ...whole, content: [{ type, text: content }] }
}
