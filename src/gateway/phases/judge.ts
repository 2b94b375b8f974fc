/**
 * Judges an admitted request by the guardrails of its route and key, and replaces what they mask. Nothing is
 * sent to an upstream before this.
 */
import { isAscii } from 'node:buffer'
import { isDeepStrictEqual } from 'node:util'
import { isObject, type JsonObject, type JsonValue } from '../../base/json.js'
import { OPERATIONS } from '../../formats/chat/operations.js'
import { isChat, type ChatRequest } from '../../formats/chat/request.js'
import { parseExact, stringifyExact } from '../../formats/wire/json/exact-numbers.js'
import { inputTokens, outputTokens, promptSizeOf } from '../../ledger/estimate-tokens.js'
import type { Logger } from '../../observe/log.js'
import type { Metrics } from '../../observe/metrics/metrics.js'
import { GuardNotes } from '../../policy/guard-notes.js'
import type { Guardrail, JudgedRequest } from '../../policy/guardrail.js'
import {
  judgeRequest,
  partsOf,
  refuseUnseenReply,
  withTexts,
  type JudgedTexts,
} from '../../policy/judge-request.js'
import type { CalledFor } from '../../policy/plugins.js'
import { replyJudge, type GuardedReply } from '../../policy/reply-guard.js'
import { copiesOf, type HeldMemory } from '../body-memory.js'
import type { ServedRequest } from '../served-request.js'
import { bodyTurns } from '../../base/turn-queue.js'
import { readAgain } from './receive.js'
import type { Call } from './call.js'
import { LARGE_BYTES } from '../streams/join-chunks.js'

/** The services that judging uses. */
interface JudgeServices {
  readonly metrics: Metrics
  readonly log: Pick<Logger, 'info'>
}

/** What plugins get of a request. */
export function calledForOf(x: ServedRequest, { log }: Pick<JudgeServices, 'log'>): CalledFor {
  const { accountId, keyId, labels } = x.identity
  return {
    requestId: x.id,
    accountId,
    keyId,
    labels,
    signal: x.cancellation.signal,
    log: (message) => log.info('plugin', { request_id: x.id, reason: message.slice(0, MAX_LINE) }),
  }
}

/** Maximum length of a line of a plugin. */
const MAX_LINE = 500

/**
 * The call after the guardrails of its route and key; null if none applies, which is decided at once. Rejects
 * with `guardrail_blocked` and `guardrail_unavailable`.
 */
export function judge(x: ServedRequest, services: JudgeServices): Promise<Call> | null {
  const { policy, plugins } = x.generation
  const guardrails = policy?.of(x.route.guardrails, x.identity) ?? []
  const isObserved = plugins !== null && plugins.observes
  if (guardrails.length === 0 && !isObserved) return null
  const { call } = x
  call.streamed?.refuseLate(['prompt', 'keywords', 'known_speaker_names', 'response_format', 'stream'])
  return judgedCall(x, call, guardrails, services)
}

/** The call after these guardrails. Rejects as `judge`. */
export async function judgedCall(
  x: ServedRequest,
  call: Call,
  guardrails: readonly Guardrail[],
  { metrics, log }: JudgeServices,
): Promise<Call> {
  const { held } = x
  const beganMs = performance.now()
  // The texts after a mask, or their copies while they are judged.
  const textBytes = guardrails.some((guardrail) => guardrail.judges('request') && guardrail.mayMask)
    ? call.raw.length
    : 0
  held.take(textBytes)
  const notes = new GuardNotes(metrics)
  if (guardrails.length > 0) x.guard = notes
  const calledFor = calledForOf(x, { log })
  const of: JudgedRequest = {
    ...calledFor,
    request: call.request,
    notes,
    inTurns: (steps) => bodyTurns.run(steps),
  }
  try {
    const texts = await judgeRequest(guardrails, of, {
      wire: call.wire,
      body: call.body,
      pathOf: (text) => pathOf(call.body, text),
    })
    if (OPERATIONS[call.endpoint.operation].unseenReply !== undefined) refuseUnseenReply(guardrails, notes)
    x.cancellation.check()
    if (texts === null) held.free(textBytes)
    else held.take(Math.max(0, maskedBytes(texts) - textBytes))
    const judged = texts === null ? call : await rewritten(call, texts, held)
    const { plugins } = x.generation
    const isObserved = plugins !== null && plugins.observes
    const observed = isObserved ? plugins.observe(judged.request, calledFor) : null
    x.observed = observed
    return guarded(x, judged, { guardrails, of, observed })
  } finally {
    notes.requestMs = performance.now() - beganMs
  }
}

/** The memory of the texts that were masked. */
function maskedBytes({ before, after }: JudgedTexts): number {
  return after.reduce((sum, text, at) => sum + (text === before[at] ? 0 : stringBytes(text)), 0)
}

/** V8 stores a string with any character outside Latin-1 at two bytes a character. */
function stringBytes(text: string): number {
  return text.length * (/[\u0100-\uffff]/.test(text) ? 2 : 1)
}

/** The call with the judge of its replies. */
function guarded(
  x: ServedRequest,
  call: Call,
  { guardrails, of, observed }: Omit<GuardedReply, 'estimate'>,
): Call {
  const { request, endpoint } = call
  if (OPERATIONS[endpoint.operation].judgesReply !== true) return call
  const { family } = x.generation.facts(request.model)
  const isChatReply = isChat(request)
  const guard = replyJudge({
    // The replies to tasks call no tools, and have no events for observers.
    guardrails: isChatReply ? guardrails : guardrails.filter(({ readsText }) => readsText),
    of: { ...of, request },
    observed: isChatReply ? observed : null,
    estimate: (size, reported) => ({
      ...reported,
      input: reported.input ?? inputTokens(promptSizeOf(request), family),
      output: Math.max(reported.output ?? 0, outputTokens(size, family)),
    }),
  })
  return guard === null ? call : { ...call, guard }
}

/** Members of bodies with texts that are judged. Definitions of tools are not among them. */
const JUDGED_MEMBERS = [
  'messages',
  'system',
  'input',
  'instructions',
  'prompt',
  'contents',
  'systemInstruction',
  'system_instruction',
  'content',
  'requests',
  'generateContentRequest',
]
/** Members with arguments or results of calls as JSON values. */
const VALUE_MEMBERS: ReadonlySet<string> = new Set(['input', 'args', 'response'])

/**
 * The call with the masked texts: in the client's own body if the texts are found there, so that an upstream
 * of the same format gets all other members unchanged; else in the canonical request alone.
 */
async function rewritten(call: Call, { before, after }: JudgedTexts, held: HeldMemory): Promise<Call> {
  const masked = new Map<string, string>()
  before.forEach((text, index) => {
    const next = after[index] ?? text
    if (next !== text) masked.set(text, next)
  })
  const { maxOutputTokens } = call.request
  const expected = withTexts(call.request, after)
  const canonical = { ...call, request: expected, isRewritten: true as const }
  if (call.history !== undefined || call.fetchedBytes !== undefined) return canonical
  const body = { ...call.body }
  const nextTurn = async (): Promise<void> => {
    if (call.raw.length > LARGE_BYTES) await bodyTurns.next()
  }
  await nextTurn()
  for (const member of JUDGED_MEMBERS) {
    const value = body[member]
    if (value !== undefined) body[member] = replaced(value, '', masked)
  }
  await nextTurn()
  const raw = await bytesOf(body, nextTurn)
  const isPlain = isAscii(raw)
  held.beginParsing(raw.length, isPlain)
  await nextTurn()
  // Null: the format refuses the masked text in its place.
  const own = await readAgain(call, raw).catch(() => null)
  held.endParsing(own?.body ?? {})
  await nextTurn()
  if (own !== null) {
    const request: ChatRequest =
      maxOutputTokens === undefined ? own.request : { ...own.request, maxOutputTokens }
    if (isDeepStrictEqual(partsOf(request), partsOf(expected))) return { ...call, ...own, request }
  }
  held.free(copiesOf(raw.length, isPlain))
  return canonical
}

/** The bytes of a body; its text is freed before they are read again. */
async function bytesOf(body: JsonObject, nextTurn: () => Promise<void>): Promise<Buffer> {
  const text = stringifyExact(body)
  await nextTurn()
  return Buffer.from(text)
}

/** `member` is null inside a JSON value of a call, which is looked up as a whole, once. */
function replaced(value: JsonValue, member: string | null, masked: ReadonlyMap<string, string>): JsonValue {
  if (typeof value === 'string') return masked.get(value) ?? value
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => replaced(item, member === null ? null : '', masked))
  const isValue = member !== null && VALUE_MEMBERS.has(member)
  if (isValue) {
    const next = masked.get(stringifyExact(value))
    if (next !== undefined) return parseExact(next)
  }
  const next: JsonObject = {}
  for (const [key, inner] of Object.entries(value)) {
    next[key] = inner === undefined ? inner : replaced(inner, isValue || member === null ? null : key, masked)
  }
  return next
}

/** The path of the part with a text in the client's body; undefined if the body does not have it. */
function pathOf(body: JsonObject, text: string): string | undefined {
  for (const member of JUDGED_MEMBERS) {
    const value = body[member]
    const path = value === undefined ? null : pathIn(value, member, { member: '', text })
    if (path !== null) return path
  }
  return undefined
}

function pathIn(
  value: JsonValue,
  path: string,
  of: { readonly member: string | null; readonly text: string },
): string | null {
  const { member, text } = of
  if (typeof value === 'string') return value === text ? path : null
  if (typeof value !== 'object' || value === null) return null
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const found = pathIn(item, `${path}[${index}]`, { member: member === null ? null : '', text })
      if (found !== null) return found
    }
    return null
  }
  const isValue = member !== null && VALUE_MEMBERS.has(member)
  if (isValue && stringifyExact(value) === text) return path
  for (const [key, inner] of Object.entries(value)) {
    if (inner === undefined) continue
    // The path of a part, not of its text.
    const at = key === 'text' && path.endsWith(']') && isObject(value) ? path : `${path}.${key}`
    const found = pathIn(inner, at, { member: isValue || member === null ? null : key, text })
    if (found !== null) return found
  }
  return null
}
