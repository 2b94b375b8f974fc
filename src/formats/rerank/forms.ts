/**
 * The forms in which upstreams rank documents: path, body and reply of each. Results are sorted by score
 * here and cut to `top_n`, for upstreams that do neither.
 *
 * Sources, read 2026-11-29: SDKs cohere-ai 8.1.0, voyageai 0.5.0; vLLM and SGLang, "Rerank API"; Text
 * Embeddings Inference, `openapi.json`; botocore 1.44.8 and Bedrock user guide, "Cohere Rerank" and "Amazon
 * Rerank"; LiteLLM 1.110.2 for Jina, Together, Fireworks and DeepInfra.
 */
import { numberOf, isObject, objectOf, stringOf, type JsonObject, type JsonValue } from '../../base/json.js'
import type { ChatRequest } from '../chat/request.js'
import type { Rank, RankTask } from '../chat/task.js'
import { tokenCount, type Usage } from '../chat/usage.js'
import { GatewayError } from '../../errors.js'
import type { Losses, TaskForm, TaskReader } from '../dialect.js'
import { awsErrorIn } from '../wire/aws/decode-error.js'
import { decodeErrorPayload } from '../wire/openai/decode-error.js'
import { errorIn } from '../wire/error-text.js'
import { refused } from '../wire/json/check-fields.js'
import { withoutVersion } from '../wire/base-path.js'

/** A field of a request to rank, and whether it was set. */
const FIELDS: readonly (readonly [name: string, key: keyof RankTask])[] = [
  ['rank_fields', 'rankFields'],
  ['max_tokens_per_doc', 'maxTokensPerDocument'],
  ['max_chunks_per_doc', 'maxChunksPerDocument'],
  ['priority', 'priority'],
  ['truncation', 'truncation'],
]

/** What a form writes beside the query and the documents. */
interface FormFields {
  /** The name of each field that the form has. */
  readonly names: Readonly<Partial<Record<keyof RankTask, string>>>
  /** Other fields of the client are passed on: the form is one of those that its endpoint was made for. */
  readonly passesOthers?: boolean
}

/** `rank_fields` is applied to the documents before they are sent as texts. */
const APPLIED: ReadonlySet<keyof RankTask> = new Set<keyof RankTask>(['rankFields'])

function rankTaskOf({ task }: ChatRequest): RankTask {
  if (task?.kind !== 'rerank') throw new Error('the request ranks nothing')
  return task
}

/** The optional fields that the form has; the others are lost. */
function fieldsOf(request: ChatRequest, losses: Losses, { names, passesOthers }: FormFields): JsonObject {
  const task = rankTaskOf(request)
  const fields: JsonObject = {}
  if (task.topN !== undefined && names.topN !== undefined) fields[names.topN] = task.topN
  for (const [path, key] of FIELDS) {
    const value = task[key]
    if (value === undefined) continue
    const name = names[key]
    if (name === undefined) {
      if (!APPLIED.has(key)) losses.drop(path, 'no-equivalent')
    } else fields[name] = Array.isArray(value) ? [...(value as readonly string[])] : (value as JsonValue)
  }
  for (const [key, value] of Object.entries(request.rest)) {
    if (passesOthers === true) fields[key] = value
    else losses.drop(key, 'no-equivalent')
  }
  return fields
}

/** The documents as texts. Throws `untranslatable` for a picture. */
function textsOf({ documents }: RankTask): string[] {
  return documents.map(({ text, source }, index) => {
    if (isPicture(source)) {
      throw refused(`documents[${index}]`, 'This upstream ranks texts only. Leave the picture out.')
    }
    return text
  })
}

function isPicture(source: JsonValue): boolean {
  return isObject(source) && typeof source['text'] !== 'string' && typeof source['image'] === 'string'
}

/** The documents for Jina, which takes texts, `{text}` and `{image}`. */
function jinaDocuments({ documents, rankFields }: RankTask): JsonValue[] {
  return documents.map(({ text, source }) =>
    rankFields === undefined && isPicture(source) ? { image: objectOf(source)['image'] } : text,
  )
}

/** The ranks of a list, best first; null if an index is missing, twice or out of range. */
function ranksIn(list: JsonValue | undefined, task: RankTask, scoreName = 'relevance_score'): Rank[] | null {
  if (!Array.isArray(list)) return null
  const seen = new Set<number>()
  const ranks: Rank[] = []
  for (const item of list) {
    const { index, [scoreName]: score } = objectOf(item)
    if (typeof index !== 'number' || !Number.isInteger(index) || index < 0) return null
    if (index >= task.documents.length || seen.has(index)) return null
    const value = numberOf(score)
    if (value === undefined) return null
    seen.add(index)
    ranks.push({ index, score: value })
  }
  return sorted(ranks, task)
}

function sorted(ranks: Rank[], { topN }: RankTask): Rank[] {
  return ranks.sort((one, other) => other.score - one.score || one.index - other.index).slice(0, topN)
}

function tokensUsage(tokens: unknown): Usage {
  const input = tokenCount(tokens)
  return input === undefined ? {} : { input, output: 0 }
}

/** A reader of replies with a list of results, which is in `results` or `data`. */
function listReader(usageIn: (body: JsonObject) => Usage): TaskReader {
  return ({ body }, request) => {
    if (!isObject(body)) return null
    const { results, data } = body
    const list = Array.isArray(results) ? results : data
    if (!Array.isArray(list)) {
      const error = errorIn(body)
      return error === null ? null : decodeErrorPayload(error)
    }
    const ranks = ranksIn(list, rankTaskOf(request))
    if (ranks === null) return null
    return { kind: 'rerank', ranks, usage: usageIn(body), model: stringOf(body['model']) ?? null }
  }
}

const cohereUsage = (body: JsonObject): Usage => {
  const search = tokenCount(objectOf(objectOf(body['meta'])['billed_units'])['search_units'])
  return search === undefined ? {} : { units: { search } }
}

const tokensIn = (body: JsonObject): Usage => {
  const { total_tokens: total, prompt_tokens: prompt } = objectOf(body['usage'])
  return tokensUsage(total ?? prompt)
}

/** The base of Cohere's own API: its chats are below `/compatibility/v1`. */
function cohereBase(base: string): string {
  return withoutEnd(withoutVersion(base), '/compatibility')
}

/** The base of Cohere's API at a resource of Azure, whose own models are below `/openai`. */
const AZURE_BASE = '/providers/cohere'

/**
 * `POST /v2/rerank`; at a resource of Azure `POST /providers/cohere/v2/rerank`.
 *
 * Source: Microsoft, "Cohere models in Azure AI Foundry Models", read 2026-11-30.
 */
export const cohere: TaskForm = {
  path: () => '/v2/rerank',
  basePath: (base) => {
    const own = cohereBase(base)
    return own.endsWith('/openai') ? withoutEnd(own, '/openai') + AZURE_BASE : own
  },
  encode: (request, losses) => {
    const task = rankTaskOf(request)
    const names = { topN: 'top_n', maxTokensPerDocument: 'max_tokens_per_doc', priority: 'priority' }
    const fields = fieldsOf(request, losses, { names })
    return { model: request.model, query: task.query, documents: textsOf(task), ...fields }
  },
  read: listReader(cohereUsage),
}

/** `POST /v1/rerank` of Cohere's first version, which Together and OpenRouter have. */
export const cohereV1: TaskForm = {
  path: () => '/v1/rerank',
  basePath: cohereBase,
  encode: (request, losses) => {
    const task = rankTaskOf(request)
    const names = {
      topN: 'top_n',
      rankFields: 'rank_fields',
      maxChunksPerDocument: 'max_chunks_per_doc',
    }
    const fields = fieldsOf(request, losses, { names, passesOthers: true })
    const documents = task.documents.map(({ source }) => source)
    return { model: request.model, query: task.query, documents, ...fields }
  },
  read: listReader((body) => ({ ...tokensIn(body), ...cohereUsage(body) })),
}

/** Jina's `POST /v1/rerank`; Fireworks has its results in `data`. */
export const jina: TaskForm = {
  path: () => '/v1/rerank',
  encode: (request, losses) => {
    const task = rankTaskOf(request)
    const names = { topN: 'top_n', truncation: 'truncation' }
    const fields = fieldsOf(request, losses, { names, passesOthers: true })
    const documents = jinaDocuments(task)
    return { model: request.model, query: task.query, documents, return_documents: false, ...fields }
  },
  read: listReader(tokensIn),
}

/** `POST /v1/rerank` of Voyage, with `top_k`. */
export const voyage: TaskForm = {
  path: () => '/v1/rerank',
  encode: (request, losses) => {
    const task = rankTaskOf(request)
    const fields = fieldsOf(request, losses, { names: { topN: 'top_k', truncation: 'truncation' } })
    return { model: request.model, query: task.query, documents: textsOf(task), ...fields }
  },
  read: listReader(tokensIn),
}

/** `POST /v1/rerank` of vLLM, whose replies have the documents. */
export const vllm: TaskForm = {
  path: () => '/v1/rerank',
  encode: (request, losses) => {
    const task = rankTaskOf(request)
    const names = { topN: 'top_n', maxTokensPerDocument: 'truncate_prompt_tokens' }
    const fields = fieldsOf(request, losses, { names, passesOthers: true })
    return { model: request.model, query: task.query, documents: textsOf(task), ...fields }
  },
  read: listReader(tokensIn),
}

/** `POST /rerank` of Text Embeddings Inference, which has one model and ranks all texts. */
export const tei: TaskForm = {
  path: () => '/rerank',
  encode: (request, losses) => {
    const task = rankTaskOf(request)
    const fields = fieldsOf(request, losses, { names: { truncation: 'truncate' } })
    return { query: task.query, texts: textsOf(task), ...fields }
  },
  read: ({ body, headers }, request) => {
    if (!Array.isArray(body)) return errorOf(body)
    const ranks = ranksIn(body, rankTaskOf(request), 'score')
    const tokens = headers['x-compute-tokens']
    const usage = typeof tokens === 'string' && /^\d{1,15}$/.test(tokens) ? tokensUsage(Number(tokens)) : {}
    return ranks === null ? null : { kind: 'rerank', ranks, usage, model: null }
  },
}

/** `POST /v1/rerank` of SGLang, which answers with a bare list. */
export const sglang: TaskForm = {
  path: () => '/v1/rerank',
  encode: (request, losses) => {
    const task = rankTaskOf(request)
    const fields = fieldsOf(request, losses, { names: { topN: 'top_n' }, passesOthers: true })
    return {
      model: request.model,
      query: task.query,
      documents: textsOf(task),
      return_documents: false,
      ...fields,
    }
  },
  read: ({ body }, request) => {
    if (!Array.isArray(body)) return errorOf(body)
    const ranks = ranksIn(body, rankTaskOf(request), 'score')
    if (ranks === null) return null
    const counts = body.map((item) => tokenCount(objectOf(objectOf(item)['meta_info'])['prompt_tokens']))
    // With `top_n`, the documents that are left out are not counted.
    const isWhole = body.length === rankTaskOf(request).documents.length
    const known = counts.filter((count) => count !== undefined)
    const isCounted = isWhole && known.length === counts.length
    const usage = isCounted ? tokensUsage(known.reduce((sum, count) => sum + count, 0)) : {}
    return { kind: 'rerank', ranks, usage, model: null }
  },
}

/** `POST /v1/inference/{model}` of DeepInfra: one query for each document, and scores in their order. */
export const deepinfra: TaskForm = {
  path: (model) => `/v1/inference/${model.split('/').map(segmentOf).join('/')}`,
  basePath: (base) => withoutVersion(withoutEnd(base, '/openai')),
  encode: (request, losses) => {
    const task = rankTaskOf(request)
    const fields = fieldsOf(request, losses, { names: {} })
    const documents = textsOf(task)
    return { queries: documents.map(() => task.query), documents, ...fields }
  },
  read: ({ body }, request) => {
    if (!isObject(body) || !Array.isArray(body['scores'])) return errorOf(body)
    const task = rankTaskOf(request)
    const scores = body['scores'].map(numberOf)
    const known = scores.filter((score) => score !== undefined)
    if (known.length !== task.documents.length || known.length !== scores.length) return null
    const ranks = sorted(
      known.map((score, index) => ({ index, score })),
      task,
    )
    const tokens = body['input_tokens'] ?? objectOf(body['inference_status'])['tokens_input']
    return { kind: 'rerank', ranks, usage: tokensUsage(tokens), model: null }
  },
}

/** InvokeModel of Bedrock with a ranking model of Cohere or Amazon; replies have no counts. */
export const bedrock: TaskForm = {
  path: (model) => `/model/${segmentOf(model)}/invoke`,
  basePath: (base) => base,
  encode: (request, losses) => {
    const task = rankTaskOf(request)
    const isCohere = /\bcohere\./.test(request.model)
    const fields = fieldsOf(request, losses, { names: { topN: 'top_n' } })
    const version = isCohere ? { api_version: 2 } : {}
    return { query: task.query, documents: textsOf(task), ...fields, ...version }
  },
  read: (reply, request) => {
    const error = isObject(reply.body) ? awsErrorIn(reply.body) : null
    return error ?? listReader(cohereUsage)(reply, request)
  },
}

function errorOf(body: JsonValue): ReturnType<TaskReader> {
  const error = isObject(body) ? errorIn(body) : null
  return error === null ? null : decodeErrorPayload(error)
}

/** A part of a path. Throws `unknown_model` for one that would change the path. */
function segmentOf(name: string): string {
  if (!/^\.{0,2}$/.test(name)) return encodeURIComponent(name)
  throw new GatewayError('unknown_model', 'Unknown model: the id is not the name of a model.', {
    param: 'model',
  })
}

function withoutEnd(base: string, end: string): string {
  return base.endsWith(end) ? base.slice(0, -end.length) : base
}
