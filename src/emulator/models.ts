/**
 * Model lists of the emulated providers, with a few ids each.
 */
import { checkAnthropicKey } from './anthropic/decode-request.js'
import { geminiFrames } from './gemini/errors.js'
import { checkGeminiKey } from './gemini/decode-request.js'
import { checkOpenAiKey } from './openai/decode-chat-request.js'
import { anthropicFrames } from './anthropic/errors.js'
import { openAiFrames } from './openai/errors.js'
import { wholeReply, type ParsedRequest, type Reply } from './emulated-exchange.js'
import type { JsonValue } from '../chat/json.js'

const OPENAI = ['gpt-4o', 'gpt-4o-mini', 'gpt-4.1', 'gpt-5', 'gpt-5-mini', 'gpt-5.4', 'o4-mini']
const ANTHROPIC = ['claude-opus-4-5', 'claude-sonnet-4-5', 'claude-haiku-4-5', 'claude-sonnet-4-6']
const GEMINI = ['gemini-2.5-flash', 'gemini-2.5-pro', 'gemini-3-flash-preview']

/** The reply to `GET /models` and `GET /models/{id}`. */
export function modelsReply(request: ParsedRequest): Reply {
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
