/**
 * Goal: a batch of OpenAI's format runs at each vendor's API for batches: each line is translated there and
 * back, results come in the order of the lines, and it is charged once, at the price of batches.
 * Method: the OpenAI SDK against a gateway, and small providers with each API that answer in another order.
 */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { rowsOf } from '../../helpers/ledger.js'
import { batchOf, ended, openBatchStage, PLACES, resultsIn, textOf } from './batch-stage.js'

t.setTimeout(120_000)

/** The line that every provider refuses. */
const BAD = 'c1'

interface Line {
  readonly key: string
  readonly body: Record<string, unknown>
}

/** A provider with all three APIs; its batches end at the second look. */
class Provider {
  lines: Line[] = []
  looks = 0
  created = 0
  isCancelled = false
  readonly cancels: string[] = []
  origin = ''

  async start(t: Test): Promise<this> {
    const server = createServer((req, res) => {
      void textOfRequest(req).then((text) => {
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
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.teardown(() => server.close())
    this.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
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
    if (path === '/v1/batches' && method === 'POST') return this.openai('validating')
    if (path === '/v1/batches/batch_up') return this.openai(this.stateNow('completed'))
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
    if (this.isCancelled) return last === 'completed' ? 'cancelled' : last
    return this.looks < 2 ? 'in_progress' : last
  }

  private openai(status: string): unknown {
    const isDone = status === 'completed' || status === 'cancelled'
    return {
      id: 'batch_up',
      object: 'batch',
      status,
      output_file_id: isDone ? 'file-out' : null,
      request_counts: { total: 3 },
    }
  }

  private openaiResult({ key, body }: Line): unknown {
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
    return this.lines
      .toReversed()
      .map((line) => `${JSON.stringify(of(line))}\n`)
      .join('')
  }
}

function anthropicResult({ key, body }: Line): unknown {
  if (key === BAD) {
    const error = { type: 'error', error: { type: 'invalid_request_error', message: 'too hot' } }
    return { custom_id: key, result: { type: 'errored', error } }
  }
  const message = {
    ...{ id: 'msg_1', type: 'message', role: 'assistant', model: body['model'], stop_reason: 'end_turn' },
    content: [{ type: 'text', text: `reply to ${key}` }],
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

const PRICES = (model: string): string =>
  `prices: { ${model}: { input: 5, output: 30, service_tiers: { batch: 0.5 } } }`

const MODELS = ['gpt-batch-5', 'claude-batch-5', 'gemini-batch-5'] as const

for (const [at, model] of MODELS.entries()) {
  const place = PLACES[at % 2] ?? PLACES[0]
  void t.test(`${model}, ${place.store}: translated, in order, charged once at half the price`, async (t) => {
    const provider = await new Provider().start(t)
    const { origin } = provider
    const { gateway, client } = await openBatchStage(t, place, {
      upstreams: { openai: `${origin}/v1`, anthropic: `${origin}/v1`, gemini: `${origin}/v1beta` },
      upstreamOptions: PRICES(model),
      more: 'limits: [{ scope: account, usd_per_day: 1 }]\n',
    })
    const chat = (more: object = {}): object => ({
      ...{ model, messages: [{ role: 'user', content: 'hi' }], max_completion_tokens: 50 },
      ...more,
    })
    const made = await batchOf(client, textOf([chat(), chat(), chat(), chat({ tools: 7 })]))
    t.equal(made.status, 'validating')
    const batch = await ended(client, made.id)
    t.match(batch, { status: 'completed', request_counts: { total: 4, completed: 2, failed: 2 } })
    const output = await resultsIn(client, batch.output_file_id)
    t.same(
      output.map(({ custom_id }) => custom_id),
      ['c0', 'c2'],
    )
    t.same(
      output.map(({ response }) => response?.body.choices?.[0]?.message.content),
      ['reply to c0', 'reply to c2'],
    )
    const errors = await resultsIn(client, batch.error_file_id)
    t.match(errors, [
      { custom_id: 'c1', response: { status_code: 400, body: { error: { message: /too hot/ } } } },
      { custom_id: 'c3', response: { status_code: 400, body: { error: { param: 'tools' } } } },
    ])
    t.equal(provider.created, 1, 'it was sent once')
    t.equal(provider.lines.length, 3, 'the refused line was not sent')
    for (let read = 0; read < 3; read += 1) await client.batches.retrieve(made.id)
    const rows = await rowsOf(gateway)
    const charged = rows.filter(({ costNanoUsd }) => (costNanoUsd ?? 0) > 0)
    t.equal(charged.length, 1)
    // Two lines at half of 100 tokens at $5 and 10 at $30 a million.
    t.match(charged[0], { requestId: made.id, costNanoUsd: 800_000, ingress: 'batches', source: 'reported' })
    t.match(charged[0]?.usage, { input: 200, output: 20 })
  })
}

void t.test('a budget that is too small refuses the batch before anything is sent', async (t) => {
  const provider = await new Provider().start(t)
  const { client } = await openBatchStage(t, PLACES[0], {
    upstreams: { openai: `${provider.origin}/v1` },
    upstreamOptions: PRICES('gpt-batch-5'),
    more: 'limits: [{ scope: account, usd_per_day: 0.002 }]\n',
  })
  const line = {
    model: 'gpt-batch-5',
    messages: [{ role: 'user', content: 'hi' }],
    max_completion_tokens: 50,
  }
  const refused: unknown = await batchOf(client, textOf([line, line])).catch((error: unknown) => error)
  t.match(refused, { status: 402 })
  t.equal(provider.created, 0)
  const made = await batchOf(client, textOf([line]))
  t.equal((await ended(client, made.id)).status, 'completed')
})

void t.test('a cancelled batch is cancelled at the vendor, and what ran is charged', async (t) => {
  const provider = await new Provider().start(t)
  const { client, gateway } = await openBatchStage(t, PLACES[0], {
    upstreams: { openai: `${provider.origin}/v1` },
    upstreamOptions: PRICES('gpt-batch-5'),
  })
  provider.looks = -1_000
  const line = {
    model: 'gpt-batch-5',
    messages: [{ role: 'user', content: 'hi' }],
    max_completion_tokens: 50,
  }
  const made = await batchOf(client, textOf([line, line]))
  while ((await client.batches.retrieve(made.id)).status !== 'in_progress')
    await new Promise((resolve) => setTimeout(resolve, 50))
  t.equal((await client.batches.cancel(made.id)).status, 'cancelling')
  const batch = await ended(client, made.id)
  t.match(batch, { status: 'cancelled', request_counts: { completed: 1, failed: 1 } })
  t.same(provider.cancels, ['/v1/batches/batch_up/cancel'])
  const charged = (await rowsOf(gateway)).filter(({ costNanoUsd }) => (costNanoUsd ?? 0) > 0)
  t.same(
    charged.map(({ costNanoUsd }) => costNanoUsd),
    [400_000],
  )
})
