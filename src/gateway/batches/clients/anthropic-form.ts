/** Message Batches as Anthropic's API has them (SDK `@anthropic-ai/sdk` 1.14.0, resources of batches). */
import { DAY_MS, timeText } from '../../../base/time-units.js'
import type { JsonObject } from '../../../base/json.js'
import { malformed } from '../../../errors.js'
import { resolveEndpoint } from '../../../formats/index.js'
import { originOf } from '../../../http/message.js'
import { hasEnded, type Batch } from '../../../policy/batch-records.js'
import type { Exchange } from '../../client-exchange.js'
import { storeRequests } from '../inline-requests.js'
import { limitIn } from '../object-page.js'
import type { ClientForm, LineForm, LineOutcome } from './client-form.js'
import { requestMember, textId } from './read-line.js'

const ENDPOINT = '/v1/messages'
const PARAM = 'requests'

const LINES: LineForm = {
  maxLines: 100_000,
  param: PARAM,
  idName: 'custom_id',
  modelName: 'params.model',
  place: (number) => `requests[${number - 1}]`,
  read(bytes) {
    const { value, request, bytes: body } = requestMember(bytes, 'params')
    const id = textId(value['custom_id'], 'custom_id')
    const { stream, model } = request
    if (stream === true) throw malformed('params.stream must not be true: a batch has no streams')
    if (typeof model !== 'string' || model === '') throw malformed('params.model is required')
    return { id, body, model }
  },
}

/** Batches of Anthropic's clients. */
export const anthropicForm: ClientForm = {
  idPrefix: 'msgbatch_',
  ingress: 'messages',
  param: 'message_batch_id',
  async ask(x, asking) {
    const resolved = resolveEndpoint('POST', ENDPOINT)
    if (resolved === null) throw new Error('messages are not served')
    const { file: input, rest } = await storeRequests(x, asking, { paths: [[PARAM]], lines: LINES })
    const batch = { endpoint: ENDPOINT, resolved, window: '24h', windowMs: DAY_MS, metadata: null }
    return { ...batch, input, inputFileId: '', lines: LINES, body: rest }
  },
  hasErrorFile: false,
  result: resultText,
  shown: shownBatch,
  page(batches, query) {
    const limit = limitIn(query, { maxLimit: 1000, usualLimit: 20 })
    const [after, before] = [placeOf('after_id'), placeOf('before_id')]
    const begin = after !== null ? after + 1 : before !== null ? Math.max(0, before - limit) : 0
    const page = batches.slice(begin, Math.min(begin + limit, before ?? batches.length))
    const hasMore = before !== null ? begin > 0 : begin + limit < batches.length
    const [first, last] = [page[0]?.id ?? null, page.at(-1)?.id ?? null]
    return {
      ids: page.map(({ id }) => id),
      around: (data) => ({ data: [...data], has_more: hasMore, first_id: first, last_id: last }),
    }

    function placeOf(name: string): number | null {
      const id = query.get(name)
      if (id === null) return null
      const at = batches.findIndex((batch) => batch.id === id)
      if (at === -1) throw malformed(`${name} must be the id of a batch of the list`, name)
      return at
    }
  },
  deleted: (id) => ({ id, type: 'message_batch_deleted' }),
}

/** A line of the results. Errors have the type of a direct reply. */
function resultText({ id, reply, missing, end, requestId }: LineOutcome): string {
  return `{"custom_id":${JSON.stringify(id)},"result":${resultOf()}}`

  function resultOf(): string {
    if (end === 'expired') return '{"type":"expired"}'
    if (end === 'cancelled') return '{"type":"canceled"}'
    if (reply === null || missing !== null) {
      const own = { type: 'api_error', message: missing?.message ?? 'This request has no result.' }
      const error = { type: 'error', error: own, request_id: requestId }
      return JSON.stringify({ type: 'errored', error })
    }
    if (end === 'ok') return `{"type":"succeeded","message":${reply.body}}`
    return `{"type":"errored","error":${reply.body}}`
  }
}

/** The batch as Anthropic's API shows it: its counts are zero until it ends. */
function shownBatch(batch: Batch, x: Exchange): JsonObject {
  const { id, createdAtMs, info } = batch
  const { counts, at, dueAtMs, isCancelled, form } = info
  const { total, completed, failed, expired = 0, cancelled = 0 } = counts
  const isEnded = hasEnded(batch)
  const running = { processing: total, succeeded: 0, errored: 0, canceled: 0, expired: 0 }
  const ended = { processing: 0, succeeded: completed, errored: failed - expired - cancelled }
  const endedAtMs = at.completed ?? at.failed ?? at.cancelled ?? at.expired
  return {
    ...{ id, type: 'message_batch' },
    processing_status: isEnded ? 'ended' : isCancelled ? 'canceling' : 'in_progress',
    request_counts: isEnded ? { ...ended, canceled: cancelled, expired } : running,
    created_at: timeText(createdAtMs),
    expires_at: timeText(dueAtMs),
    ended_at: isEnded ? timeText(endedAtMs) : null,
    cancel_initiated_at: timeText(at.cancelling),
    archived_at: null,
    results_url: isEnded ? resultsUrl(id, x) : null,
    ...(form === 'queue' && { emulated: 'queue' }),
  }
}

/** Below this gateway: clients send their key to it. */
function resultsUrl(id: string, { req, path }: Exchange): string | null {
  const base = path.slice(0, path.indexOf('/messages/batches'))
  const origin = originOf(req)
  return origin === null ? null : `${origin}${base}/messages/batches/${id}/results`
}
