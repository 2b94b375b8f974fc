/**
 * Checks encoded requests by the rules of the providers. The rules are those of the emulator, which shares no
 * code with the dialects.
 */
import { objectOf, stringOf, type JsonObject } from '../../src/base/json.js'
import type { ChatRequest } from '../../src/formats/chat/request.js'
import type { DialectName, UpstreamCodec } from '../../src/formats/dialect.js'
import { readAnthropic } from '../../src/emulator/anthropic-requests.js'
import { Refusal, type ParsedRequest, type Provider } from '../../src/emulator/emulated-exchange.js'
import { bedrockPath, readConverse } from '../../src/emulator/bedrock-requests.js'
import { readGemini } from '../../src/emulator/gemini-requests.js'
import { readOpenAi } from '../../src/emulator/openai-requests.js'
import { readResponses } from '../../src/emulator/openai-responses.js'

interface Reading {
  readonly provider: Provider
  readonly read: (call: ParsedRequest) => unknown
}

const READINGS: Readonly<Record<DialectName, Reading>> = {
  'openai-chat': { provider: 'openai', read: readOpenAi },
  'openai-responses': { provider: 'openai', read: readResponses },
  anthropic: { provider: 'anthropic', read: readAnthropic },
  gemini: { provider: 'gemini', read: readGemini },
  converse: {
    provider: 'bedrock',
    read: ({ body = {}, path }) => readConverse(body, bedrockPath(path)?.model ?? ''),
  },
}

const KEYS = { authorization: 'Bearer key', 'x-api-key': 'key', 'x-goog-api-key': 'key' }

/** The error of the provider; null if it accepts the request. */
export function refusalOf(
  { dialect, upstreamCodec }: { dialect: DialectName; upstreamCodec: UpstreamCodec },
  body: JsonObject,
  request: ChatRequest,
): string | null {
  const { provider, read } = READINGS[dialect]
  const stream = request.stream && upstreamCodec.wholeOnly?.(request) !== true
  const url = new URL(upstreamCodec.target(request.model, stream).path, 'http://emulator')
  const call: ParsedRequest = {
    provider,
    method: 'POST',
    path: url.pathname,
    query: url.searchParams,
    headers: { ...KEYS, ...upstreamCodec.headers(body) },
    body,
    seed: 1,
    anyModel: true,
    now: 0,
  }
  try {
    read(call)
    return null
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    const body = objectOf(JSON.parse(String(error.reply.units[0])))
    return (
      stringOf(objectOf(body['error'])['message']) ??
      stringOf(body['message']) ??
      `status ${error.reply.status}`
    )
  }
}
