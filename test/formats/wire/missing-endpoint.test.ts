/**
 * Goal: a 404 for a wrong `base_url` is the operator's fault, a 404 for a model the client's. Method: error
 * bodies of providers and servers for both, through the decoder of their format; and the recordings.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { upstreamCodecOf } from '../../../src/formats/index.js'
import { objectOf, stringOf } from '../../../src/base/json.js'
import type { DialectName } from '../../../src/formats/dialect.js'

function kindOf(dialect: DialectName, body: string): string | undefined {
  return upstreamCodecOf(dialect)?.decodeError(404, {}, body).kind
}

const error = (fields: object): string => JSON.stringify({ error: fields })

const WRONG_URL: readonly (readonly [DialectName, string, string])[] = [
  [
    'openai-chat',
    'OpenAI',
    error({
      message: 'Invalid URL (POST /v1/chat/completions/chat/completions)',
      type: 'invalid_request_error',
      param: null,
      code: null,
    }),
  ],
  [
    'openai-responses',
    'OpenAI',
    error({ message: 'Invalid URL (POST /responses)', type: 'invalid_request_error' }),
  ],
  [
    'openai-chat',
    'Groq',
    error({
      message:
        'Unknown request URL: POST /openai/chat/completions. Please check the URL for typos, or see the docs',
      type: 'invalid_request_error',
      code: 'unknown_url',
    }),
  ],
  ['openai-chat', 'Azure', error({ code: '404', message: 'Resource not found' })],
  ['openai-chat', 'vLLM', '{"detail":"Not Found"}'],
  ['openai-chat', 'llama.cpp', error({ code: 404, message: 'File Not Found', type: 'not_found_error' })],
  ['openai-chat', 'Ollama', '404 page not found'],
  ['openai-chat', 'Kong', '{"message":"no Route matched with those values"}'],
  ['openai-chat', 'DeepSeek', '{"error_msg":"Not Found. Please check the configuration."}'],
  ['openai-chat', 'LM Studio', '{"error":"Unexpected endpoint or method. (POST /chat/completions)"}'],
  ['openai-chat', 'Express', '<!DOCTYPE html><pre>Cannot POST /chat/completions</pre>'],
  ['openai-chat', 'nothing', ''],
  ['openai-chat', 'an empty object', '{}'],
  ['anthropic', 'Anthropic', '{"type":"error","error":{"type":"not_found_error","message":"Not Found"}}'],
  ['anthropic', 'nginx', '<html><h1>404 Not Found</h1></html>'],
  ['gemini', 'Google', '<!DOCTYPE html><title>Error 404 (Not Found)!!1</title>'],
  ['gemini', 'Google, JSON', error({ code: 404, message: 'Method not found.', status: 'NOT_FOUND' })],
]

for (const [dialect, who, body] of WRONG_URL) {
  void t.test(`${who}: a wrong address of ${dialect} is the operator's fault`, (t) => {
    t.equal(kindOf(dialect, body), 'upstream_misconfigured')
    t.notMatch(upstreamCodecOf(dialect)?.decodeError(404, {}, body).message, /POST|<h1>/)
    t.end()
  })
}

const UNKNOWN_MODEL: readonly (readonly [DialectName, string, string])[] = [
  [
    'openai-chat',
    'vLLM',
    error({
      message: 'The model `x` does not exist.',
      type: 'NotFoundError',
      param: null,
      code: 404,
    }),
  ],
  [
    'openai-chat',
    'vLLM before 0.10',
    '{"object":"error","message":"The model `x` does not exist.","type":"NotFoundError","param":null,"code":404}',
  ],
  [
    'openai-chat',
    'Ollama',
    error({
      message: 'model "x" not found, try pulling it first',
      type: 'not_found_error',
      param: null,
      code: null,
    }),
  ],
  ['openai-chat', 'llama-swap', error({ message: 'Model not found' })],
  [
    'openai-chat',
    'xAI',
    '{"code":"Some requested entity was not found","error":"The model x does not exist or your team does not have access to it."}',
  ],
  [
    'openai-chat',
    'Fireworks',
    error({
      type: 'invalid_request_error',
      code: 'NOT_FOUND',
      message: 'Model not found, inaccessible, and/or not deployed',
    }),
  ],
  ['anthropic', 'Anthropic', '{"type":"error","error":{"type":"not_found_error","message":"model: x"}}'],
  [
    'gemini',
    'Google',
    error({
      code: 404,
      message: 'models/x is not found for API version v1beta',
      status: 'NOT_FOUND',
    }),
  ],
]

for (const [dialect, who, body] of UNKNOWN_MODEL) {
  void t.test(`${who}: an unknown model of ${dialect} is the client's`, (t) => {
    t.equal(kindOf(dialect, body), 'unknown_model')
    t.end()
  })
}

const RECORDED = '../shared/fixtures'
const FOLDERS = {
  openai: 'openai-chat',
  azure: 'openai-chat',
  anthropic: 'anthropic',
  gemini: 'gemini',
} as const

void t.test('every recorded 404 is about a model', { skip: !existsSync(RECORDED) }, (t) => {
  let found = 0
  for (const [folder, dialect] of Object.entries(FOLDERS)) {
    for (const file of readdirSync(join(RECORDED, folder))) {
      const recorded = objectOf(JSON.parse(readFileSync(join(RECORDED, folder, file), 'utf8')))
      if (recorded['status'] !== 404) continue
      found += 1
      t.equal(kindOf(dialect, stringOf(recorded['response_body']) ?? ''), 'unknown_model', file)
    }
  }
  t.ok(found >= 7, `${found} recordings`)
  t.end()
})
