/**
 * A cloud that records requests, a gateway with an upstream `cloud` in front of it, and the parts of a
 * request that two programs must agree on.
 */
import type { Test } from 'tap'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { startRawUpstream, type Arrived, type Canned, type RawUpstream } from '../../helpers/raw-upstream.js'

/** A reply of Claude's Messages API. */
export const MESSAGE = {
  id: 'msg_bdrk_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-4-5-20250929',
  content: [{ type: 'text', text: 'Hello' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 10, output_tokens: 5 },
}

/** A JSON reply. */
export function json(value: unknown, status = 200): Canned {
  return { status, type: 'application/json', chunks: [JSON.stringify(value)] }
}

/** A short reply in the format of the path. */
export function usualReply({ url }: Arrived): Canned {
  if (/count-tokens|countTokens|count_tokens/.test(url)) {
    return json({ inputTokens: 7, input_tokens: 7, totalTokens: 7 })
  }
  if (/invoke$|rawPredict$|\/messages$/.test(url)) return json(MESSAGE)
  if (url.endsWith('/cachedContents')) {
    return json({ name: 'projects/123456/locations/global/cachedContents/own', model: 'm' })
  }
  if (url.includes('enerateContent')) {
    const candidates = [
      { content: { role: 'model', parts: [{ text: 'Hello' }] }, finishReason: 'STOP', index: 0 },
    ]
    const usageMetadata = { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 }
    return json({ candidates, usageMetadata, modelVersion: 'gemini-2.5-pro' })
  }
  if (url.includes('converse')) {
    const message = { role: 'assistant', content: [{ text: 'Hello' }] }
    const usage = { inputTokens: 3, outputTokens: 2, totalTokens: 5 }
    return json({ output: { message }, stopReason: 'end_turn', usage, metrics: { latencyMs: 1 } })
  }
  if (url.includes('/responses')) {
    const content = [{ type: 'output_text', text: 'Hello', annotations: [] }]
    const output = [{ id: 'm', type: 'message', role: 'assistant', status: 'completed', content }]
    const usage = { input_tokens: 3, output_tokens: 2, total_tokens: 5 }
    return json({
      id: 'resp_1',
      object: 'response',
      status: 'completed',
      model: 'm',
      output,
      usage,
    })
  }
  if (url.includes('/embeddings')) {
    const data = [{ object: 'embedding', index: 0, embedding: [0.5, 0.25] }]
    return json({ object: 'list', data, model: 'm', usage: { prompt_tokens: 3, total_tokens: 3 } })
  }
  if (url.endsWith(':predict')) {
    const embeddings = { values: [0.5, 0.25], statistics: { token_count: 3 } }
    return json({ predictions: [{ embeddings }] })
  }
  const choices = [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }]
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
  return json({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage })
}

/** Credentials of the tests; AWS's documentation uses the same. */
export const AWS = {
  keyId: 'AKIDEXAMPLE',
  secret: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  sessionToken: 'session/token==',
}

/** The same as the value of `auth`. */
export const AWS_AUTH = `{ aws: { access_key_id: ${AWS.keyId}, secret_access_key: ${AWS.secret}, session_token: ${AWS.sessionToken} } }`

/** A cloud and a gateway whose upstream `cloud` it is. */
export interface CloudScene {
  readonly cloud: RawUpstream
  readonly gateway: TestGateway
}

/**
 * Starts both; `settings` are those of the upstream besides `base_url`, `prefix` is that of its models, `*`
 * for all.
 */
export async function startCloud(t: Test, prefix: string, settings: string): Promise<CloudScene> {
  const cloud = await startRawUpstream(t, usualReply)
  const gateway = await startGateway(t, {
    cloud: `base_url: '${cloud.origin}', ${settings}`,
    routes: `  - { ${prefix === '*' ? 'model' : 'prefix'}: '${prefix}', upstream: cloud }`,
  })
  return { cloud, gateway }
}

/** Headers that name the program, or depend on the time or the connection. */
const OWN =
  /^(?:user-agent|x-stainless-.*|x-goog-api-client|amz-sdk-.*|x-amz-user-agent|connection|host|accept|accept-encoding|accept-language|sec-fetch-mode|content-length|authorization|x-amz-date|x-client-.*|idempotency-key)$/

/** The parts of a request that two programs must agree on. */
export function comparable({ url, headers, body }: Arrived): unknown {
  const compared = Object.entries(headers).filter(([name]) => !OWN.test(name))
  return { url, headers: Object.fromEntries(compared.sort()), body: body.toString() }
}

/** The last two requests, of which the second came from the gateway. */
export function pairOf({ requests }: RawUpstream): [sdk: Arrived, gateway: Arrived] {
  const [one, other] = requests.splice(0)
  if (one === undefined || other === undefined || requests.length > 0) {
    throw new Error('two requests were expected')
  }
  return [one, other]
}
