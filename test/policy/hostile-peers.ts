/** The thread of `rule-turns.test.ts`: a provider with large replies, and a client. */
import { createServer } from 'node:http'
import { parentPort } from 'node:worker_threads'
import type { JsonObject } from '../../src/base/json.js'

/** A request to the gateway, and the reply of the provider. */
export interface Exchange {
  readonly url: string
  readonly secret: string
  /** The bodies of the request and of the reply, written with a text many times repeated. */
  readonly body: JsonObject
  readonly reply: 'small' | 'whole' | 'stream' | 'call' | 'citation'
  readonly text: string
  readonly units: number
}

/** The answer of the gateway. */
export interface Answered {
  readonly status: number
  readonly bytes: number
}

const HEAD = { id: 'm', type: 'message', role: 'assistant', model: 'claude-opus-5' }
const USAGE = { input_tokens: 1, output_tokens: 1 }
let current: Exchange | null = null

function longText({ text, units }: Exchange): string {
  return text.repeat(Math.ceil(units / text.length))
}

function blockOf(exchange: Exchange): JsonObject {
  const long = exchange.reply === 'small' ? 'Hello.' : longText(exchange)
  switch (exchange.reply) {
    case 'call':
      return { type: 'tool_use', id: 't1', name: 'f', input: { a: long } }
    case 'citation':
      return {
        type: 'text',
        text: 'Dry.',
        citations: [
          { type: 'web_search_result_location', url: 'https://a.example', title: 't', cited_text: long },
        ],
      }
    default:
      return { type: 'text', text: long }
  }
}

function* eventsOf(exchange: Exchange): Generator<JsonObject & { readonly type: string }> {
  yield { type: 'message_start', message: { ...HEAD, content: [], stop_reason: null, usage: USAGE } }
  yield { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }
  const long = longText(exchange)
  for (let at = 0; at < long.length; at += 40_000) {
    const text = long.slice(at, at + 40_000)
    yield { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }
  }
  yield { type: 'content_block_stop', index: 0 }
  yield { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: USAGE }
  yield { type: 'message_stop' }
}

const server = createServer((req, res) => {
  req.resume().once('end', () => {
    if (current === null) return res.writeHead(500).end()
    if (current.reply !== 'stream') {
      res.writeHead(200, { 'content-type': 'application/json' })
      const content = [blockOf(current)]
      return res.end(JSON.stringify({ ...HEAD, content, stop_reason: 'end_turn', usage: USAGE }))
    }
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const event of eventsOf(current)) {
      res.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    }
    return res.end()
  })
})

async function ask(exchange: Exchange): Promise<Answered> {
  current = exchange
  const { url, secret } = exchange
  const body = JSON.stringify(exchange.body, (_, value: unknown) =>
    value === '(long)' ? longText(exchange) : value,
  )
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  const response = await fetch(url, { method: 'POST', body, headers })
  let bytes = 0
  try {
    for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) bytes += chunk.length
  } catch {
    // The connection ended within the reply.
  }
  return { status: response.status, bytes }
}

parentPort?.on('message', (exchange: Exchange) => {
  void ask(exchange).then((answered) => parentPort?.postMessage(answered))
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  parentPort?.postMessage({ port: typeof address === 'object' ? address?.port : 0 })
})
