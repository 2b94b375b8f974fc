/**
 * Goal: what guardrails, recordings, the cache and shadows do for each endpoint beside chat is as in the
 * table of `docs/how-to/guardrails.md`: texts are masked, what no guardrail reads is noted as unseen, forms
 * are neither recorded nor copied, and only the operations of `cache.methods` are answered twice.
 * Method: one gateway with all four on one route, in front of an emulator and of another one for the shadow;
 * each endpoint is requested twice.
 */
import t from 'tap'
import { startEmulator } from '../../src/emulator/server.js'
import {
  CACHE_METHODS,
  isRecordable,
  isShadowable,
  OPERATIONS,
  TASK_NAMES,
  type TaskName,
} from '../../src/formats/chat/operations.js'
import { wavOf } from '../../src/formats/wire/media/sound.js'
import { startGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'
import { until } from '../helpers/redis.js'

/** The guardrail masks the word in all judged texts. */
const WORD = 'Nile'

interface Endpoint {
  readonly path: string
  readonly body: Readonly<Record<string, unknown>>
  /** The field of a form with a file. */
  readonly file?: string
  /** What the guardrail notes beside masks. */
  readonly isUnseen: boolean
}

const ENDPOINTS: Readonly<Record<TaskName | 'embeddings', Endpoint>> = {
  embeddings: { path: '/v1/embeddings', body: { input: `The ${WORD}.` }, isUnseen: false },
  rerank: {
    path: '/v2/rerank',
    body: { query: `The ${WORD}?`, documents: [`The ${WORD} is long.`, 'Bread.'] },
    isUnseen: false,
  },
  moderations: { path: '/v1/moderations', body: { input: [`The ${WORD}.`] }, isUnseen: false },
  images: { path: '/v1/images/generations', body: { prompt: `the ${WORD}` }, isUnseen: true },
  image_edits: { path: '/v1/images/edits', body: { prompt: `the ${WORD}` }, file: 'image', isUnseen: true },
  transcriptions: {
    path: '/v1/audio/transcriptions',
    body: { prompt: `the ${WORD}` },
    file: 'file',
    isUnseen: true,
  },
  translations: {
    path: '/v1/audio/translations',
    body: { prompt: `the ${WORD}` },
    file: 'file',
    isUnseen: true,
  },
  speech: {
    path: '/v1/audio/speech',
    body: { input: `The ${WORD}.`, voice: 'alloy', instructions: `as the ${WORD}` },
    isUnseen: true,
  },
}

function bodyOf({ body, file }: Endpoint, model: string): string | FormData {
  if (file === undefined) return JSON.stringify({ model, ...body })
  const form = new FormData()
  const [name, type] = file === 'image' ? ['a.png', 'image/png'] : ['a.wav', 'audio/wav']
  form.set(file, new File([wavOf(Buffer.alloc(16_000), 8_000)], name, { type }))
  for (const [field, value] of Object.entries({ model, ...body })) form.set(field, value)
  return form
}

void t.test('each endpoint follows the table', async (t) => {
  const shadow = await startEmulator({ models: 'any' })
  t.teardown(() => shadow.close())
  const prices =
    '{ "*": { input: 1, output: 1, output_image: 1, input_audio: 1, output_audio: 1, per_search: 1 } }'
  const gateway = await startGateway(t, {
    upstreamOptions: `operations: { rerank: cohere-v1 }, prices: ${prices}`,
    cloud: `dialect: openai-chat, base_url: "${shadow.baseUrls.openai}", api_key: emulated, operations: { rerank: cohere-v1 }, prices: ${prices}`,
    routes: `  - prefix: own-
    upstream: openai
    guardrails: [rivers]
    cache: { methods: [${CACHE_METHODS.join(', ')}] }
    shadow: { upstream: cloud, percent: 100, usd_per_day: 1000, concurrent: 16 }
`,
    more: `guardrails:
  rivers: { patterns: [${WORD}], action: mask, on: [request, response] }
escrow: { key: 0f4c9b1e7d2a85c36f10e9d8b7a6c5f4 }
record: { sample: 1 }
`,
  })
  for (const operation of ['embeddings', ...TASK_NAMES] as const) {
    const endpoint = ENDPOINTS[operation]
    const sentBefore = gateway.emulator.ledger.length
    const copiedBefore = shadow.ledger.length
    for (const at of [1, 2]) {
      const body = bodyOf(endpoint, `own-${operation}`)
      const reply = await fetch(gateway.origin + endpoint.path, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${gateway.secret}`,
          ...(typeof body === 'string' && { 'content-type': 'application/json' }),
        },
        body,
      })
      await reply.arrayBuffer()
      t.equal(reply.status, 200, `${operation}: request ${at}`)
      const row = (await rowsOf(gateway)).findLast(({ upstream }) => upstream !== 'cloud')
      const isHit = at === 2 && OPERATIONS[operation].cacheMethod !== null
      t.equal(row?.ingress, operation)
      t.equal(row?.recorded === true, isRecordable(operation), `${operation}: is recorded or not`)
      t.equal(row?.cacheHit === true, isHit, `${operation}: comes from the cache or not`)
      t.match(row?.guardrails, /rivers:mask/, `${operation}: is judged`)
      const notes = row?.guardrails ?? ''
      t.equal(notes.includes('rivers:unseen'), endpoint.isUnseen, `${operation}: ${notes}`)
    }
    const sent = gateway.emulator.ledger.slice(sentBefore)
    t.equal(
      sent.length,
      OPERATIONS[operation].cacheMethod === null ? 2 : 1,
      `${operation}: upstream requests`,
    )
    t.notMatch(JSON.stringify(sent), WORD, `${operation}: the upstream gets no text that is masked`)
    if (isShadowable(operation)) {
      await until(async () => Promise.resolve(shadow.ledger.length > copiedBefore), `${operation}: is copied`)
      t.notMatch(JSON.stringify(shadow.ledger.slice(copiedBefore)), WORD, `${operation}: nor does the shadow`)
    } else t.equal(shadow.ledger.length, copiedBefore, `${operation}: has no copy`)
  }
  const metrics = await gateway.metrics.text()
  t.match(metrics, /sluice_guardrail\w*\{[^}]*unseen[^}]*\} [1-9]/, 'unseen content is counted')
})
