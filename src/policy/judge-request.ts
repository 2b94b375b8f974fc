/**
 * Judges a request before it is sent: system text, message texts, reasoning, tool results, arguments of
 * calls, inputs of embeddings and legacy prompts. All other members that may have text are unseen.
 */
import type { JsonObject } from '../base/json.js'
import type { ChatRequest, Message, TextPart, UserPart } from '../formats/chat/request.js'
import { withTaskTexts } from '../formats/chat/task.js'
import type { WireFormat } from '../formats/dialect.js'
import { argumentsIn, plainArguments } from './json-strings.js'
import type { GuardNotes } from './guard-notes.js'
import type { Guardrail, JudgedRequest } from './guardrail.js'
import { GuardError, PASS, TextTooLarge, type Part, type Verdict } from './verdict.js'
import { membersOf, unseenMember } from './request-members.js'

/** The result of judging a request that may be sent. */
export interface JudgedTexts {
  /** The texts of the request in order, before and after. */
  readonly before: readonly string[]
  readonly after: readonly string[]
}

/** Paths of the texts, for errors. */
type PathOf = (text: string, index: number) => string | undefined

/** The request as the client sent it. */
interface ClientBody {
  readonly wire: WireFormat
  readonly body: JsonObject
  readonly pathOf: PathOf
}

/**
 * Runs the guardrails in order. Resolves with the texts if one of them was masked, else with null; rejects
 * with `guardrail_blocked` or `guardrail_unavailable`.
 */
export async function judgeRequest(
  guardrails: readonly Guardrail[],
  of: JudgedRequest,
  { wire, body, pathOf }: ClientBody,
): Promise<JudgedTexts | null> {
  const judging = guardrails.filter((guardrail) => guardrail.judges('request') && guardrail.readsText)
  if (judging.length === 0) return null
  const parts = partsOf(of.request)
  const before = parts.map(({ text }) => text)
  const words = new Map<string, string>()
  const seen = { judged: new Set(before), words }
  const unseen = unseenIn(of.request) ?? (await of.inTurns(unseenMember(body, membersOf(wire), seen)))
  let current = parts
  let isMasked = false
  for (const guardrail of judging) {
    if (unseen !== null) refuseUnseen(guardrail, of, unseen)
    const judged = await judgedBy(guardrail, current, { of, pathOf, words })
    if (judged === null) continue
    isMasked = true
    current = judged
  }
  return isMasked ? { before, after: current.map(({ text }) => text) } : null
}

interface JudgedBody {
  readonly of: JudgedRequest
  readonly pathOf: PathOf
  /** The words of harmless members, each with its path. */
  readonly words: ReadonlyMap<string, string>
}

/** The parts after one guardrail; null if it changes none. */
async function judgedBy(
  guardrail: Guardrail,
  parts: readonly Part[],
  { of, pathOf, words }: JudgedBody,
): Promise<Part[] | null> {
  const { notes } = of
  const { name, config } = guardrail
  const seen = parts.map((part, index) => ({ part: shownTo(guardrail, part), index }))
  const judged = seen.filter(({ part }) => part.text !== '')
  let verdict
  try {
    const texts = judged.map(({ part }) => part)
    // Words come last: a text that matches is found first.
    const all = guardrail.rules === null ? texts : [...texts, ...wordParts(words)]
    verdict = await guardrail.judge(all, 'request', of)
    const { matched, ofTexts } = withoutWords(verdict, all, texts.length)
    if (matched !== null) refuseUnseen(guardrail, of, words.get(matched) ?? matched)
    verdict = ofTexts
    if (verdict.kind === 'mask') checkMasked(judged, verdict.texts)
  } catch (error) {
    if (!(error instanceof GuardError)) throw error
    notes.note(name, 'request', 'error')
    // Else a client evades the guardrail by a large text. One that only reports refuses nothing.
    if (error instanceof TextTooLarge && config.action !== 'report') {
      const at = error.index === null ? undefined : judged[error.index]?.index
      throw guardrail.tooLarge(at === undefined ? undefined : pathOf(parts[at]?.text ?? '', at), error)
    }
    if (config.onError === 'open') return null
    throw guardrail.unavailable(error)
  }
  if (verdict.kind === 'pass') {
    notes.note(name, 'request', 'pass')
    return null
  }
  if (config.action === 'report' || verdict.kind === 'report') {
    notes.note(name, 'request', 'report')
    return null
  }
  notes.note(name, 'request', verdict.kind)
  if (verdict.kind === 'block') {
    const at = judged[verdict.index ?? (judged.length === 1 ? 0 : -1)]
    const path = at === undefined ? undefined : pathOf(parts[at.index]?.text ?? '', at.index)
    const error = guardrail.blocked(verdict.reason, path)
    const { rule = null } = verdict
    notes.refusal = { message: error.message, place: path ?? null, rule }
    throw error
  }
  const masked = [...parts]
  verdict.texts.forEach((text, at) => {
    const { index } = judged[at] ?? { index: -1 }
    const part = masked[index]
    if (part !== undefined && text !== judged[at]?.part.text) masked[index] = { ...part, text }
  })
  return masked
}

function wordParts(words: ReadonlyMap<string, string>): Part[] {
  return [...words.keys()].map((text) => ({ kind: 'text', role: 'user', text, isJson: false, tool: null }))
}

/**
 * The verdict on the first `count` parts, and the word behind them that matched, if any: words are names and
 * ids, which cannot be masked.
 */
function withoutWords(
  verdict: Verdict,
  parts: readonly Part[],
  count: number,
): { readonly matched: string | null; readonly ofTexts: Verdict } {
  if (verdict.kind === 'block' && (verdict.index ?? 0) >= count) {
    return { matched: parts[verdict.index ?? 0]?.text ?? null, ofTexts: PASS }
  }
  if (verdict.kind !== 'mask') return { matched: null, ofTexts: verdict }
  const isChanged = (text: string, index: number): boolean => text !== parts[index]?.text
  const at = verdict.texts.findIndex((text, index) => index >= count && isChanged(text, index))
  const texts = verdict.texts.slice(0, count)
  const matched = at < 0 ? null : (parts[at]?.text ?? null)
  return { matched, ofTexts: matched === null || texts.some(isChanged) ? { kind: 'mask', texts } : PASS }
}

/** Guard servers and plugins get arguments without escapes that JSON does not require. */
function shownTo({ rules }: Guardrail, part: Part): Part {
  return rules === null && part.isJson ? { ...part, text: plainArguments(part.text) } : part
}

/** Throws `GuardError` if masked arguments are not JSON any more. */
export function checkMasked(judged: readonly { readonly part: Part }[], texts: readonly string[]): void {
  judged.forEach(({ part }, index) => {
    const text = texts[index]
    if (text === undefined) throw new GuardError('its verdict has too few texts')
    const isValid = !part.isJson || text === part.text || argumentsIn(text) !== undefined
    if (!isValid) throw new GuardError('the masked arguments are not JSON')
  })
}

/** Notes content that the guardrail cannot read. Throws `guardrail_blocked` with `unseen: block`. */
function refuseUnseen(guardrail: Guardrail, { notes }: JudgedRequest, path: string): void {
  const { name, config } = guardrail
  notes.note(name, 'request', 'unseen')
  if (config.unseen === 'report' || config.action === 'report') return
  notes.note(name, 'request', 'block')
  const error = guardrail.blocked('The request has content that it cannot read.', path)
  notes.refusal = { message: error.message, place: path, rule: null }
  throw error
}

/**
 * Notes that the reply will be pictures or sound, which no guardrail of replies can read. Throws
 * `guardrail_blocked` with `unseen: block`, before anything is paid for.
 */
export function refuseUnseenReply(guardrails: readonly Guardrail[], notes: GuardNotes): void {
  for (const guardrail of guardrails) {
    if (!guardrail.judges('response') || !guardrail.readsText) continue
    const { name, config } = guardrail
    notes.note(name, 'response', 'unseen')
    if (config.unseen === 'report' || config.action === 'report') continue
    notes.note(name, 'response', 'block')
    const error = guardrail.blocked('The reply has content that it cannot read.')
    notes.refusal = { message: error.message, place: 'reply', rule: null }
    throw error
  }
}

/** The path of the first part that no guardrail can read; null if there is none. */
function unseenIn(request: ChatRequest): string | null {
  const [first] = request.unseen ?? []
  if (first !== undefined) return first
  // The files of a form.
  if (request.task?.kind === 'image_edits') return 'image'
  if (request.task?.kind === 'transcriptions' || request.task?.kind === 'translations') return 'file'
  if (request.tokenIds !== undefined && request.tokenIds > 0) return 'input'
  for (const message of request.messages) {
    const parts: readonly { readonly type: string }[] = message.parts
    const at = parts.findIndex(({ type }) => type !== 'text' && type !== 'thinking')
    if (at >= 0) return `messages[${message.index}].content[${at}]`
  }
  return null
}

/** The texts of the request in a fixed order. */
export function partsOf(request: ChatRequest): Part[] {
  const tools = new Map<string, string>()
  return request.messages.flatMap((message) => partsOfMessage(message, tools))
}

function partsOfMessage(message: Message, tools: Map<string, string>): Part[] {
  switch (message.role) {
    case 'system':
    case 'developer':
      return textsOf(message.parts, 'system', null)
    case 'user':
      return textsOf(message.parts, 'user', null)
    case 'tool':
      return textsOf(message.parts, 'tool', tools.get(message.callId) ?? null)
    case 'assistant':
      return [
        ...message.parts.flatMap((part): Part[] => {
          if (part.type === 'opaque') return []
          const kind = part.type === 'text' ? 'text' : 'reasoning'
          return [{ kind, role: 'assistant', text: part.text, isJson: false, tool: null }]
        }),
        ...message.toolCalls.map((call): Part => {
          tools.set(call.id, call.name)
          const isJson = call.custom !== true && argumentsIn(call.arguments) !== undefined
          const { arguments: text, name: tool } = call
          return { kind: 'arguments', role: 'assistant', text, isJson, tool }
        }),
      ]
    default:
      return message satisfies never
  }
}

function textsOf(parts: readonly UserPart[], role: Part['role'], tool: string | null): Part[] {
  return parts.flatMap((part): Part[] =>
    part.type === 'text' ? [{ kind: 'text', role, text: part.text, isJson: false, tool }] : [],
  )
}

/** The request with other texts, in the order of `partsOf`. Masked reasoning loses its signature. */
export function withTexts(request: ChatRequest, texts: readonly string[]): ChatRequest {
  let next = 0
  const take = (): string => texts[next++] ?? ''
  const ofUser = (part: UserPart): UserPart => (part.type === 'text' ? replaced(part, take()) : part)
  const messages = request.messages.map((message): Message => {
    if (message.role === 'user' || message.role === 'tool') {
      return { ...message, parts: message.parts.map(ofUser) }
    }
    if (message.role !== 'assistant') {
      return { ...message, parts: message.parts.map((part) => replaced(part, take())) }
    }
    return {
      ...message,
      parts: message.parts.map((part) => {
        if (part.type === 'opaque') return part
        if (part.type === 'text') return replaced(part, take())
        const text = take()
        return text === part.text ? part : { type: 'thinking', text }
      }),
      toolCalls: message.toolCalls.map((call) => {
        const text = take()
        return text === call.arguments ? call : { ...call, arguments: text }
      }),
    }
  })
  const { embedding, task } = request
  if (task !== undefined) return { ...request, messages, task: withTaskTexts(task, texts) }
  if (embedding === undefined) return { ...request, messages }
  let input = 0
  const inputs = embedding.inputs.map((each) => (typeof each === 'string' ? (texts[input++] ?? each) : each))
  return { ...request, messages, embedding: { ...embedding, inputs } }
}

function replaced(part: TextPart, text: string): TextPart {
  if (text === part.text) return part
  const { signature, cache } = part
  return {
    type: 'text',
    text,
    ...(signature === undefined ? {} : { signature }),
    ...(cache === undefined ? {} : { cache }),
  }
}
