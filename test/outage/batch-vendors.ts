/**
 * A provider with OpenAI's and Anthropic's APIs for batches, which holds its answer at the point that the
 * text of a batch's lines names, until `release`.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { arrayOf, objectOf, stringOf } from '../../src/base/json.js'
import { parseOrNull } from '../../src/formats/wire/json/full-scan.js'

/** The points at which an answer is held. */
export const POINTS = {
  upload: 'a part of the file has arrived',
  uploaded: 'the file has arrived',
  create: 'before the batch is made',
  created: 'the batch is made, and not answered',
  answered: 'the batch is made and answered',
  poll: 'the first question about the batch',
  results: 'before the results',
  half: 'half of the results are sent',
  last: 'all results but their end are sent',
  ended: 'all results are sent',
  cancel: 'the cancellation has arrived',
  line: 'a line of a queue runs',
} as const
export type Point = keyof typeof POINTS

/** A batch at the provider. */
interface Batch {
  readonly id: string
  readonly tag: string
  readonly keys: readonly string[]
  readonly madeAtMs: number
  isCancelled: boolean
}

/** What each line of a batch costs, with `PRICE`. */
export const LINE_NANO_USD = 400_000
const USAGE = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 }

export class BatchVendors {
  origin = ''
  /** The tags whose point is reached. */
  readonly reached = new Set<string>()
  /** How often a line of each queue ran. */
  readonly ran = new Map<string, number>()
  readonly batches: Batch[] = []
  private readonly files = new Map<string, readonly string[]>()
  private isReleased = false

  async start(t: Test): Promise<this> {
    const server = createServer((req, res) => {
      this.serve(req, res).catch(() => res.destroy())
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    this.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    t.teardown(() => {
      server.close()
      server.closeAllConnections()
    })
    return this
  }

  /** Holds nothing any more. */
  release(): void {
    this.isReleased = true
  }

  /** How many batches were made of lines with this tag. */
  made(tag: string): number {
    return this.batches.filter((batch) => batch.tag === tag).length
  }

  /** Whether the answer to a request about this tag is held at the point. */
  private holds(tag: string, point: Point): boolean {
    if (!tag.startsWith(`${point} `) || this.isReleased) return false
    this.reached.add(tag)
    return true
  }

  private async serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const path = (req.url ?? '').replace(/\?.*$/, '')
    const { method = '' } = req
    let text = ''
    for await (const chunk of req) {
      text += String(chunk)
      if (!this.isReleased && this.holds(tagIn(text), 'upload')) return
    }
    const tag = tagIn(text)
    if (method === 'POST' && path.endsWith('/cancel')) {
      const batch = this.batchAt(path)
      if (this.holds(batch.tag, 'cancel')) return
      batch.isCancelled = true
      answer(res, this.shown(batch, path))
    } else if (path === '/v1/files') {
      if (this.holds(tag, 'uploaded')) return
      const id = `file-up${this.files.size}`
      this.files.set(id, [tag, ...keysIn(text)])
      answer(res, { id, object: 'file' })
    } else if (method === 'POST' && path.endsWith('/batches')) this.make(res, path, text)
    else if (path === '/v1/chat/completions') {
      this.ran.set(tag, (this.ran.get(tag) ?? 0) + 1)
      // The second line: others have a result before.
      if (text.includes('line 1') && this.holds(tag, 'line')) return
      answer(res, completion())
    } else if (path.endsWith('/batches')) {
      const data = this.batches.toReversed().map((batch) => this.shown(batch, path))
      answer(res, { data, has_more: false })
    } else if (path.includes('/files/') || path.endsWith('/results')) this.sendResults(res, path)
    else {
      const batch = this.batchAt(path)
      if (this.holds(batch.tag, 'answered') || this.holds(batch.tag, 'poll')) return
      answer(res, this.shown(batch, path))
    }
  }

  private make(res: ServerResponse, path: string, text: string): void {
    const { input_file_id: file, metadata, requests } = objectOf(parseOrNull(text))
    const [named = '', ...keys] = this.files.get(stringOf(file) ?? '') ?? []
    const lines = arrayOf(requests).map((each) => stringOf(objectOf(each)['custom_id']) ?? '')
    const tag = path === '/v1/messages/batches' ? tagIn(text) : named
    if (this.holds(tag, 'create')) return
    const mark = stringOf(objectOf(metadata)['sluice_batch']) ?? ''
    const id = `up_${this.batches.length}_${mark}`
    const batch = { id, tag, keys: [...keys, ...lines], madeAtMs: Date.now(), isCancelled: false }
    this.batches.push(batch)
    if (this.holds(tag, 'created')) return
    answer(res, this.shown(batch, path))
  }

  private batchAt(path: string): Batch {
    const batch = this.batches.find(({ id }) => path.split('/').some((part) => part.endsWith(id)))
    if (batch === undefined) throw new Error('no such batch')
    return batch
  }

  private shown({ id, keys, madeAtMs, isCancelled, tag }: Batch, path: string): unknown {
    const isEnded = isCancelled || (!tag.startsWith('cancel') && Date.now() - madeAtMs > 300)
    if (path.includes('/messages/')) {
      return {
        ...{ id, processing_status: isEnded ? 'ended' : 'in_progress' },
        created_at: new Date(madeAtMs).toISOString(),
        request_counts: { processing: isEnded ? 0 : keys.length, succeeded: isEnded ? keys.length : 0 },
      }
    }
    return {
      id,
      status: isCancelled ? 'cancelled' : isEnded ? 'completed' : 'in_progress',
      created_at: Math.floor(madeAtMs / 1000),
      metadata: { sluice_batch: id.replace(/^up_\d+_/, '') },
      output_file_id: isEnded ? `out-${id}` : null,
    }
  }

  private sendResults(res: ServerResponse, path: string): void {
    const batch = this.batchAt(path.replace('/content', '').replace('/results', ''))
    const { tag, keys } = batch
    if (this.holds(tag, 'results')) return
    const lines = keys.toReversed().map((key) => resultOf(key, path.includes('/messages/')))
    if (this.holds(tag, 'half')) {
      res.write(lines.slice(0, keys.length / 2).join(''))
      return
    }
    if (this.holds(tag, 'last')) {
      res.write(lines.join(''))
      return
    }
    // The gateway is killed while it writes the results and charges them.
    this.holds(tag, 'ended')
    res.end(lines.join(''))
  }
}

/** The tag in the text of lines, as in `«half 1»`. */
function tagIn(text: string): string {
  return /«([^»]+)»/.exec(text)?.[1] ?? ''
}

function keysIn(text: string): string[] {
  return [...text.matchAll(/"custom_id":"([^"]+)"/g)].map(([, key = '']) => key)
}

function completion(): unknown {
  const message = { role: 'assistant', content: 'Yes.' }
  const choices = [{ index: 0, finish_reason: 'stop', message }]
  return { id: 'c', object: 'chat.completion', created: 1, model: 'm-5', choices, usage: USAGE }
}

function resultOf(key: string, isAnthropic: boolean): string {
  const message = {
    ...{ id: 'm', type: 'message', role: 'assistant', model: 'm-5', stop_reason: 'end_turn' },
    content: [{ type: 'text', text: 'Yes.' }],
    usage: { input_tokens: 100, output_tokens: 10, service_tier: 'batch' },
  }
  const result = isAnthropic
    ? { custom_id: key, result: { type: 'succeeded', message } }
    : { id: 'r', custom_id: key, response: { status_code: 200, body: completion() }, error: null }
  return `${JSON.stringify(result)}\n`
}

function answer(res: ServerResponse, body: unknown): void {
  res.setHeader('content-type', 'application/json')
  res.end(JSON.stringify(body))
}
