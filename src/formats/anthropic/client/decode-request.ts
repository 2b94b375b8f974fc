/**
 * Decodes a Messages request: one rule for every field of the format. Never changes the body. Fields that
 * only Anthropic upstreams accept are recorded in `native`.
 *
 * Source: Claude API reference, "Messages" and "Count tokens", and the types of its SDK 1.12, read
 * 2026-11-22.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { GatewayError } from '../../../errors.js'
import { isObject, type JsonObject, type JsonValue } from '../../../base/json.js'
import type { ChatRequest } from '../../chat/request.js'
import { effortOfClaudeBudget } from '../../chat/thinking-budgets.js'
import type { Endpoint, BetaOptions } from '../../dialect.js'
import { array, given, integer, object, oneOf, refuse, string } from '../../wire/json/check-fields.js'
import { cacheMark } from '../../wire/prompt-cache-markers.js'
import { modelOf, refuseForbidden, streamOf } from '../../wire/request-fields.js'
import { readField } from '../../wire/scalar-fields.js'
import { sha256Hex } from '../../wire/sha256.js'
import { PROVIDER } from '../constants.js'
import { FIELDS } from '../fields.js'
import { decodeMessages } from './decode-messages.js'
import { decodeFormat, decodeToolChoice, decodeTools, type Tools } from './decode-tools.js'
import { NativeFields } from './native-fields.js'

/** OpenAI's maximum length of an end user's id, in characters. */
const MAX_USER_ID = 64
const MAX_USER_ID_SENT = 512

/** Checks one field and stores it. */
type Rule = (value: JsonValue, request: ChatRequest, native: NativeFields) => void

/** Decodes a whole request. Throws `malformed_request` naming the field that breaks a rule. */
export function decodeRequest(
  body: JsonObject,
  { operation }: Endpoint,
  headers: IncomingHttpHeaders = {},
): ChatRequest {
  const native = new NativeFields()
  const request: ChatRequest = {
    model: modelOf(body),
    messages: [],
    stream: operation === 'chat' && streamOf(body),
    includeUsage: true,
    tools: [],
    rest: {},
  }
  if (operation === 'chat') request.maxOutputTokens = maxTokens(body, native)
  request.messages = decodeMessages(body, native)
  readTools(body, request, native)
  for (const key of Object.keys(body)) {
    const value = body[key]
    if (!given(value)) continue
    const rule = RULES.get(key)
    if (rule === undefined) unknownField(key, native)
    else rule(value, request, native)
  }
  readHeaders(headers, request, native)
  const { all, hosted, unseen } = native
  if (all !== undefined) request.native = all
  if (hosted.length > 0) request.hosted = hosted
  if (unseen.length > 0) request.unseen = unseen
  return request
}

function readHeaders(headers: IncomingHttpHeaders, request: ChatRequest, native: NativeFields): void {
  const { version, betas } = protocolHeaders(headers)
  for (const beta of betas) native.lost(betaPath(beta))
  if (version === undefined && betas.length === 0) return
  request.nativeHeaders = {
    ...(version === undefined ? {} : { 'anthropic-version': version }),
    ...(betas.length === 0 ? {} : { 'anthropic-beta': betas.join(',') }),
  }
}

/** `max_tokens`; 0 only fills Anthropic's prompt cache, which no other upstream supports. */
function maxTokens({ max_tokens: value }: JsonObject, native: NativeFields): number {
  if (!given(value)) refuse('max_tokens', 'is required')
  const tokens = integer(value, 'max_tokens', { min: 0 })
  if (tokens === 0) native.refused('max_tokens', '0 is for the prompt cache of Anthropic upstreams')
  return tokens
}

function readTools(body: JsonObject, request: ChatRequest, native: NativeFields): void {
  const none: Tools = { custom: [], defined: new Set(), count: 0 }
  const tools = given(body.tools) ? decodeTools(body.tools, native) : none
  request.tools = tools.custom
  if (!given(body.tool_choice)) return
  const { choice, parallel } = decodeToolChoice(body.tool_choice, tools, native)
  // Other formats refuse a choice without tools.
  if (tools.custom.length === 0) return
  request.toolChoice = choice
  if (parallel !== undefined) request.parallelToolCalls = parallel
}

/**
 * Passes an unknown field to Anthropic unchanged, unless it could be mistaken for a field that is checked.
 */
function unknownField(key: string, native: NativeFields): void {
  refuseForbidden(key)
  const known = key.length > 32 ? key : key.toUpperCase().toLowerCase()
  if (known !== key && RULES.has(known)) refuse(key, `is not a field. Did you mean ${known}?`)
  native.lost(key)
}

/** For fields that `decodeRequest` reads before the rules. */
const alreadyDecoded: Rule = () => undefined

/** The rule of a field that only Anthropic upstreams accept. */
function anthropicOnly(key: string, check: (value: JsonValue, path: string) => unknown): [string, Rule] {
  return [
    key,
    (value, _request, native) => {
      check(value, key)
      native.lost(key)
    },
  ]
}

const SPEEDS = ['standard', 'fast'] as const

const RULES: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ['model', alreadyDecoded],
  ['max_tokens', alreadyDecoded],
  ['messages', alreadyDecoded],
  ['system', alreadyDecoded],
  ['stream', alreadyDecoded],
  ['tools', alreadyDecoded],
  ['tool_choice', alreadyDecoded],
  ...FIELDS.flatMap((field): [string, Rule][] => {
    const { wire, check } = field
    return wire === null || check === null ? [] : [[wire, (v, r) => readField(field, v, r, wire)]]
  }),
  ['thinking', thinking],
  ['output_config', outputConfig],
  ['output_format', (v, r) => void (r.responseFormat ??= decodeFormat(v, 'output_format'))],
  ['metadata', metadata],
  // A hint: other providers cache automatically.
  ['cache_control', (v) => void cacheMark({ cache_control: v }, '')],
  [
    'speed',
    (v, _r, native) => {
      if (oneOf(v, 'speed', SPEEDS) !== 'fast') return
      native.lost('speed')
      native.host({ name: 'speed', path: 'speed' })
    },
  ],
  ['thread', refuseThread],
  ['container', container],
  anthropicOnly('context_management', object),
  anthropicOnly('diagnostics', object),
  ['inference_geo', inferenceGeo],
  ['mcp_servers', mcpServers],
  anthropicOnly('user_profile_id', string),
  anthropicOnly('workspace_id', string),
])

/**
 * A thread is a conversation that the provider holds, so a request contains only its last turn. The gateway
 * could neither count it for limits nor send it to another upstream. The API's own error for requests that it
 * cannot thread makes the SDK send the whole conversation if `unsupportedRequestBehavior` allows it.
 *
 * Source: `ThreadUnsupportedRequestErrorDetails` of the SDK 1.12, read 2026-11-22.
 */
function refuseThread(): never {
  throw new GatewayError(
    'untranslatable',
    "thread: the gateway does not hold conversations. Send the whole conversation without thread, or use the upstream's own endpoint with native access.",
    {
      param: 'thread',
      native: {
        dialect: PROVIDER,
        type: 'invalid_request_error',
        details: { error_code: 'thread_unsupported_request', unsupported: ['thread'] },
      },
    },
  )
}

/** A container of an earlier request, whose files only Anthropic has. */
function container(value: JsonValue, _request: ChatRequest, native: NativeFields): void {
  if (!isObject(value)) string(value, 'container')
  native.lost('container')
  native.unseen.push('container')
}

/** The region of the model; every one but `global` costs more. */
function inferenceGeo(value: JsonValue, _request: ChatRequest, native: NativeFields): void {
  native.lost('inference_geo')
  if (string(value, 'inference_geo') === 'global') return
  native.host({ name: 'inference_geo', path: 'inference_geo' })
}

function mcpServers(value: JsonValue, _request: ChatRequest, native: NativeFields): void {
  const path = 'mcp_servers'
  native.lost(path)
  for (const [at, each] of array(value, path, 128).entries()) object(each, `${path}[${at}]`)
  if (Array.isArray(value) && value.length > 0) native.host({ name: 'mcp', path })
}

function thinking(value: JsonValue, request: ChatRequest): void {
  const item = object(value, 'thinking')
  const kind = oneOf(item.type, 'thinking.type', ['enabled', 'adaptive', 'disabled', 'between_tools'])
  if (given(item.display)) {
    const display = oneOf(item.display, 'thinking.display', ['summarized', 'omitted'])
    if (display === 'omitted') request.hidesThoughts = true
  }
  switch (kind) {
    case 'enabled': {
      const budget = integer(item.budget_tokens, 'thinking.budget_tokens', { min: 1_024 })
      request.reasoningEffort ??= effortOfClaudeBudget(budget)
      return
    }
    case 'adaptive':
      request.reasoningEffort ??= 'medium'
      return
    case 'disabled':
    case 'between_tools':
      request.reasoningEffort = 'none'
      return
    default:
      kind satisfies never
  }
}

/** `output_config.effort` overrides the effort derived from `thinking`. */
function outputConfig(value: JsonValue, request: ChatRequest, native: NativeFields): void {
  const { effort, format, ...others } = object(value, 'output_config')
  if (given(format)) request.responseFormat = decodeFormat(format, 'output_config.format')
  if (given(effort)) {
    const known = oneOf(effort, 'output_config.effort', ['low', 'medium', 'high', 'xhigh', 'max'])
    if (request.reasoningEffort !== 'none') request.reasoningEffort = known
  }
  for (const key of Object.keys(others)) if (given(others[key])) native.lost(`output_config.${key}`)
}

/** Some clients send composite ids that exceed other providers' maximum; those are replaced by their hash. */
function metadata(value: JsonValue, request: ChatRequest, native: NativeFields): void {
  const { user_id: id, ...others } = object(value, 'metadata')
  for (const key of Object.keys(others)) if (given(others[key])) native.lost(`metadata.${key}`)
  if (!given(id)) return
  const user = string(id, 'metadata.user_id')
  if (user.length > MAX_USER_ID_SENT) {
    refuse('metadata.user_id', `must be at most ${MAX_USER_ID_SENT} characters`)
  }
  if (user !== '') request.userId = user.length > MAX_USER_ID ? sha256Hex(user) : user
}

interface ProtocolHeaders {
  readonly version?: string
  readonly betas: readonly string[]
}

const MAX_BETAS = 64
const VERSION = /^[\w-]{1,32}$/
const BETA = /^[\w.-]{1,64}$/

/**
 * Reads the protocol headers. Throws `malformed_request` for an invalid header; a missing version is
 * accepted.
 *
 * Source: Claude API reference, "Versions" and "Beta headers", read 2026-11-22.
 */
function protocolHeaders(headers: IncomingHttpHeaders): ProtocolHeaders {
  const betas = [
    ...new Set(
      valueOf(headers, 'anthropic-beta')
        .split(',')
        .map((each) => each.trim()),
    ),
  ]
  const named = betas.filter((each) => each !== '')
  if (named.length > MAX_BETAS) refuse('anthropic-beta', `must have at most ${MAX_BETAS} names`)
  if (!named.every((each) => BETA.test(each))) {
    refuse('anthropic-beta', 'must be names of 1 to 64 of the characters A-Z, a-z, 0-9, _, . and -')
  }
  const version = valueOf(headers, 'anthropic-version')
  if (version === '') return { betas: named }
  if (!VERSION.test(version)) refuse('anthropic-version', 'must be a version such as 2023-06-01')
  return { version, betas: named }
}

function valueOf(headers: IncomingHttpHeaders, name: string): string {
  const value = headers[name]
  return (typeof value === 'string' ? value : (value ?? []).join(',')).trim()
}

/** The headers for an Anthropic upstream: those that the body needs (`own`) and those of the client. */
export function forwardedHeaders(
  own: Readonly<Record<string, string>>,
  client: Readonly<Record<string, string>>,
  { betas: allowed, losses }: BetaOptions,
): Record<string, string> {
  const headers = { ...own }
  const version = client['anthropic-version']
  if (version !== undefined) headers['anthropic-version'] = version
  const betas = new Set((own['anthropic-beta'] ?? '').split(','))
  for (const beta of (client['anthropic-beta'] ?? '').split(',')) {
    if (beta === '') continue
    if (allowed === null || allowed.includes(beta)) betas.add(beta)
    else losses.drop(betaPath(beta), 'no-equivalent')
  }
  betas.delete('')
  if (betas.size > 0) headers['anthropic-beta'] = [...betas].join(',')
  return headers
}

/** The name of a beta feature in the list of losses. */
function betaPath(beta: string): string {
  return `anthropic-beta.${beta}`
}
