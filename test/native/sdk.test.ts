/**
 * Goal: the OpenAI SDK works through native access like with OpenAI itself.
 * Method: the real SDK, a gateway, and a provider with the endpoints.
 */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import OpenAI, { toFile } from 'openai'
import { OpenAIRealtimeWS } from 'openai/realtime/ws'
import t from 'tap'
import { eventually } from '../faults/scene.js'
import { newAuthority, newPair } from '../helpers/certificates.js'
import { rowsOf } from '../helpers/ledger.js'
import { openStage } from './stage.js'

void t.test('files: create, list, retrieve, content, delete', async (t) => {
  const { gateway, provider } = await openStage(t)
  const baseURL = `${gateway.origin}/native/openai/v1`
  const client = new OpenAI({ apiKey: gateway.secret, baseURL, maxRetries: 0 })
  const file = await toFile(Buffer.from('{"a":1}\n'), 'notes.jsonl')
  const created = await client.files.create({ file, purpose: 'batch' })
  t.equal(created.id, 'file-1')
  t.equal((await client.files.list()).data.length, 1)
  t.equal((await client.files.retrieve('file-1')).filename, 'notes.jsonl')
  const content = await (await client.files.content('file-1')).text()
  t.match(content, /\{"a":1\}/, 'the form arrives unchanged')
  t.equal((await client.files.delete('file-1')).deleted, true)
  t.strictSame(
    provider.seen.map(({ method, url }) => `${method} ${url}`),
    [
      'POST /v1/files',
      'GET /v1/files',
      'GET /v1/files/file-1',
      'GET /v1/files/file-1/content',
      'DELETE /v1/files/file-1',
    ],
    'the version is not doubled',
  )
  const rows = await rowsOf(gateway)
  t.equal(rows.length, 5, 'each request has one ledger entry')
  t.ok(
    rows.every(({ ingress, outcome, status }) => ingress === 'native' && outcome === 'ok' && status === 200),
  )
})

void t.test('audio: transcriptions with usage, speech as bytes', async (t) => {
  const { gateway } = await openStage(t)
  const baseURL = `${gateway.origin}/native/openai/v1`
  const client = new OpenAI({ apiKey: gateway.secret, baseURL, maxRetries: 0 })
  const file = await toFile(Buffer.alloc(100_000, 1), 'speech.mp3')
  const transcription = await client.audio.transcriptions.create({
    file,
    model: 'gpt-4o-transcribe',
  })
  t.equal(transcription.text, 'hello')
  const speech = await client.audio.speech.create({ input: 'hi', model: 'tts-1', voice: 'alloy' })
  t.strictSame(Buffer.from(await speech.arrayBuffer()), Buffer.from([0xff, 0xfb, 0x90, 0x64]))
  const [first, second] = await rowsOf(gateway)
  t.match(first, { source: 'reported', usage: { input: 14, output: 45 }, upstream: 'openai' })
  t.match(second, { source: 'none', usage: {}, costNanoUsd: null })
  t.equal(second?.labels, null, 'the key has none')
  t.equal(gateway.lines[1]?.['bytes_out'], 4)
})

void t.test('realtime over wss: one entry, written when it closes', async (t) => {
  const folder = t.testdir()
  const authority = newAuthority(folder, 'authority')
  const { cert, key } = newPair(folder, 'gateway', { authority })
  const { gateway, provider } = await openStage(t, {
    server: `tls: { cert: ${resolve(cert)}, key: ${resolve(key)} }`,
  })
  const baseURL = `https://127.0.0.1:${gateway.port}/native/openai/v1`
  const client = new OpenAI({ apiKey: gateway.secret, baseURL, maxRetries: 0 })
  const options = { ca: readFileSync(authority.cert) }
  const realtime = await OpenAIRealtimeWS.create(client, { model: 'gpt-realtime', options })
  await new Promise<void>((done, reject) => {
    realtime.on('error', reject)
    realtime.on('session.created', () => done())
  })
  const echoed = new Promise<string>((done) => {
    realtime.on('event', ({ type }) => done(type))
  })
  realtime.send({ type: 'response.create' })
  t.equal(await echoed, 'response.create', 'both ways')
  t.strictSame(await rowsOf(gateway), [], 'no entry while it is open')
  t.equal(provider.sockets.size, 1)
  realtime.close()
  await eventually(() => gateway.lines.length > 0, 'the log line')
  const rows = await rowsOf(gateway)
  t.equal(rows.length, 1)
  t.match(rows[0], { status: 101, upstreamStatus: 101, outcome: 'ok', ingress: 'native' })
  t.equal(rows[0]?.labels, null, 'the key has none')
  const [line] = gateway.lines
  t.ok(Number(line?.['bytes_in']) > 0 && Number(line?.['bytes_out']) > 0)
  t.equal(provider.seen[0]?.url, '/v1/realtime?model=gpt-realtime')
  await eventually(() => provider.sockets.size === 0, 'the upstream is closed')
})
