/**
 * Sends one request of the client's format and parses the reply, for the tests of the specification.
 */
import { connect } from 'node:net'
import { objectOf, type JsonObject, type JsonValue, parsedJson } from '../../src/base/json.js'
import type { TestGateway } from '../helpers/gateway.js'

/** One model of each provider's family. */
export const FAMILIES = [
  { family: 'openai', model: 'gpt-4o-mini', upstream: 'openai' },
  { family: 'anthropic', model: 'claude-haiku-4-5', upstream: 'anthropic' },
  { family: 'google', model: 'gemini-2.5-flash', upstream: 'google' },
] as const

/** A small valid request with members replaced; `undefined` removes one. */
export function body(members: Record<string, JsonValue | undefined> = {}): JsonObject {
  const whole: Record<string, JsonValue | undefined> = {
    model: 'gpt-4o-mini',
    messages: [{ role: 'user', content: 'Name a colour.' }],
    ...members,
  }
  return objectOf(JSON.parse(JSON.stringify(whole)))
}

/** A parsed reply. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** Empty if the text is not a JSON object. */
  readonly json: JsonObject
  /** `error` of the body; empty if there is none. */
  readonly error: JsonObject
}

/** Reads the whole reply. */
export async function read(response: Response): Promise<Answer> {
  const text = await response.text()
  const json = objectOf(parsedJson(text))
  const { status, headers } = response
  return { status, headers, text, json, error: objectOf(json.error) }
}

/** Sends a chat completion request. */
export async function ask(gateway: TestGateway, request: unknown, init?: RequestInit) {
  return read(await gateway.chat(request, init))
}

/** Gets a path with the valid key. */
export async function get(gateway: TestGateway, path: string): Promise<Answer> {
  const headers = { authorization: `Bearer ${gateway.secret}` }
  return read(await fetch(`${gateway.origin}${path}`, { headers }))
}

/** Sends exact bytes with exact headers; resolves with the raw status and body. */
export function post(
  gateway: TestGateway,
  headers: Readonly<Record<string, string>>,
  chunks: readonly (string | Buffer)[],
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const socket = connect(gateway.port, '127.0.0.1')
    const got: Buffer[] = []
    socket.on('data', (chunk) => got.push(chunk))
    socket.on('error', reject)
    socket.setTimeout(10_000, () => socket.destroy(new Error('no reply within 10 s')))
    socket.on('close', () => {
      const text = Buffer.concat(got).toString('utf8')
      const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0)
      resolve({ status, text })
    })
    const all = {
      host: 'localhost',
      authorization: `Bearer ${gateway.secret}`,
      'content-type': 'application/json',
      connection: 'close',
      ...headers,
    }
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.write(`POST /v1/chat/completions HTTP/1.1\r\n${lines.join('')}\r\n`)
    for (const chunk of chunks) socket.write(chunk)
  })
}

/** One chunk of a chunked body. */
export function chunkOf(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
}
