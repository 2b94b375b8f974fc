/**
 * Routes a request to a provider and its endpoint.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { JsonValue } from '../base/json.js'
import { anthropicCount, anthropicReply } from './anthropic-replies.js'
import { anthropicFrames, checkAnthropicKey } from './anthropic-requests.js'
import { bedrockReply } from './bedrock-replies.js'
import { bedrockFrames, bedrockPath } from './bedrock-requests.js'
import { geminiEmbeddings, openAiEmbeddings } from './embeddings.js'
import {
  errorReply,
  replyOrRefusal,
  wholeReply,
  type ParsedRequest,
  type Provider,
  type Reply,
  type FrameWriter,
} from './emulated-exchange.js'
import { geminiCount, geminiReply } from './gemini-replies.js'
import { geminiFrames, checkGeminiKey } from './gemini-requests.js'
import { mediaReplier } from './media.js'
import { completionsReply, openAiReply } from './openai-chat-replies.js'
import { openAiFrames, checkOpenAiKey } from './openai-requests.js'
import { responsesCompaction, responsesCount, responsesReply, responsesFrames } from './openai-responses.js'

/** A provider and the path below its base. */
export interface Endpoint {
  readonly provider: Provider
  readonly path: string
}

const FRAMES: Record<Provider, FrameWriter> = {
  openai: openAiFrames,
  anthropic: anthropicFrames,
  gemini: geminiFrames,
  bedrock: bedrockFrames(false),
}

const CHUNK_FRAMES = bedrockFrames(true)

export function framesOf({ provider, path }: Endpoint): FrameWriter {
  if (bedrockPath(path)?.action.startsWith('invoke') === true) return CHUNK_FRAMES
  return provider === 'openai' && path.startsWith('/responses') ? responsesFrames : FRAMES[provider]
}

const PREFIXES: readonly (readonly [string, Provider])[] = [
  ['/bedrock/openai/v1', 'openai'],
  ['/bedrock', 'bedrock'],
  ['/openai/v1', 'openai'],
  ['/anthropic/v1', 'anthropic'],
  ['/gemini/v1beta', 'gemini'],
  ['/gemini/v1', 'gemini'],
  ['/v1beta', 'gemini'],
]

/** Google's paths for the bytes of files, below its own path or around it. */
const BYTES = /^(?:\/gemini)?(\/(?:upload|download))(?:\/gemini)?\/v1(?:beta)?(\/.*)$/

/**
 * The endpoint of a path. Without a prefix, each provider's own paths are served; `/v1/models` is OpenAI's
 * unless the request carries `anthropic-version`.
 */
export function endpointOf(pathname: string, headers: IncomingHttpHeaders): Endpoint {
  const [, action, below] = BYTES.exec(pathname) ?? []
  if (action !== undefined && below !== undefined) return { provider: 'gemini', path: action + below }
  for (const [prefix, provider] of PREFIXES) {
    if (pathname.startsWith(`${prefix}/`)) {
      return { provider, path: pathname.slice(prefix.length) }
    }
  }
  if (pathname.startsWith('/model/')) return { provider: 'bedrock', path: pathname }
  const path = pathname.startsWith('/v1/') ? pathname.slice(3) : pathname
  if (/^\/models\/[^/]+:\w+$/.test(path)) {
    return { provider: 'gemini', path }
  }
  const claude = path.startsWith('/messages') || headers['anthropic-version'] !== undefined
  return { provider: claude ? 'anthropic' : 'openai', path }
}

/** The provider's reply without faults; an invalid request gets the provider's error. */
export function replyTo(request: ParsedRequest): Reply {
  return replyOrRefusal(() => replierOf(request)(request))
}

function replierOf(request: ParsedRequest): (request: ParsedRequest) => Reply {
  const { provider, method, path } = request
  if (method === 'GET' && provider !== 'bedrock' && /^\/models(\/[^:]+)?$/.test(path)) {
    return modelsReply
  }
  if (method === 'POST' && provider === 'openai' && path === '/chat/completions') {
    return openAiReply
  }
  if (method === 'POST' && provider === 'openai' && path === '/responses') {
    return responsesReply
  }
  if (method === 'POST' && provider === 'openai' && path === '/responses/input_tokens') {
    return responsesCount
  }
  if (method === 'POST' && provider === 'openai' && path === '/responses/compact') {
    return responsesCompaction
  }
  if (method === 'POST' && provider === 'openai' && path === '/embeddings') {
    return openAiEmbeddings
  }
  if (method === 'POST' && provider === 'openai' && path === '/completions') {
    return completionsReply
  }
  const media = method === 'POST' && provider === 'openai' ? mediaReplier(path) : null
  if (media !== null) return media
  if (method === 'POST' && provider === 'anthropic' && path === '/messages') {
    return anthropicReply
  }
  if (method === 'POST' && provider === 'anthropic' && path === '/messages/count_tokens') {
    return anthropicCount
  }
  if (method === 'POST' && provider === 'gemini') {
    if (/:(stream)?[gG]enerateContent$/.test(path)) {
      return geminiReply
    }
    if (path.endsWith(':countTokens')) {
      return geminiCount
    }
    if (/:(?:embedContent|batchEmbedContents)$/.test(path)) {
      return geminiEmbeddings
    }
  }
  if (method === 'POST' && provider === 'bedrock') return bedrockReply
  return notFound
}

function notFound(request: ParsedRequest): Reply {
  const frames = framesOf(request)
  const message = `Invalid URL (${request.method} ${request.path})`
  return errorReply(404, frames.wholeHeaders, frames.errorBody(404, message))
}

const OPENAI = ['gpt-4o', 'gpt-4o-mini', 'gpt-4.1', 'gpt-5', 'gpt-5-mini', 'gpt-5.4', 'o4-mini']
const ANTHROPIC = ['claude-opus-4-5', 'claude-sonnet-4-5', 'claude-haiku-4-5', 'claude-sonnet-4-6']
const GEMINI = ['gemini-2.5-flash', 'gemini-2.5-pro', 'gemini-3-flash-preview']

/** The reply to `GET /models` and `GET /models/{id}`. */
function modelsReply(request: ParsedRequest): Reply {
  const id = /^\/models\/(.+)$/.exec(request.path)?.[1]
  switch (request.provider) {
    case 'openai':
      checkOpenAiKey(request)
      return reply(openAiFrames.wholeHeaders, id === undefined ? openAiList() : openAiModel(id))
    case 'anthropic':
      checkAnthropicKey(request)
      return reply(anthropicFrames.wholeHeaders, id === undefined ? claudeList() : claudeModel(id))
    case 'gemini':
      checkGeminiKey(request)
      return reply(geminiFrames.wholeHeaders, id === undefined ? geminiList() : geminiModel(id))
    case 'bedrock':
      return notFound(request)
  }
}

function reply(headers: Readonly<Record<string, string>>, body: JsonValue): Reply {
  return wholeReply(headers, JSON.stringify(body, undefined, 2))
}

function openAiList(): JsonValue {
  return { object: 'list', data: OPENAI.map(openAiModel) }
}

function openAiModel(id: string): JsonValue {
  return { id, object: 'model', created: 1_700_000_000, owned_by: 'system' }
}

function claudeList(): JsonValue {
  return {
    data: ANTHROPIC.map(claudeModel),
    has_more: false,
    first_id: ANTHROPIC[0] ?? null,
    last_id: ANTHROPIC.at(-1) ?? null,
  }
}

function claudeModel(id: string): JsonValue {
  return { type: 'model', id, display_name: id, created_at: '2025-01-01T00:00:00Z' }
}

function geminiList(): JsonValue {
  return { models: GEMINI.map(geminiModel) }
}

function geminiModel(id: string): JsonValue {
  return {
    name: `models/${id}`,
    displayName: id,
    inputTokenLimit: 1_048_576,
    outputTokenLimit: 65_536,
    supportedGenerationMethods: ['generateContent', 'countTokens'],
  }
}
