/** The checks of the endpoints beside chat, by operation, in the order of the table. */
import { setTimeout as pause } from 'node:timers/promises'
import {
  arrayOf,
  isObject,
  numberOf,
  objectOf,
  stringOf,
  type JsonObject,
  type JsonValue,
} from '../../base/json.js'
import { TASK_NAMES } from '../../formats/chat/operations.js'
import { wavOf } from '../../formats/wire/media/sound.js'
import { PASSED, PICTURE, type CheckOutcome } from './checks.js'
import { type Answer, type FormFields, type FormFile, type OperationClient } from './operation-client.js'
import { NO_SUCH_MODEL, WITH_WRONG_KEY } from './rehearsal-gateway.js'
import { Mismatch, Untranslatable } from './rehearsal-client.js'

/** The operations of `--operation`. */
export const REHEARSED_OPERATIONS = [...TASK_NAMES, 'batches'] as const
export type RehearsedOperation = (typeof REHEARSED_OPERATIONS)[number]

/** One check. Throws `Mismatch` if the upstream fails it. */
interface OperationCheck {
  readonly name: string
  run(client: OperationClient): Promise<CheckOutcome>
}

/** A request of an operation: the path, and its body or form. */
type Ask = (client: OperationClient, more?: JsonObject) => Promise<Answer>

const QUERY = 'Which city is the capital of France?'
const DOCUMENTS = ['Berlin is the capital of Germany.', 'Paris is the capital of France.', 'Bread is food.']
const PNG: FormFile = { name: 'a.png', type: 'image/png', bytes: Buffer.from(PICTURE, 'base64') }
const RATE = 8_000

/** Two seconds of silence: 8 kHz, 16 bits, mono. */
function silence(): FormFile {
  return { name: 'a.wav', type: 'audio/wav', bytes: wavOf(Buffer.alloc(2 * 2 * RATE), RATE) }
}

const rank: Ask = (client, more = {}) =>
  client.json('/v2/rerank', { model: client.model, query: QUERY, documents: DOCUMENTS, ...more })
const moderate: Ask = (client, more = {}) =>
  client.json('/v1/moderations', { model: client.model, input: 'A quiet day.', ...more })
const draw: Ask = (client, more = {}) =>
  client.json('/v1/images/generations', { model: client.model, prompt: 'A red square.', ...more })
const sound: Ask = (client, more = {}) =>
  client.json('/v1/audio/speech', { model: client.model, input: 'Hello there.', voice: 'alloy', ...more })
const edit: Ask = (client, more = {}) =>
  client.form('/v1/images/edits', fields(client, [['image', PNG]], { prompt: 'Make it blue.', ...more }))
const transcribe: Ask = (client, more = {}) =>
  client.form('/v1/audio/transcriptions', fields(client, [['file', silence()]], more))
const translate: Ask = (client, more = {}) =>
  client.form('/v1/audio/translations', fields(client, [['file', silence()]], more))

/** Files come first, as in OpenAI's Node SDK. */
function fields({ model }: OperationClient, files: FormFields, more: JsonObject): FormFields {
  const own = Object.entries({ model, ...more }).map(([name, value]) => [name, textOf(value)] as const)
  return [...files, ...own]
}

function textOf(value: JsonValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

const CHECKS: Readonly<Record<RehearsedOperation, readonly OperationCheck[]>> = {
  rerank: [
    check('reply', rank, (answer) => expectRanks(answer, DOCUMENTS.length)),
    check(
      'top_n',
      (client) => rank(client, { top_n: 1 }),
      (answer) => expectRanks(answer, 1),
    ),
    check(
      'documents returned',
      (client) => client.json('/v1/rerank', { ...rankBody(client), return_documents: true }),
      expectDocuments,
    ),
    check(
      'documents as objects',
      (client) =>
        client.json('/v1/rerank', { ...rankBody(client), documents: DOCUMENTS.map((text) => ({ text })) }),
      (answer) => expectRanks(answer, DOCUMENTS.length),
    ),
    check('best document', rank, expectBest),
    ...shared(rank),
  ],
  moderations: [
    check('reply', moderate, (answer) => expectVerdicts(answer, 1)),
    check(
      'several texts',
      (client) => moderate(client, { input: ['One.', 'Two.'] }),
      (answer) => expectVerdicts(answer, 2),
    ),
    check(
      'parts',
      (client) => moderate(client, { input: [{ type: 'text', text: 'One.' }] }),
      (answer) => expectVerdicts(answer, 1),
    ),
    check(
      'long text',
      (client) => moderate(client, { input: 'A quiet day. '.repeat(200) }),
      (answer) => expectVerdicts(answer, 1),
    ),
    ...shared(moderate),
  ],
  images: [
    check('reply', draw, expectPictures),
    check('size', (client) => draw(client, { size: '1024x1024' }), expectPictures),
    check('quality', (client) => draw(client, { quality: 'low' }), expectPictures),
    check(
      'stream',
      (client) => draw(client, { stream: true }),
      (answer) => expectEvent(answer, 'image_generation.completed'),
    ),
    ...shared(draw),
  ],
  image_edits: [
    check('reply', edit, expectPictures),
    check(
      'fields before the file',
      (client) =>
        client.form('/v1/images/edits', [
          ['model', client.model],
          ['prompt', 'Make it blue.'],
          ['image', PNG],
        ]),
      expectPictures,
    ),
    check(
      'two pictures',
      (client) =>
        client.form(
          '/v1/images/edits',
          fields(
            client,
            [
              ['image[]', PNG],
              ['image[]', PNG],
            ],
            { prompt: 'Join them.' },
          ),
        ),
      expectPictures,
    ),
    check(
      'stream',
      (client) => edit(client, { stream: true }),
      (answer) => expectEvent(answer, 'image_edit.completed'),
    ),
    ...shared(edit),
  ],
  transcriptions: [
    check('reply', transcribe, expectTranscript),
    check(
      'fields before the file',
      (client) =>
        client.form('/v1/audio/transcriptions', [
          ['model', client.model],
          ['file', silence()],
        ]),
      expectTranscript,
    ),
    check('language', (client) => transcribe(client, { language: 'en' }), expectTranscript),
    check(
      'text',
      (client) => transcribe(client, { response_format: 'text' }),
      ({ type }) => expectType(type, /^text\//),
    ),
    check(
      'subtitles',
      (client) => transcribe(client, { response_format: 'vtt' }),
      ({ bytes }) => {
        if (!bytes.toString().startsWith('WEBVTT'))
          throw new Mismatch('the subtitles do not begin with WEBVTT')
      },
    ),
    check('stream', (client) => transcribe(client, { stream: true }), expectTranscribed),
    ...shared(transcribe),
  ],
  translations: [
    check('reply', translate, expectTranscript),
    check(
      'fields before the file',
      (client) =>
        client.form('/v1/audio/translations', [
          ['model', client.model],
          ['file', silence()],
        ]),
      expectTranscript,
    ),
    check('prompt', (client) => translate(client, { prompt: 'A greeting.' }), expectTranscript),
    check(
      'text',
      (client) => translate(client, { response_format: 'text' }),
      ({ type }) => expectType(type, /^text\//),
    ),
    ...shared(translate),
  ],
  speech: [
    check('reply', sound, expectSound),
    check(
      'wav',
      (client) => sound(client, { response_format: 'wav' }),
      (answer) => {
        expectSound(answer)
        if (answer.bytes.toString('latin1', 0, 4) !== 'RIFF') throw new Mismatch('the sound is no WAV file')
      },
    ),
    check('pcm', (client) => sound(client, { response_format: 'pcm' }), expectSound),
    check(
      'events',
      (client) => sound(client, { stream_format: 'sse' }),
      (answer) => expectEvent(answer, 'speech.audio.done'),
    ),
    ...shared(sound),
  ],
  batches: [
    { name: 'reply', run: batch },
    { name: 'wrong line', run: wrongLine },
    { name: 'unknown batch', run: unknownBatch },
    { name: 'deleted file', run: deletedFile },
    { name: 'cancellation', run: cancelledBatch },
    { name: 'list', run: listedBatch },
  ],
}

/** The checks of an operation. */
export function operationChecks(operation: RehearsedOperation): readonly OperationCheck[] {
  return CHECKS[operation]
}

function rankBody({ model }: OperationClient): JsonObject {
  return { model, query: QUERY, documents: DOCUMENTS }
}

function check(
  name: string,
  ask: (client: OperationClient) => Promise<Answer>,
  expect: (answer: Answer) => void,
): OperationCheck {
  return {
    name,
    async run(client) {
      const answer = await ask(client).catch((error: unknown) => {
        // An upstream that does not serve the endpoint at all has failed.
        throw name === 'reply' && error instanceof Untranslatable ? new Mismatch(error.message) : error
      })
      expect(answer)
      return PASSED
    },
  }
}

/** Those that each operation has. */
function shared(ask: Ask): OperationCheck[] {
  return [
    { name: 'usage', run: (client) => usage(client, ask) },
    { name: 'errors', run: (client) => errors(client, ask) },
  ]
}

/** The bill is what the upstream reported, or what follows from the request and the reply exactly. */
async function usage(client: OperationClient, ask: Ask): Promise<CheckOutcome> {
  const { entry } = await ask(client)
  if (entry === null) throw new Mismatch('the request has no ledger entry')
  if (entry.source === 'assumed') throw new Mismatch('the reply has no usage: its maximum is charged')
  if (entry.costNanoUsd === null) return { result: 'loss', detail: 'the price of the model is not known' }
  if (entry.source === 'estimated')
    return { result: 'loss', detail: 'the reply has no usage: it is estimated' }
  return PASSED
}

async function errors(client: OperationClient, ask: Ask): Promise<CheckOutcome> {
  const error = await failureOf(ask(client, { model: NO_SUCH_MODEL }))
  if (error !== null) {
    if (!/^4\d\d \w+:/.test(error)) throw new Mismatch(`a model that does not exist: ${error}`)
    return PASSED
  }
  if (!client.hasKey) {
    return { result: 'loss', detail: 'the upstream serves any model name, and needs no key' }
  }
  const denied = await failureOf(ask(client, { model: WITH_WRONG_KEY }))
  if (denied === null) {
    throw new Mismatch('the upstream replies for a model that does not exist, and to a wrong key')
  }
  return PASSED
}

/** The message of a failure of the upstream; null: it replied. */
async function failureOf(request: Promise<Answer>): Promise<string | null> {
  try {
    await request
    return null
  } catch (error) {
    if (error instanceof Mismatch) return error.message
    throw error
  }
}

function expectType(type: string, wanted: RegExp): void {
  if (!wanted.test(type)) throw new Mismatch(`the content type is ${type}`)
}

function ranksIn({ object }: Answer): JsonObject[] {
  return arrayOf(object['results']).map(objectOf)
}

function expectRanks(answer: Answer, count: number): void {
  const ranks = ranksIn(answer)
  if (ranks.length !== count) throw new Mismatch(`${ranks.length} results instead of ${count}`)
  const scores = ranks.map((each) => numberOf(each['relevance_score']) ?? Number.NaN)
  if (scores.some((score, at) => !(score <= (scores[at - 1] ?? score)))) {
    throw new Mismatch('the results are not in the order of their scores')
  }
}

function expectBest(answer: Answer): void {
  if (ranksIn(answer)[0]?.['index'] !== 1) throw new Mismatch('the document with the answer is not the first')
}

function expectDocuments(answer: Answer): void {
  expectRanks(answer, DOCUMENTS.length)
  for (const { index, document } of ranksIn(answer)) {
    if (objectOf(document)['text'] !== DOCUMENTS[numberOf(index) ?? -1]) {
      throw new Mismatch('a document is not that of its index')
    }
  }
}

function expectVerdicts({ object }: Answer, count: number): void {
  const verdicts = arrayOf(object['results']).map(objectOf)
  if (verdicts.length !== count) throw new Mismatch(`${verdicts.length} results instead of ${count}`)
  const isWhole = verdicts.every(
    ({ flagged, categories }) => typeof flagged === 'boolean' && isObject(categories),
  )
  if (!isWhole) throw new Mismatch('a result lacks flagged or categories')
}

function expectPictures({ object }: Answer): void {
  const pictures = arrayOf(object['data']).map(objectOf)
  if (pictures.length === 0) throw new Mismatch('the reply has no picture')
  if (pictures.some(({ b64_json: data, url }) => (stringOf(data) ?? stringOf(url) ?? '') === '')) {
    throw new Mismatch('a picture has neither bytes nor an address')
  }
}

function expectTranscript({ object }: Answer): void {
  if (typeof object['text'] !== 'string') throw new Mismatch('the reply has no text')
}

/** `whisper-1` ignores `stream`. */
function expectTranscribed(answer: Answer): void {
  if (answer.events.length === 0) expectTranscript(answer)
  else expectEvent(answer, 'transcript.text.done')
}

function expectSound({ type, bytes }: Answer): void {
  expectType(type, /^audio\//)
  if (bytes.length === 0) throw new Mismatch('the sound is empty')
}

function expectEvent({ events }: Answer, last: string): void {
  if (events.at(-1)?.['type'] !== last) throw new Mismatch(`the stream does not end with ${last}`)
}

const BATCH_WAIT_MS = 10_000

function line(model: string, more: JsonObject = {}): string {
  const body = {
    model,
    max_completion_tokens: 64,
    messages: [{ role: 'user', content: 'Say hello.' }],
    ...more,
  }
  return JSON.stringify({ custom_id: 'a', method: 'POST', url: '/v1/chat/completions', body })
}

async function fileOf(client: OperationClient, text: string): Promise<string> {
  const file = { name: 'lines.jsonl', type: 'application/jsonl', bytes: Buffer.from(text) }
  const { object } = await client.form('/v1/files', [
    ['file', file],
    ['purpose', 'batch'],
  ])
  const id = stringOf(object['id'])
  if (id === undefined) throw new Mismatch('the file has no id')
  return id
}

async function createBatch(client: OperationClient, text: string): Promise<Answer> {
  const body = { input_file_id: await fileOf(client, text), completion_window: '24h' }
  return client.send('/v1/batches', { ...body, endpoint: '/v1/chat/completions' })
}

/** A batch that the upstream has taken is cancelled: its end may take a day. */
async function batch(client: OperationClient): Promise<CheckOutcome> {
  const { status, object } = await createBatch(client, line(client.model))
  if (status !== 200) {
    throw new Mismatch(`${status}: ${stringOf(objectOf(object['error'])['message']) ?? ''}`)
  }
  const id = stringOf(object['id']) ?? ''
  const state = await stateAfter(client, id, 'validating')
  if (['failed', 'expired'].includes(state)) throw new Mismatch(`the batch is ${state}`)
  await client.send(`/v1/batches/${id}/cancel`, {})
  if (state === 'validating') {
    return { result: 'loss', detail: `the upstream has not begun the batch within ${BATCH_WAIT_MS} ms` }
  }
  return PASSED
}

/** The state when it is another one, or after some time. */
async function stateAfter(client: OperationClient, id: string, before: string): Promise<string> {
  const untilMs = performance.now() + BATCH_WAIT_MS
  for (;;) {
    const { object } = await client.send(`/v1/batches/${id}`, null, 'GET')
    const state = stringOf(object['status']) ?? ''
    if (state !== before || performance.now() > untilMs) return state
    await pause(100)
  }
}

async function wrongLine(client: OperationClient): Promise<CheckOutcome> {
  const lines = `${line(client.model)}\n${line(client.model)}\n`
  const { status, object } = await createBatch(client, lines)
  const message = stringOf(objectOf(object['error'])['message']) ?? ''
  if (status !== 400 || !/^Line 2: /.test(message)) throw new Mismatch(`${status}: ${message}`)
  return PASSED
}

async function unknownBatch(client: OperationClient): Promise<CheckOutcome> {
  const { status } = await client.send('/v1/batches/batch_none', null, 'GET')
  if (status !== 404) throw new Mismatch(`${status} for a batch that does not exist instead of 404`)
  return PASSED
}

async function deletedFile(client: OperationClient): Promise<CheckOutcome> {
  const path = `/v1/files/${await fileOf(client, line(client.model))}`
  const { object } = await client.send(path, null, 'DELETE')
  const { status } = await client.send(path, null, 'GET')
  if (object['deleted'] !== true || status !== 404) throw new Mismatch('a deleted file can still be read')
  return PASSED
}

async function cancelledBatch(client: OperationClient): Promise<CheckOutcome> {
  const { object } = await createBatch(client, line(client.model))
  const id = stringOf(object['id']) ?? ''
  await stateAfter(client, id, 'validating')
  const { status } = await client.send(`/v1/batches/${id}/cancel`, {})
  const state = await stateAfter(client, id, 'cancelling')
  if (state === 'cancelled') return PASSED
  if (state === 'completed') return { result: 'loss', detail: 'the batch ended before it could be cancelled' }
  if (state === 'cancelling') return { result: 'loss', detail: 'the upstream is still cancelling the batch' }
  throw new Mismatch(`${status}, and the batch is ${state}`)
}

async function listedBatch(client: OperationClient): Promise<CheckOutcome> {
  const { object } = await client.send('/v1/batches?limit=1', null, 'GET')
  if (object['object'] !== 'list' || !Array.isArray(object['data'])) throw new Mismatch('there is no list')
  return PASSED
}
