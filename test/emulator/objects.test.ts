/**
 * Goal: the emulator has the files and batches of OpenAI, Anthropic and Google, with faults: results that are
 * lost, late or in another order, batches that expire or are cancelled half way, polls that fail.
 * Method: the vendors' SDKs against the emulator, with a clock that the test moves.
 */
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI, { toFile } from 'openai'
import t, { type Test } from 'tap'
import { objectOf, stringOf, type JsonObject } from '../../src/base/json.js'
import { startEmulator, type Emulator } from '../../src/emulator/server.js'

interface Stage {
  readonly emulator: Emulator
  readonly openai: OpenAI
  readonly anthropic: Anthropic
  readonly google: GoogleGenAI
  readonly wait: (ms: number) => void
}

async function open(t: Test): Promise<Stage> {
  let nowMs = Date.parse('2026-11-30T12:00:00Z')
  const emulator = await startEmulator({ clock: () => nowMs })
  t.teardown(() => emulator.close())
  const { origin } = emulator
  return {
    emulator,
    openai: new OpenAI({ apiKey: 'sk-a', baseURL: `${origin}/v1`, maxRetries: 0 }),
    anthropic: new Anthropic({ apiKey: 'sk-a', baseURL: origin, maxRetries: 0 }),
    google: new GoogleGenAI({ apiKey: 'sk-a', httpOptions: { baseUrl: origin } }),
    wait: (ms) => (nowMs += ms),
  }
}

const LINES = ['hi', 'ho [[fault: status code=400]]', 'hm', 'ha']

function openAiLines(lines = LINES): string {
  return lines
    .map((content, at) => {
      const body = { model: 'gpt-5.4', messages: [{ role: 'user', content }] }
      return `${JSON.stringify({ custom_id: `c${at}`, method: 'POST', url: '/v1/chat/completions', body })}\n`
    })
    .join('')
}

async function openAiBatch({ openai }: Stage, lines = LINES): Promise<OpenAI.Batch> {
  const file = await toFile(Buffer.from(openAiLines(lines)), 'lines.jsonl')
  const { id } = await openai.files.create({ file, purpose: 'batch' })
  return openai.batches.create({
    ...{ input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' },
    metadata: { a: 'b' },
  })
}

async function idsIn({ openai }: Stage, id: string | null | undefined): Promise<string[]> {
  if (typeof id !== 'string') return []
  const text = await (await openai.files.content(id)).text()
  return text
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { custom_id: string }).custom_id)
}

void t.test('OpenAI: files and a batch', async (t) => {
  const stage = await open(t)
  const { openai, wait } = stage
  const batch = await openAiBatch(stage)
  t.match(batch, { status: 'validating', request_counts: { total: 4 }, metadata: { a: 'b' } })
  wait(200)
  t.equal((await openai.batches.retrieve(batch.id)).status, 'in_progress')
  wait(200)
  const ended = await openai.batches.retrieve(batch.id)
  t.match(ended, { status: 'completed', request_counts: { total: 4, completed: 3, failed: 1 } })
  t.strictSame(await idsIn(stage, ended.output_file_id), ['c0', 'c2', 'c3'])
  t.strictSame(await idsIn(stage, ended.error_file_id), ['c1'])
  const files = (await openai.files.list()).data
  t.strictSame(files.map(({ purpose }) => purpose).toSorted(), ['batch', 'batch_output', 'batch_output'])
  t.match(await openai.files.delete(batch.input_file_id), { deleted: true })
  await t.rejects(openai.files.retrieve(batch.input_file_id), /404/)
  await t.rejects(openai.batches.retrieve('batch_none'), /404/)
})

void t.test("Mistral: jobs below OpenAI's base path", async (t) => {
  const stage = await open(t)
  const { openai, emulator, wait } = stage
  const call = async (path: string, body?: object): Promise<JsonObject> => {
    const res = await fetch(`${emulator.baseUrls.openai}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: 'Bearer emulated', 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { ...objectOf(await res.json()), httpStatus: res.status }
  }
  const lines = LINES.map((content, at) => {
    return { custom_id: `c${at}`, body: { messages: [{ role: 'user', content }] } }
  })
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
  const file = await openai.files.create({
    file: await toFile(Buffer.from(text), 'l.jsonl'),
    purpose: 'batch',
  })
  const asked = {
    endpoint: '/v1/chat/completions',
    model: 'gpt-5.4',
    metadata: { of: 'a' },
    timeout_hours: 24,
  }
  const job = await call('/batch/jobs', { ...asked, input_files: [file.id] })
  t.match(job, { status: 'QUEUED', total_requests: 4, metadata: { of: 'a' }, input_files: [file.id] })
  const id = stringOf(job['id']) ?? ''
  wait(200)
  t.match(await call(`/batch/jobs/${id}`), { status: 'RUNNING', output_file: null })
  wait(200)
  const ended = await call(`/batch/jobs/${id}`)
  t.match(ended, { status: 'SUCCESS', completed_requests: 4, succeeded_requests: 3, failed_requests: 1 })
  t.strictSame(await idsIn(stage, stringOf(ended['output_file'])), ['c0', 'c2', 'c3'])
  t.strictSame(await idsIn(stage, stringOf(ended['error_file'])), ['c1'])
  await t.rejects(openai.batches.retrieve(id), /404/, 'it is no batch of OpenAI')

  emulator.script({ match: ({ path }) => path === '/batch/jobs', times: 1, fault: { kind: 'expire' } })
  const expiring = await call('/batch/jobs', { ...asked, requests: lines })
  wait(400)
  t.match(await call(`/batch/jobs/${stringOf(expiring['id'])}`), { status: 'TIMEOUT_EXCEEDED' })
  const cancelling = await call('/batch/jobs', { ...asked, requests: lines })
  const cancelled = await call(`/batch/jobs/${stringOf(cancelling['id'])}/cancel`, {})
  t.match(cancelled, { status: 'CANCELLATION_REQUESTED' })
  wait(400)
  t.match(await call(`/batch/jobs/${stringOf(cancelling['id'])}`), { status: 'CANCELLED' })
  const page = await call('/batch/jobs?page=1&page_size=2')
  t.match(page, { total: 3, data: [{ id }] })
  t.match(await call('/batch/jobs', { ...asked, input_files: ['file-none'] }), { httpStatus: 404 })
})

void t.test('OpenAI: faults', async (t) => {
  const stage = await open(t)
  const { openai, emulator, wait } = stage
  emulator.script({
    match: ({ path }) => path === '/batches',
    times: 1,
    fault: [{ kind: 'reorder' }, { kind: 'late-results', ms: 1000 }],
  })
  const late = await openAiBatch(stage, ['a', 'b [[fault: lose-result]]', 'c'])
  wait(900)
  t.equal((await openai.batches.retrieve(late.id)).status, 'in_progress')
  wait(900)
  const ended = await openai.batches.retrieve(late.id)
  t.strictSame(await idsIn(stage, ended.output_file_id), ['c2', 'c0'])
  emulator.script({ match: ({ method }) => method === 'GET', times: 1, fault: { kind: 'status', code: 503 } })
  await t.rejects(openai.batches.retrieve(late.id), /503/, 'a poll that fails')
  emulator.script({ match: ({ path }) => path === '/batches', times: 1, fault: { kind: 'expire' } })
  const expiring = await openAiBatch(stage, ['a', 'b', 'c', 'd'])
  wait(400)
  const expired = await openai.batches.retrieve(expiring.id)
  t.match(expired, { status: 'expired', request_counts: { completed: 2, failed: 2 } })
  t.strictSame(await idsIn(stage, expired.error_file_id), ['c2', 'c3'])
  const cancelling = await openAiBatch(stage, ['a', 'b', 'c', 'd'])
  t.equal((await openai.batches.cancel(cancelling.id)).status, 'cancelling')
  wait(400)
  const cancelled = await openai.batches.retrieve(cancelling.id)
  t.match(cancelled, { status: 'cancelled', request_counts: { completed: 2, failed: 2 } })
})

void t.test('Anthropic: files and a batch', async (t) => {
  const stage = await open(t)
  const { anthropic, wait } = stage
  const file = await anthropic.files.upload({
    file: await toFile(Buffer.from('abc'), 'a.txt', { type: 'text/plain' }),
  })
  t.match(file, {
    type: 'file',
    filename: 'a.txt',
    size_bytes: 3,
    mime_type: 'text/plain',
    downloadable: false,
  })
  t.equal((await anthropic.files.retrieveMetadata(file.id)).id, file.id)
  t.equal((await anthropic.files.list()).data.length, 1)
  await t.rejects(anthropic.files.download(file.id), /400/)
  t.match(await anthropic.files.delete(file.id), { id: file.id, type: 'file_deleted' })
  const requests = LINES.map((content, at) => {
    const params = {
      model: 'claude-sonnet-4-5',
      max_tokens: 9,
      messages: [{ role: 'user' as const, content }],
    }
    return { custom_id: `c${at}`, params }
  })
  const batch = await anthropic.messages.batches.create({ requests })
  t.match(batch, { processing_status: 'in_progress', results_url: null })
  await t.rejects(anthropic.messages.batches.results(batch.id))
  wait(400)
  t.match(await anthropic.messages.batches.retrieve(batch.id), {
    processing_status: 'ended',
    request_counts: { processing: 0, succeeded: 3, errored: 1 },
  })
  const types: string[] = []
  for await (const { custom_id: id, result } of await anthropic.messages.batches.results(batch.id)) {
    types.push(`${id} ${result.type}`)
  }
  t.strictSame(types, ['c0 succeeded', 'c1 errored', 'c2 succeeded', 'c3 succeeded'])
})

void t.test('Google: files and batches', async (t) => {
  const stage = await open(t)
  const { google, wait } = stage
  const text = LINES.map((each, at) => {
    return `${JSON.stringify({ key: `c${at}`, request: { contents: [{ role: 'user', parts: [{ text: each }] }] } })}\n`
  }).join('')
  const file = await google.files.upload({
    file: new Blob([text]),
    config: { mimeType: 'application/jsonl', displayName: 'lines' },
  })
  t.match(file, { displayName: 'lines', mimeType: 'application/jsonl', state: 'ACTIVE' })
  t.equal((await google.files.get({ name: file.name ?? '' })).sizeBytes, String(text.length))
  const form = new FormData()
  form.append('metadata', new Blob([JSON.stringify({ file: { display_name: 'in snake case' } })]))
  form.append('file', new Blob(['bytes']))
  const uploads = `${stage.emulator.origin}/upload/v1beta/files?key=a`
  const raw = await fetch(uploads, { method: 'POST', body: form })
  t.match(await raw.json(), { file: { displayName: 'in snake case' } })
  const model = 'gemini-2.5-flash'
  const batch = await google.batches.create({ model, src: { fileName: file.name ?? '' } })
  wait(400)
  const ended = await google.batches.get({ name: batch.name ?? '' })
  t.match(ended, { state: 'JOB_STATE_SUCCEEDED', dest: { fileName: /^files\// } })
  const lines = await (
    await fetch(
      `${stage.emulator.origin}/download/v1beta/${ended.dest?.fileName ?? ''}:download?alt=media&key=a`,
    )
  ).text()
  t.match(lines, /"key":"c0","response"/)
  t.match(lines, /"key":"c1","error"/)
  const inline = await google.batches.create({
    model,
    src: LINES.map((each) => ({ contents: [{ role: 'user', parts: [{ text: each }] }] })),
  })
  wait(400)
  const results = await google.batches.get({ name: inline.name ?? '' })
  t.equal(results.dest?.inlinedResponses?.length, 4)
  await google.files.delete({ name: file.name ?? '' })
  await t.rejects(google.files.get({ name: file.name ?? '' }))
})
