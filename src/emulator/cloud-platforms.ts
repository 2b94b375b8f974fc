/**
 * Vertex AI and Azure OpenAI: their paths as those of the vendors' own APIs, and the check of the credentials
 * of all three clouds. Bedrock has formats of its own (`bedrock-replies.ts`).
 */
import type { IncomingHttpHeaders } from 'node:http'
import { stringOf, type JsonObject } from '../base/json.js'
import type { AuthorizedRequest, CloudTokens } from './cloud-credentials.js'
import { errorReply, type Provider, type Reply } from './emulated-exchange.js'

/** A request to a platform as the request to the vendor's own API. */
export interface CloudCall {
  readonly platform: 'vertex' | 'azure'
  readonly provider: Provider
  /** The path of the vendor's own API. */
  readonly path: string
  /** The model in the path; empty if it is in the body. */
  readonly model: string
}

const VERTEX =
  /^\/v1(?:beta1)?\/(?:projects\/[^/]+\/locations\/[^/]+\/)?publishers\/(anthropic|google)(\/models\/([^/]+):(\w+))$/
const AZURE = /^\/openai\/deployments\/([^/]+)(\/chat\/completions|\/embeddings|\/completions)$/

/** Null for a path of no platform. */
export function cloudCallOf(pathname: string): CloudCall | null {
  const vertex = VERTEX.exec(pathname)
  if (vertex !== null) {
    const [, publisher = '', path = '', encoded = ''] = vertex
    if (publisher === 'google') return { platform: 'vertex', provider: 'gemini', path, model: '' }
    const model = decodeURIComponent(encoded)
    return model === 'count-tokens'
      ? { platform: 'vertex', provider: 'anthropic', path: '/messages/count_tokens', model: '' }
      : { platform: 'vertex', provider: 'anthropic', path: '/messages', model: claudeOf(model) }
  }
  if (pathname === '/openai/responses') {
    return { platform: 'azure', provider: 'openai', path: '/responses', model: '' }
  }
  const [, deployment = '', path = ''] = AZURE.exec(pathname) ?? []
  if (path === '') return null
  return { platform: 'azure', provider: 'openai', path, model: decodeURIComponent(deployment) }
}

/** Anthropic's own id: `claude-sonnet-4-5` for `claude-sonnet-4-5@20250929`. */
function claudeOf(model: string): string {
  return model.split('@', 1)[0] ?? model
}

/** The body for the vendor's own API. */
export function vendorBody(
  { platform, provider, model }: CloudCall,
  body: JsonObject | undefined,
): JsonObject | undefined {
  if (body === undefined) return body
  // Azure takes the deployment in the path, and needs no model.
  if (platform === 'azure' && model !== '') return { ...body, model: body.model ?? model }
  if (provider !== 'anthropic') return body
  const rest = Object.fromEntries(Object.entries(body).filter(([name]) => name !== 'anthropic_version'))
  return { ...rest, model: model === '' ? claudeOf(stringOf(rest.model) ?? '') : model }
}

/** The headers for the vendor's own API: the version of the body, and a key, which the platform checked. */
export function vendorHeaders(
  { provider }: CloudCall,
  headers: IncomingHttpHeaders,
  body: JsonObject | undefined,
): IncomingHttpHeaders {
  const key = { authorization: 'Bearer cloud', 'x-api-key': 'cloud', 'x-goog-api-key': 'cloud' }
  if (provider !== 'anthropic') return { ...headers, ...key }
  const version = stringOf(body?.anthropic_version) ?? ''
  const isDated = version === 'vertex-2023-10-16'
  return { ...headers, ...key, 'anthropic-version': isDated ? '2023-06-01' : version }
}

/** The platform that a request is sent to; `vendor`: the path is also one of a vendor's own API. */
type CheckedPlatform = 'bedrock' | CloudCall['platform'] | 'vendor'

/** The refusal of a request that is not authorized, in the form of the platform; null if it is. */
export function cloudDenial(
  platform: CheckedPlatform,
  request: AuthorizedRequest,
  tokens: CloudTokens,
): Reply | null {
  if (platform === 'bedrock') return bedrockDenial(request, tokens)
  const why = tokens.tokenDenial(request.headers) ?? keyDenial(platform, request.headers)
  if (why === null) return null
  const error =
    platform === 'vertex'
      ? {
          code: 401,
          message: `Invalid authentication credentials: ${why}`,
          status: 'UNAUTHENTICATED',
        }
      : { code: '401', message: `Access token is missing or invalid: ${why}` }
  return errorReply(401, { 'content-type': 'application/json' }, JSON.stringify({ error }))
}

/** A vendor's own API checks its keys itself. */
function keyDenial(platform: CheckedPlatform, headers: IncomingHttpHeaders): string | null {
  if (platform === 'vendor') return null
  const key = KEY_HEADERS.map((name) => headers[name]).find((value) => value !== undefined)
  if (key === undefined) return 'no key or token'
  return key.includes('invalid') ? 'unknown key' : null
}

const KEY_HEADERS = ['authorization', 'api-key', 'x-goog-api-key', 'x-api-key']

function bedrockDenial(request: AuthorizedRequest, tokens: CloudTokens): Reply | null {
  const denial = tokens.signatureDenial(request)
  if (denial === null) return null
  const headers = {
    'content-type': 'application/json',
    'x-amzn-errortype': `${denial.name}:http://internal.amazon.com/coral/com.amazon.bedrock/`,
    date: new Date(tokens.nowMs).toUTCString(),
  }
  return errorReply(403, headers, JSON.stringify({ message: denial.message }))
}
