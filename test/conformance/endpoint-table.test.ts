/**
 * Goal: each cell of the table of endpoints by upstream is true: an upstream gets the requests of an endpoint
 * that it serves, and none of one that it does not, whose client reads which upstream refuses what. Native
 * access reaches the path of any of them.
 * Method: a gateway with an upstream of every preset, dialect and cloud, all at one server, which refuses
 * every request; one request for each cell.
 */
import t from 'tap'
import { upstreamKinds } from '../../docs/generate/upstreams-table.js'
import { TASK_NAMES, type TaskName } from '../../src/formats/chat/operations.js'
import { AWS_AUTH } from '../gateway/platforms/capture.js'
import { startGateway } from '../helpers/gateway.js'
import { startRawUpstream } from '../helpers/raw-upstream.js'
import { isToday } from '../helpers/long-suite.js'

/** What the upstream answers. */
const SEEN = 'The vendor has seen the request.'

/** The path and the body of each endpoint, for a model. */
const REQUESTS: Readonly<Record<TaskName, readonly [path: string, body: (model: string) => object]>> = {
  rerank: ['/v2/rerank', (model) => ({ model, query: 'q', documents: ['a', 'b'] })],
  moderations: ['/v1/moderations', (model) => ({ model, input: 'A text.' })],
  images: ['/v1/images/generations', (model) => ({ model, prompt: 'a cat' })],
  image_edits: ['/v1/images/edits', (model) => formOf({ model, prompt: 'a hat' }, 'image', 'a.png')],
  transcriptions: ['/v1/audio/transcriptions', (model) => formOf({ model }, 'file', 'a.wav')],
  translations: ['/v1/audio/translations', (model) => formOf({ model }, 'file', 'a.wav')],
  speech: ['/v1/audio/speech', (model) => ({ model, input: 'Hi.', voice: 'alloy' })],
}

function formOf(fields: Readonly<Record<string, string>>, name: string, file: string): FormData {
  const form = new FormData()
  for (const [field, value] of Object.entries(fields)) form.set(field, value)
  const type = file.endsWith('png') ? 'image/png' : 'audio/wav'
  form.set(name, new File([Buffer.from('RIFF')], file, { type }))
  return form
}

void t.test('every endpoint at every upstream', { timeout: 240_000 }, async (t) => {
  const upstream = await startRawUpstream(t, () => ({
    ...{ status: 400, type: 'application/json' },
    chunks: [JSON.stringify({ error: { message: SEEN } })],
  }))
  const kinds = upstreamKinds()
  const gateway = await startGateway(t)
  const prices = { '*': { input: 1, output: 1, per_image: 1, per_second_audio: 1, per_character: 1 } }
  const lines = kinds.map(({ settings }, at) => {
    const { platform } = settings
    const place = platform === 'vertex' ? ', project: acme, location: global' : ''
    const auth = platform === 'bedrock' ? `, region: eu-west-1, auth: ${AWS_AUTH}` : `${place}, api_key: k`
    const own = JSON.stringify({
      ...{ ...settings, base_url: `${upstream.origin}/v1`, prices, native: ['POST /v1/own'] },
    })
    return `  u${at}: ${own.slice(0, -1)}${auth} }\n`
  })
  const routes = kinds.map((_, at) => `  - { model: m${at}, upstream: u${at} }\n`)
  gateway.add(lines.join(''), routes.join(''))
  const ask = async (path: string, body: object): Promise<{ status: number; text: string; seen: number }> => {
    upstream.requests.length = 0
    const isForm = body instanceof FormData
    const reply = await fetch(gateway.origin + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${gateway.secret}`,
        ...(isForm ? {} : { 'content-type': 'application/json' }),
      },
      body: isForm ? body : JSON.stringify(body),
    })
    return { status: reply.status, text: await reply.text(), seen: upstream.requests.length }
  }
  for (const [at, { name, forms, settings }] of kinds.entries()) {
    for (const [index, task] of TASK_NAMES.entries()) {
      if (!isToday(at + index, 3)) continue
      const [path, body] = REQUESTS[task]
      const reply = await ask(path, body(`m${at}`))
      if (forms[task] === 'none') {
        t.match(
          reply,
          { status: 400, seen: 0, text: `No upstream of the model \\"m${at}\\" serves` },
          `${name}: ${task}`,
        )
      } else t.match(reply, { status: 400, seen: 1, text: SEEN }, `${name}: ${task}`)
    }
    if (settings['platform'] !== undefined) continue
    t.match(
      await ask(`/native/u${at}/v1/own`, { model: `m${at}` }),
      { seen: 1, text: SEEN },
      `${name}: native`,
    )
  }
})
