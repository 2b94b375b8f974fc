/**
 * Calls guard servers. Each call has one time limit for the connection, the request and the whole reply;
 * redirects are not followed, and only a reply of the protocol's form is a verdict.
 *
 * Sources: agentgateway, `llm/policy/webhook.rs`; LiteLLM, "Generic Guardrail API"; OpenAI API reference,
 * "Moderations"; read 2026-11-26.
 */
import type { Dispatcher } from 'undici'
import type { GuardrailConfig, GuardServerConfig, GuardSide } from '../config/schema/guardrails-schema.js'
import { isObject, type JsonObject, type JsonValue } from '../base/json.js'
import type { Message } from '../formats/chat/request.js'
import { openConnectionPool } from '../gateway/upstreams/connection-pool.js'
import type { Judge, JudgedRequest } from './guardrail.js'
import {
  GuardError,
  PASS,
  TextError,
  TextTooLarge,
  UnreachableError,
  type Part,
  type Verdict,
} from './verdict.js'

/** Connections of one process to one guard server. */
const CONNECTIONS = 256
/** Calls of one judgement, each with as many texts as `max_text_bytes` allows. */
const MAX_CALLS = 16
const TOO_LARGE = 413
/** The only status of a refused call that blames the server: it waited too long for the request. */
const TIMED_OUT = 408
/** A client can make a call late by larger texts; others show whether the server answers. */
const LARGE_BYTES = 65_536

const UNREACHED = 'it cannot be reached'
/** Errors of a connection that was never made. */
const UNCONNECTED: ReadonlySet<unknown> = new Set([
  ...['EAI_AGAIN', 'ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'UND_ERR_CONNECT_TIMEOUT'],
])

function isUnconnected(error: unknown): boolean {
  return isObject(error) && UNCONNECTED.has(error['code'])
}

/** What a protocol sends, and how it reads the reply. */
interface Exchange {
  readonly path: string
  readonly body: JsonObject
  /** The verdict; null if the reply has another form. */
  readonly read: (reply: JsonObject) => Verdict | null
}

export class GuardServer implements Judge {
  private readonly config: GuardrailConfig
  private readonly server: GuardServerConfig
  private readonly origin: string
  private readonly basePath: string
  private readonly agent: Dispatcher

  constructor(config: GuardrailConfig, server: GuardServerConfig) {
    this.config = config
    this.server = server
    const { origin, pathname } = new URL(server.url)
    this.origin = origin
    this.basePath = pathname === '/' ? '' : pathname
    this.agent = openConnectionPool({
      name: config.name,
      baseUrl: origin,
      maxConnections: CONNECTIONS,
      // The operator names the address, which is often a sidecar.
      allowPrivateAddress: true,
      tls: null,
      http2: false,
      proxy: server.proxy,
      timeouts: { connectMs: config.timeoutMs },
    })
  }

  async judge(parts: readonly Part[], on: GuardSide, of: JudgedRequest): Promise<Verdict> {
    const groups = this.groupsOf(parts)
    const [only] = groups
    if (only !== undefined && groups.length === 1) return this.judgeGroup(only, on, of)
    const texts: string[] = []
    let kind: 'pass' | 'mask' | 'report' = 'pass'
    for (const group of groups) {
      const verdict = await this.judgeGroup(group, on, of)
      if (verdict.kind === 'block') {
        return verdict.index === null ? verdict : { ...verdict, index: verdict.index + texts.length }
      }
      if (verdict.kind !== 'pass') kind = verdict.kind
      texts.push(...(verdict.kind === 'mask' ? verdict.texts : group.map(({ text }) => text)))
    }
    return kind === 'mask' ? { kind, texts } : { kind }
  }

  /**
   * The texts of each call. A text is never divided, because a match could lie across the cut. Throws
   * `TextTooLarge` for a text above `max_text_bytes`, and for more texts than the calls can take.
   */
  private groupsOf(parts: readonly Part[]): Part[][] {
    const { maxTextBytes } = this.config
    const groups: Part[][] = []
    let bytes = Infinity
    for (const [index, part] of parts.entries()) {
      const size = Buffer.byteLength(part.text)
      if (size > maxTextBytes) throw new TextTooLarge(index)
      bytes += size
      if (bytes > maxTextBytes) {
        if (groups.length === MAX_CALLS) throw new TextTooLarge(null)
        groups.push([])
        bytes = size
      }
      groups.at(-1)?.push(part)
    }
    return groups
  }

  private async judgeGroup(parts: readonly Part[], on: GuardSide, of: JudgedRequest): Promise<Verdict> {
    const { path, body, read } = this.exchange(parts, on, of)
    const reply = await this.post(path, body, of)
    const verdict = read(reply)
    if (verdict === null) throw new GuardError('its reply has another form')
    return verdict
  }

  async close(): Promise<void> {
    await this.agent.close()
  }

  private exchange(parts: readonly Part[], on: GuardSide, of: JudgedRequest): Exchange {
    switch (this.server.protocol) {
      case 'webhook':
        return webhook(parts, on)
      case 'litellm':
        return litellm(this.server, parts, { on, of })
      case 'moderations':
        return moderations(this.server, parts)
      default:
        return this.server.protocol satisfies never
    }
  }

  private async post(path: string, body: JsonObject, of: JudgedRequest): Promise<JsonObject> {
    const late = AbortSignal.timeout(this.config.timeoutMs)
    const json = JSON.stringify(body)
    try {
      const { statusCode, body: reply } = await this.agent.request({
        origin: this.origin,
        path: this.basePath + path,
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-request-id': of.requestId,
          ...this.server.headers,
        },
        body: json,
        signal: AbortSignal.any([late, of.signal]),
      })
      try {
        if (statusCode === TOO_LARGE) throw new TextTooLarge(null)
        if (statusCode !== 200) {
          // Another call may succeed, even if a proxy before the server or its rate limit refused this one.
          const isRefused = statusCode >= 400 && statusCode < 500 && statusCode !== TIMED_OUT
          throw new (isRefused ? TextError : GuardError)(`it answered ${statusCode}`)
        }
        return await this.read(reply)
      } finally {
        // Closes the connection if the body has not ended; otherwise it has no effect.
        reply.on('error', () => undefined).destroy()
      }
    } catch (error) {
      if (error instanceof GuardError) throw error
      if (!late.aborted)
        throw new (isUnconnected(error) ? UnreachableError : GuardError)(UNREACHED, { cause: error })
      const isByText = Buffer.byteLength(json) > LARGE_BYTES
      throw new (isByText ? TextError : GuardError)('it did not answer in time', { cause: error })
    }
  }

  private async read(body: AsyncIterable<Buffer>): Promise<JsonObject> {
    const chunks: Buffer[] = []
    let bytes = 0
    for await (const chunk of body) {
      bytes += chunk.length
      if (bytes > this.config.maxReplyBytes) throw new TextError('its reply is too large')
      chunks.push(chunk)
    }
    let value: unknown
    try {
      value = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    } catch {
      throw new GuardError('its reply is not JSON')
    }
    if (!isObject(value)) throw new GuardError('its reply has another form')
    return value
  }
}

function webhook(parts: readonly Part[], on: GuardSide): Exchange {
  const messages = parts.map(({ role, text }) => ({ role, content: text }))
  const body: JsonObject =
    on === 'request'
      ? { messages }
      : { choices: parts.map(({ text }) => ({ message: { role: 'assistant', content: text } })) }
  return { path: `/${on}`, body: { body }, read: (reply) => webhookVerdict(reply, parts, on) }
}

/** The members of each action of the webhook. */
function webhookVerdict(reply: JsonObject, parts: readonly Part[], on: GuardSide): Verdict | null {
  const { action } = reply
  if (!isObject(action)) return null
  const { body, reason, status_code: status, ...unknown } = action
  if (Object.keys(unknown).length > 0) return null
  if (reason !== undefined && reason !== null && typeof reason !== 'string') return null
  if (body === undefined) return status === undefined ? PASS : null
  if (typeof body === 'string') {
    if (status !== undefined && typeof status !== 'number') return null
    const stated = body === '' ? (reason ?? null) : body
    return { kind: 'block', reason: stated, index: null }
  }
  if (!isObject(body) || status !== undefined) return null
  const texts = maskedTexts(body, parts, on)
  return texts === null ? null : { kind: 'mask', texts }
}

/** The texts of a mask, which has the number and the roles of what was sent. */
function maskedTexts(
  { messages, choices }: JsonObject,
  parts: readonly Part[],
  on: GuardSide,
): string[] | null {
  const list = on === 'request' ? messages : choices
  if (!Array.isArray(list) || list.length !== parts.length) return null
  const texts: string[] = []
  for (const [index, item] of list.entries()) {
    const message: JsonValue | undefined =
      on === 'request' ? item : isObject(item) ? (item['message'] ?? null) : null
    const role = on === 'request' ? parts[index]?.role : 'assistant'
    if (!isObject(message) || message['role'] !== role) return null
    const { content } = message
    if (typeof content !== 'string') return null
    texts.push(content)
  }
  return texts
}

function litellm(
  { params }: GuardServerConfig,
  parts: readonly Part[],
  { on, of }: { readonly on: GuardSide; readonly of: JudgedRequest },
): Exchange {
  const calls = parts.filter(({ kind }) => kind === 'arguments')
  const body = {
    texts: parts.map(({ text }) => text),
    tool_calls: calls.map(({ tool, text }, index) => ({
      id: `call_${index}`,
      type: 'function',
      function: { name: tool ?? '', arguments: text },
    })),
    ...(on === 'request' ? { structured_messages: of.request.messages.map(chatMessage) } : {}),
    request_data: { user_api_key_alias: of.keyId, user_api_key_user_id: of.accountId },
    input_type: on,
    litellm_call_id: of.requestId,
    additional_provider_specific_params: params as JsonObject,
  }
  return {
    path: '/beta/litellm_basic_guardrail_api',
    body,
    read: (reply) => litellmVerdict(reply, parts.length),
  }
}

function litellmVerdict(reply: JsonObject, count: number): Verdict | null {
  const { action, blocked_reason: reason = null, texts } = reply
  switch (action) {
    case 'NONE':
      return PASS
    case 'BLOCKED':
      if (reason !== null && typeof reason !== 'string') return null
      return { kind: 'block', reason, index: null }
    case 'GUARDRAIL_INTERVENED': {
      if (!Array.isArray(texts) || texts.length !== count) return null
      const masked = texts.filter((text) => typeof text === 'string')
      return masked.length === count ? { kind: 'mask', texts: masked } : null
    }
    default:
      return null
  }
}

/** A message in the form of chat completions, with its texts and calls. */
function chatMessage(message: Message): JsonObject {
  const content = message.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
  switch (message.role) {
    case 'assistant': {
      const calls = message.toolCalls.map(({ id, name, arguments: json }) => ({
        id,
        type: 'function',
        function: { name, arguments: json },
      }))
      return { role: 'assistant', content, ...(calls.length === 0 ? {} : { tool_calls: calls }) }
    }
    case 'tool':
      return { role: 'tool', tool_call_id: message.callId, content }
    case 'developer':
      return { role: 'system', content }
    case 'system':
    case 'user':
      return { role: message.role, content }
    default:
      return message satisfies never
  }
}

function moderations({ model, thresholds }: GuardServerConfig, parts: readonly Part[]): Exchange {
  return {
    path: '/moderations',
    body: { model, input: parts.map(({ text }) => text) },
    read: ({ results }) => {
      if (!Array.isArray(results) || results.length !== parts.length) return null
      for (const [index, result] of results.entries()) {
        const flagged = isObject(result) ? isFlagged(result, thresholds) : null
        if (flagged === null) return null
        if (flagged) return { kind: 'block', reason: null, index }
      }
      return PASS
    },
  }
}

/** Null for a result of another form. */
function isFlagged(
  { flagged, category_scores: scores }: JsonObject,
  thresholds: GuardServerConfig['thresholds'],
): boolean | null {
  if (typeof flagged !== 'boolean') return null
  if (thresholds === null) return flagged
  if (!isObject(scores)) return null
  return Object.entries(thresholds).some(([category, least]) => {
    const score = scores[category]
    return typeof score === 'number' && score >= least
  })
}
