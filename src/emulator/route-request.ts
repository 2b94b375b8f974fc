/**
 * Routes a request to a provider and its endpoint.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { anthropicCount, anthropicReply } from './anthropic/messages.js'
import { anthropicFrames } from './anthropic/errors.js'
import { completionsReply } from './openai/completions.js'
import { geminiEmbeddings, openAiEmbeddings } from './embeddings.js'
import { geminiCount, geminiReply } from './gemini/generate-content.js'
import { geminiFrames } from './gemini/errors.js'
import { modelsReply } from './models.js'
import { openAiReply } from './openai/chat-completions.js'
import { openAiFrames } from './openai/errors.js'
import { responsesCount, responsesReply, responsesFrames } from './openai/responses.js'
import { errorReply, Refusal } from './emulated-exchange.js'
import type { ParsedRequest, Provider, Reply, FrameWriter } from './emulated-exchange.js'

/** A provider and the path below its base. */
export interface Endpoint {
  readonly provider: Provider
  readonly path: string
}

const FRAMES: Record<Provider, FrameWriter> = {
  openai: openAiFrames,
  anthropic: anthropicFrames,
  gemini: geminiFrames,
}

/** The frame writer of the endpoint of a request. */
export function framesOf({ provider, path }: Endpoint): FrameWriter {
  return provider === 'openai' && path.startsWith('/responses') ? responsesFrames : FRAMES[provider]
}

const PREFIXES: readonly (readonly [string, Provider])[] = [
  ['/openai/v1', 'openai'],
  ['/anthropic/v1', 'anthropic'],
  ['/gemini/v1beta', 'gemini'],
  ['/v1beta', 'gemini'],
]

/**
 * The endpoint of a path. Without a prefix, each provider's own paths are served; `/v1/models` is OpenAI's
 * unless the request carries `anthropic-version`.
 */
export function endpointOf(pathname: string, headers: IncomingHttpHeaders): Endpoint {
  for (const [prefix, provider] of PREFIXES) {
    if (pathname.startsWith(`${prefix}/`)) {
      return { provider, path: pathname.slice(prefix.length) }
    }
  }
  const path = pathname.startsWith('/v1/') ? pathname.slice(3) : pathname
  if (/^\/models\/[^/]+:\w+$/.test(path)) {
    return { provider: 'gemini', path }
  }
  const claude = path.startsWith('/messages') || headers['anthropic-version'] !== undefined
  return { provider: claude ? 'anthropic' : 'openai', path }
}

/** The provider's reply without faults; an invalid request gets the provider's error. */
export function replyTo(request: ParsedRequest): Reply {
  try {
    return replierOf(request)(request)
  } catch (error) {
    if (error instanceof Refusal) {
      return error.reply
    }
    throw error
  }
}

function replierOf(request: ParsedRequest): (request: ParsedRequest) => Reply {
  const { provider, method, path } = request
  if (method === 'GET' && /^\/models(\/[^:]+)?$/.test(path)) {
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
  if (method === 'POST' && provider === 'openai' && path === '/embeddings') {
    return openAiEmbeddings
  }
  if (method === 'POST' && provider === 'openai' && path === '/completions') {
    return completionsReply
  }
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
  return notFound
}

function notFound(request: ParsedRequest): Reply {
  const frames = framesOf(request)
  const message = `Invalid URL (${request.method} ${request.path})`
  return errorReply(404, frames.wholeHeaders, frames.errorBody(404, message))
}
