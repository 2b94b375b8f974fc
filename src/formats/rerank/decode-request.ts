/**
 * Requests to rank documents, from clients: `POST /v2/rerank` of Cohere, and `POST /v1/rerank`, which
 * Cohere's first version and Jina share.
 *
 * Source: SDKs cohere-ai 8.1.0 and cohere 7.3.1 (`rerank`), Jina "Reranker API", read 2026-11-29.
 */
import { isObject, stringOf, type JsonObject, type JsonValue } from '../../base/json.js'
import type { ChatRequest } from '../chat/request.js'
import { textsOfTask, type RankedDocument, type RankTask } from '../chat/task.js'
import { array, boolean, given, integer, refuse, string } from '../wire/json/check-fields.js'
import { stringifyExact } from '../wire/json/exact-numbers.js'
import { modelOf, refuseForbidden } from '../wire/request-fields.js'

/** Far above what any vendor ranks in one request. */
const MAX_DOCUMENTS = 100_000
const MAX_RANK_FIELDS = 64
const POSITIVE = { min: 1 }

const KNOWN = new Set([
  ...['model', 'query', 'documents', 'top_n', 'return_documents', 'rank_fields', 'max_tokens_per_doc'],
  ...['max_chunks_per_doc', 'priority', 'truncation', 'stream'],
])

/** Decodes a request of either version. Throws `malformed_request` naming the field that breaks a rule. */
export function decodeRerank(body: JsonObject, version: 1 | 2): ChatRequest {
  const rest: Record<string, JsonValue> = {}
  for (const [key, value] of Object.entries(body)) {
    refuseForbidden(key)
    if (!KNOWN.has(key) && given(value)) rest[key] = value
  }
  if (given(body['top_k'])) refuse('top_k', 'is not a field of this endpoint. Use `top_n`')
  if (given(body['stream']) && boolean(body['stream'], 'stream')) {
    refuse('stream', 'must be false: rankings are not streamed')
  }
  const model = modelOf(body)
  const task = taskOf(body, version)
  const unseen = task.documents.flatMap(({ source }, index) =>
    hidesMembers(source, task.rankFields ?? []) ? [`documents[${index}]`] : [],
  )
  return {
    model,
    messages: [{ role: 'user', index: 0, parts: textsOfTask(task).map((text) => ({ type: 'text', text })) }],
    stream: false,
    includeUsage: false,
    tools: [],
    maxOutputTokens: 0,
    rest,
    ...(unseen.length > 0 && { unseen }),
    task,
  }
}

function taskOf(body: JsonObject, version: 1 | 2): RankTask {
  const { query, top_n: topN, return_documents: returned, priority, truncation } = body
  const { max_tokens_per_doc: maxTokens, max_chunks_per_doc: maxChunks } = body
  const fields = rankFieldsOf(body['rank_fields'])
  const documents = array(body['documents'], 'documents', MAX_DOCUMENTS)
  if (documents.length === 0) refuse('documents', 'must not be empty')
  return {
    kind: 'rerank',
    query: string(query, 'query'),
    documents: documents.map((each, index) => documentOf(each, `documents[${index}]`, { fields, version })),
    returnDocuments: version === 1 && given(returned) && boolean(returned, 'return_documents'),
    ...(given(topN) && { topN: integer(topN, 'top_n', POSITIVE) }),
    ...(fields !== null && { rankFields: fields }),
    ...(given(maxTokens) && {
      maxTokensPerDocument: integer(maxTokens, 'max_tokens_per_doc', POSITIVE),
    }),
    ...(given(maxChunks) && {
      maxChunksPerDocument: integer(maxChunks, 'max_chunks_per_doc', POSITIVE),
    }),
    ...(given(priority) && { priority: integer(priority, 'priority', { min: 0, max: 999 }) }),
    ...(given(truncation) && { truncation: boolean(truncation, 'truncation') }),
  }
}

function rankFieldsOf(value: JsonValue | undefined): readonly string[] | null {
  if (!given(value)) return null
  return array(value, 'rank_fields', MAX_RANK_FIELDS).map((name, at) => string(name, `rank_fields[${at}]`))
}

/** The text of an object is that of its ranked members, else `text`, else the whole as JSON. */
function documentOf(
  source: JsonValue,
  path: string,
  { fields, version }: { readonly fields: readonly string[] | null; readonly version: 1 | 2 },
): RankedDocument {
  if (typeof source === 'string') return { text: source, source }
  if (version === 2) refuse(path, 'must be a string: POST /v1/rerank takes objects')
  if (!isObject(source)) refuse(path, 'must be a string or an object')
  const ranked = (fields ?? []).flatMap((name) => {
    const value = source[name]
    return given(value) ? [stringOf(value) ?? stringifyExact(value)] : []
  })
  const text = ranked.length > 0 ? ranked.join('\n') : (stringOf(source['text']) ?? stringifyExact(source))
  return { text, source }
}

/** Whether the object has members that are not part of the ranked text, such as a picture. */
function hidesMembers(source: JsonValue, fields: readonly string[]): boolean {
  if (!isObject(source)) return false
  if (given(source['image'])) return true
  const ranked = new Set(fields.filter((name) => given(source[name])))
  if (ranked.size === 0 && typeof source['text'] !== 'string') return false
  if (ranked.size === 0) ranked.add('text')
  return Object.entries(source).some(
    ([name, value]) => !ranked.has(name) && (typeof value === 'string' || typeof value === 'object'),
  )
}
