/**
 * Rankings and errors for clients. `/v1/rerank` answers what the clients of Cohere's first version and of
 * Jina read, `/v2/rerank` what those of Cohere's second version do. Numbers that the upstream did not report
 * are absent.
 */
import { isObject, type JsonObject } from '../../base/json.js'
import type { ChatRequest } from '../chat/request.js'
import type { RankTask, TaskResult } from '../chat/task.js'
import { statusOf, type WireError } from '../../errors.js'
import type { Seed } from '../dialect.js'
import { errorBody, withoutSecrets } from '../wire/openai/error-body.js'
import { stringifyExact } from '../wire/json/exact-numbers.js'

/** The reply of the version; null if the result is not a ranking. */
export function encodeRanking(
  result: TaskResult,
  { task }: ChatRequest,
  { id, model }: Seed,
  version: 1 | 2,
): string | null {
  if (result.kind !== 'rerank' || task?.kind !== 'rerank') return null
  const { search } = result.usage.units ?? {}
  const { input } = result.usage
  const meta: JsonObject = {
    api_version: { version: String(version) },
    ...(search !== undefined && { billed_units: { search_units: search } }),
  }
  const results = result.ranks.map(({ index, score }): JsonObject => {
    const rank = { index, relevance_score: score }
    return task.returnDocuments ? { ...rank, document: documentAt(task, index) } : rank
  })
  if (version === 2) return stringifyExact({ id, results, meta })
  const usage = input === undefined ? {} : { usage: { prompt_tokens: input, total_tokens: input } }
  return stringifyExact({ id, object: 'list', model, results, meta, ...usage })
}

/** The client's own document, a text as an object. */
function documentAt({ documents }: RankTask, index: number): JsonObject {
  const source = documents[index]?.source ?? ''
  return isObject(source) ? source : { text: source }
}

/** The error in the form of Cohere (`message`) and of Jina and OpenAI (`error`) at once. */
export function encodeRerankError(error: WireError): { status: number; body: string } {
  const { message, kind } = withoutSecrets(error)
  const rest = errorBody(error).slice(1)
  return { status: statusOf(error), body: `${JSON.stringify({ message, kind }).slice(0, -1)},${rest}` }
}
