/**
 * A provider that bills what its model generated, whether or not anyone received it: the model generates at a
 * fixed rate, hidden reasoning first, until it has finished or the provider notices that the connection is
 * closed. It supports chat completions, Messages and Gemini on one port.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { objectOf, type JsonObject } from '../../src/base/json.js'
import { dice } from './seeded-random.js'
import { listen } from './listen.js'

/**
 * What one request does. `answer`: the whole reply. `slow`: the same, late. `status`, `error`: an error
 * instead of a reply, which is free. `drop`: the connection closes before the reply. `cut`: it closes within
 * the content. `stall`: the model reasons up to its limit and nothing is sent.
 */
export type Act = 'answer' | 'slow' | 'status' | 'error' | 'drop' | 'cut' | 'stall'

/** A request of a test, as JSON in the prompt. */
export interface Plan {
  readonly id: number
  /** The client's key. */
  readonly key: number
  /** Hidden tokens before the first content. */
  readonly think: number
  readonly words: number
  /** The act of each attempt in the order of arrival; the last one repeats. */
  readonly acts: readonly Act[]
}

/** Tokens that the model generates in a millisecond. */
const RATE = 20
/** The wait of `slow` in ms. */
const SLOW_MS = 150
const CHUNK_TOKENS = 40
/** Longest output of a request without a limit of its own. */
const MODEL_LIMIT = 4_096

/** Nano-dollars for a token of the prompt and of the output. */
const PRICES = { chat: [2_500, 10_000], messages: [3_000, 15_000], gemini: [300, 2_500] } as const

type Format = keyof typeof PRICES

/** The provider with its bill. */
export interface BillingProvider {
  readonly url: string
  /** Nano-dollars by key. */
  readonly billed: ReadonlyMap<number, number>
  /** Requests received. */
  readonly requests: number
  /** Resolves when no model generates any more. */
  idle(): Promise<void>
}

/** The text of a prompt that requests `plan`. */
export function promptOf(plan: Plan, padding: string): string {
  return `<<${JSON.stringify(plan)}>> ${padding}`
}

/** Starts the provider; it ends with the test. */
export async function startBillingProvider(t: Test, seed: number): Promise<BillingProvider> {
  const random = dice(seed)
  const billed = new Map<number, number>()
  const arrivals = new Map<number, number>()
  const bill = { requests: 0, open: 0 }
  const server = createServer((req, res) => {
    bill.requests += 1
    bill.open += 1
    void bodyOf(req)
      .then((body) => {
        if (body === null) return null
        const plan = planOf(body)
        const arrival = arrivals.get(plan.id) ?? 0
        arrivals.set(plan.id, arrival + 1)
        const act = plan.acts[Math.min(arrival, plan.acts.length - 1)] ?? 'answer'
        const run = new Generation(res, { plan, act, body, url: req.url ?? '', random })
        return run.serve().then(() => {
          billed.set(plan.key, (billed.get(plan.key) ?? 0) + run.nanoUsd)
        })
      })
      .finally(() => (bill.open -= 1))
  })
  server.keepAliveTimeout = 60_000
  const port = await listen(t, server)
  return {
    url: `http://127.0.0.1:${port}`,
    billed,
    get requests() {
      return bill.requests
    },
    async idle() {
      while (bill.open > 0) await delay(20)
    },
  }
}

/** Null if the request did not arrive completely. */
async function bodyOf(req: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of req) chunks.push(chunk as Buffer)
  } catch {
    return null
  }
  return Buffer.concat(chunks).toString()
}

function planOf(body: string): Plan {
  const [, text = '""'] = /<<(.*?)>>/.exec(body) ?? []
  return JSON.parse(text.replaceAll('\\"', '"')) as Plan
}

interface Asked {
  readonly plan: Plan
  readonly act: Act
  readonly body: string
  readonly url: string
  readonly random: () => number
}

/** One generation of the model. */
class Generation {
  nanoUsd = 0
  private readonly res: ServerResponse
  private readonly asked: Asked
  private readonly format: Format
  private readonly isStream: boolean
  private readonly input: number
  private readonly think: number
  private readonly words: number
  private readonly limit: number
  private readonly beganMs = performance.now()

  constructor(res: ServerResponse, asked: Asked) {
    this.res = res
    this.asked = asked
    const { plan, body, url } = asked
    this.format = formatOf(url)
    const request = JSON.parse(body) as JsonObject
    this.isStream = request['stream'] === true || url.includes('streamGenerateContent')
    this.input = 8 + Math.ceil(body.length / 4)
    this.limit = limitIn(request)
    this.think = Math.min(plan.think, this.limit)
    this.words = Math.min(plan.words, this.limit - this.think)
  }

  /** Serves the request; afterwards `nanoUsd` is its bill. */
  async serve(): Promise<void> {
    const { act } = this.asked
    if (act === 'status') return this.refuse()
    const left = once(this.res, 'close').then(() => 'left' as const)
    const served = this.reply().then(() => 'served' as const)
    served.catch(() => undefined)
    const end = await Promise.race([left, served])
    this.bill(end === 'served' ? this.total : this.generatedWhenNoticed())
  }

  private get total(): number {
    return this.asked.act === 'stall' ? this.limit : this.think + this.words
  }

  private refuse(): void {
    this.res.writeHead(500, { 'content-type': 'application/json' })
    this.res.end('{"error":{"message":"failed","type":"server_error"}}')
  }

  /** Some providers notice a closed connection soon, others when the model has finished. */
  private generatedWhenNoticed(): number {
    const { random } = this.asked
    const noticeMs = random() < 0.5 ? random() * 40 : Number.POSITIVE_INFINITY
    const generated = (performance.now() - this.beganMs + noticeMs) * RATE
    return Math.min(this.total, Math.ceil(generated))
  }

  private bill(output: number): void {
    if (this.asked.act === 'error') return
    const [forInput, forOutput] = PRICES[this.format]
    this.nanoUsd = this.input * forInput + output * forOutput
  }

  private async reply(): Promise<void> {
    const { res } = this
    const { act, random } = this.asked
    if (act === 'slow') await delay(SLOW_MS)
    if (act === 'stall') {
      await once(res, 'close')
      return
    }
    if (act === 'drop') {
      await delay(this.think / RATE)
      res.destroy()
      return
    }
    const type = this.isStream ? 'text/event-stream' : 'application/json'
    if (this.isStream) this.head(type)
    if (act === 'error') return void res.end(this.errorBody())
    await delay(this.think / RATE)
    if (!this.isStream) {
      await delay(this.words / RATE)
      const text = this.whole()
      res.writeHead(200, { 'content-type': type, 'content-length': Buffer.byteLength(text) })
      if (act !== 'cut') return void res.end(text)
      res.write(text.slice(0, Math.floor(text.length * random())))
      return void res.destroy()
    }
    const cutAt = act === 'cut' ? Math.floor(this.words * random()) : Number.POSITIVE_INFINITY
    for (let sent = 0; sent < this.words; sent += CHUNK_TOKENS) {
      if (sent >= cutAt) return this.cut(random)
      const tokens = Math.min(CHUNK_TOKENS, this.words - sent)
      res.write(this.content('word '.repeat(Math.max(1, Math.floor(tokens * 0.8))), sent + tokens))
      await delay(tokens / RATE)
    }
    const ends = this.ends()
    if (act !== 'cut') return void res.end(ends.join(''))
    res.write(ends.slice(0, Math.floor(random() * ends.length)).join(''))
    this.cut(random)
  }

  /** The connection is lost, or the body ends as if it were complete. */
  private cut(random: () => number): void {
    if (random() < 0.5) this.res.destroy()
    else this.res.end()
  }

  private head(type: string): void {
    this.res.writeHead(200, { 'content-type': type })
    if (this.format !== 'messages') {
      this.res.flushHeaders()
      return
    }
    const usage = { input_tokens: this.input, output_tokens: 1 }
    const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-sonnet-4-5' }
    const start = { ...message, content: [], stop_reason: null, stop_sequence: null, usage }
    this.res.write(event('message_start', { message: start }))
    const block = { index: 0, content_block: { type: 'text', text: '' } }
    this.res.write(event('content_block_start', block))
  }

  private errorBody(): string {
    const error = { type: 'overloaded_error', message: 'busy', code: 503, status: 'UNAVAILABLE' }
    if (!this.isStream) return JSON.stringify({ type: 'error', error })
    if (this.format === 'messages') return event('error', { error })
    return `data: ${JSON.stringify({ error })}\n\n`
  }

  private content(text: string, tokens: number): string {
    switch (this.format) {
      case 'chat':
        return chatChunk([{ index: 0, delta: { role: 'assistant', content: text } }])
      case 'messages':
        return event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })
      default:
        return `data: ${JSON.stringify(this.geminiReply(text, tokens, null))}\n\n`
    }
  }

  /** The events after the content. */
  private ends(): string[] {
    const { think, words } = this
    switch (this.format) {
      case 'chat':
        return [
          chatChunk([{ index: 0, delta: {}, finish_reason: 'stop' }]),
          chatChunk([], this.chatUsage()),
          'data: [DONE]\n\n',
        ]
      case 'messages':
        return [
          event('content_block_stop', { index: 0 }),
          event('message_delta', {
            delta: { stop_reason: 'end_turn', stop_sequence: null },
            usage: { output_tokens: think + words },
          }),
          event('message_stop', {}),
        ]
      default:
        return [`data: ${JSON.stringify(this.geminiReply('.', words, 'STOP'))}\n\n`]
    }
  }

  private whole(): string {
    const text = 'word '.repeat(Math.max(1, Math.floor(this.words * 0.8)))
    switch (this.format) {
      case 'chat':
        return JSON.stringify({
          ...CHAT,
          object: 'chat.completion',
          choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
          usage: this.chatUsage(),
        })
      case 'messages':
        return JSON.stringify({
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          model: 'claude-sonnet-4-5',
          content: [{ type: 'text', text }],
          stop_reason: 'end_turn',
          stop_sequence: null,
          usage: { input_tokens: this.input, output_tokens: this.think + this.words },
        })
      default:
        return JSON.stringify(this.geminiReply(text, this.words, 'STOP'))
    }
  }

  private chatUsage(): JsonObject {
    return {
      prompt_tokens: this.input,
      completion_tokens: this.think + this.words,
      total_tokens: this.input + this.think + this.words,
      completion_tokens_details: { reasoning_tokens: this.think },
    }
  }

  private geminiReply(text: string, tokens: number, finishReason: string | null): JsonObject {
    const content = { role: 'model', parts: [{ text }] }
    return {
      candidates: [{ content, index: 0, ...(finishReason === null ? {} : { finishReason }) }],
      usageMetadata: {
        promptTokenCount: this.input,
        candidatesTokenCount: tokens,
        thoughtsTokenCount: this.think,
      },
      modelVersion: 'gemini-2.5-flash',
      responseId: 'r',
    }
  }
}

const CHAT = { id: 'chatcmpl-1', created: 1, model: 'gpt-4o' }

function chatChunk(choices: JsonObject[], usage: JsonObject | null = null): string {
  const chunk = { ...CHAT, object: 'chat.completion.chunk', choices, usage }
  return `data: ${JSON.stringify(chunk)}\n\n`
}

function event(type: string, data: JsonObject): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
}

function formatOf(url: string): Format {
  if (url.includes('enerateContent')) return 'gemini'
  return url.includes('/messages') ? 'messages' : 'chat'
}

function limitIn(request: JsonObject): number {
  const limits = [
    request['max_tokens'],
    request['max_completion_tokens'],
    objectOf(request['generationConfig'])['maxOutputTokens'],
  ]
  const limit = limits.find((each) => typeof each === 'number')
  return typeof limit === 'number' ? limit : MODEL_LIMIT
}
