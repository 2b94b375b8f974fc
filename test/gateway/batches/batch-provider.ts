/** A small provider with the APIs for batches of OpenAI, Anthropic and Gemini. */
import { createServer, type IncomingMessage } from 'node:http'
import type { Test } from 'tap'
import { listen } from '../../helpers/listen.js'

/** The line that every provider refuses. */
const BAD = 'c1'

interface Line {
  readonly key: string
  readonly body: Record<string, unknown>
}

/** A provider with all three APIs; its batches end at the second look. */
export class BatchProvider {
  lines: Line[] = []
  looks = 0
  created = 0
  isCancelled = false
  /** Results of lines that it never received. */
  strays: Line[] = []
  /** How its batches of OpenAI's API end. */
  end: 'completed' | 'expired' = 'completed'
  /** The lines that do not run before the window ends. */
  unrun: readonly string[] = []
  readonly cancels: string[] = []
  /** Of the last request that had the header. */
  betas: string | readonly string[] = ''
  origin = ''

  async start(t: Test): Promise<this> {
    const server = createServer((req, res) => {
      void textOfRequest(req).then((text) => {
        this.betas = req.headers['anthropic-beta'] ?? this.betas
        const answer = this.answer(req.method ?? '', req.url ?? '', text)
        res.statusCode = answer === null ? 404 : 200
        res.setHeader('content-type', 'application/json')
        res.end(
          typeof answer === 'string'
            ? answer
            : JSON.stringify(answer ?? { error: { message: 'no such path' } }),
        )
      })
    })
    this.origin = `http://127.0.0.1:${await listen(t, server)}`
    return this
  }

  private answer(method: string, url: string, text: string): unknown {
    const path = url.replace(/\?.*$/, '')
    if (method === 'POST' && path.endsWith('/cancel')) {
      this.isCancelled = true
      this.cancels.push(path)
      return this.openai('cancelling')
    }
    if (method === 'POST' && path === '/v1/files') {
      const lines = text.split('\n').filter((line) => line.startsWith('{'))
      this.lines = lines.map((line) => lineOf(JSON.parse(line)))
      return { id: 'file-up', object: 'file' }
    }
    if (method === 'POST') this.created += 1
    if (path === '/v1/batch/jobs') return { id: 'job-up', status: 'QUEUED' }
    if (path === '/v1/batch/jobs/job-up') {
      const isDone = this.stateNow('completed') === 'completed'
      return { id: 'job-up', status: isDone ? 'SUCCESS' : 'RUNNING', output_file: isDone ? 'file-out' : null }
    }
    if (path === '/v1/batches' && method === 'POST') return this.openai('validating')
    if (path === '/v1/batches/batch_up') return this.openai(this.stateNow(this.end))
    if (path === '/v1/files/file-out/content') return this.results((line) => this.openaiResult(line))
    if (path === '/v1/messages/batches' && method === 'POST') {
      const { requests } = JSON.parse(text) as {
        requests: { custom_id: string; params: Record<string, unknown> }[]
      }
      this.lines = requests.map(({ custom_id, params }) => ({ key: custom_id, body: params }))
      return this.anthropic('in_progress')
    }
    if (path === '/v1/messages/batches/msgbatch_up') {
      return this.anthropic(this.stateNow('ended') === 'ended' ? 'ended' : 'in_progress')
    }
    if (path.endsWith('/results')) return this.results((line) => anthropicResult(line))
    if (path.endsWith(':batchGenerateContent')) {
      const { batch } = JSON.parse(text) as {
        batch: {
          inputConfig: {
            requests: { requests: { request: Record<string, unknown>; metadata: { key: string } }[] }
          }
        }
      }
      this.lines = batch.inputConfig.requests.requests.map(({ request, metadata }) => ({
        key: metadata.key,
        body: request,
      }))
      return { name: 'batches/up', metadata: { state: 'BATCH_STATE_PENDING' } }
    }
    if (path === '/v1beta/batches/up') return this.gemini()
    return null
  }

  private stateNow(last: string): string {
    this.looks += 1
    if (this.isCancelled) return last === this.end ? 'cancelled' : last
    return this.looks < 2 ? 'in_progress' : last
  }

  private openai(status: string): unknown {
    const isDone = status === this.end || status === 'cancelled'
    return {
      id: 'batch_up',
      object: 'batch',
      status,
      output_file_id: isDone ? 'file-out' : null,
      request_counts: { total: 3 },
    }
  }

  private openaiResult({ key, body }: Line): unknown {
    if (this.unrun.includes(key)) {
      const error = { code: 'batch_expired', message: 'This request did not run in time.' }
      return { id: 'r', custom_id: key, response: null, error }
    }
    const isBad = key === BAD
    const reply = {
      ...{ id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: body['model'] },
      choices: [
        { index: 0, finish_reason: 'stop', message: { role: 'assistant', content: `reply to ${key}` } },
      ],
      usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 },
    }
    const error = {
      error: { message: 'too hot', type: 'invalid_request_error', param: 'temperature', code: null },
    }
    const response = isBad ? { status_code: 400, body: error } : { status_code: 200, body: reply }
    return { id: 'r', custom_id: key, response, error: null }
  }

  private anthropic(status: string): unknown {
    return {
      id: 'msgbatch_up',
      type: 'message_batch',
      processing_status: status,
      request_counts: { succeeded: 2, errored: 1 },
    }
  }

  private gemini(): unknown {
    if (this.stateNow('x') !== 'x') return { name: 'batches/up', metadata: { state: 'BATCH_STATE_RUNNING' } }
    const inlinedResponses = this.lines.toReversed().map(({ key }) => {
      if (key === BAD) return { metadata: { key }, error: { code: 3, message: 'too hot' } }
      const response = {
        candidates: [
          { content: { role: 'model', parts: [{ text: `reply to ${key}` }] }, finishReason: 'STOP' },
        ],
        usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 10, totalTokenCount: 110 },
        modelVersion: 'gemini-batch-5',
      }
      return { metadata: { key }, response }
    })
    const output = { inlinedResponses: { inlinedResponses } }
    return {
      name: 'batches/up',
      done: true,
      metadata: { state: 'BATCH_STATE_SUCCEEDED', output },
      response: output,
    }
  }

  /** In another order than the lines. */
  private results(of: (line: Line) => unknown): string {
    return [...this.strays, ...this.lines.toReversed()]
      .map((line) => `${JSON.stringify(of(line))}\n`)
      .join('')
  }
}

/** Anthropic gets ids of the gateway: that of the batch and the number of the line. */
function anthropicResult({ key, body }: Line): unknown {
  const name = key.replace(/^(?:msg)?batch_[A-Za-z0-9]{24}-(\d+)$/, (_, number) => `c${Number(number) - 1}`)
  if (name === BAD) {
    const error = { type: 'error', error: { type: 'invalid_request_error', message: 'too hot' } }
    return { custom_id: key, result: { type: 'errored', error } }
  }
  const message = {
    ...{ id: 'msg_1', type: 'message', role: 'assistant', model: body['model'], stop_reason: 'end_turn' },
    content: [{ type: 'text', text: `reply to ${name}` }],
    usage: { input_tokens: 100, output_tokens: 10, service_tier: 'batch' },
  }
  return { custom_id: key, result: { type: 'succeeded', message } }
}

function lineOf(value: unknown): Line {
  const { custom_id, body } = value as { custom_id: string; body: Record<string, unknown> }
  return { key: custom_id, body }
}

async function textOfRequest(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
