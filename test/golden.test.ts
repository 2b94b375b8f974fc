/**
 * Goal: changes of decoded replies, of what clients receive and of upstream requests are noticed.
 * Method: each reply under `test/transcripts` is decoded, streamed and whole, and encoded for a
 * chat-completions client; its request is encoded for each upstream, and the turn after a reply with tool
 * calls for the upstream that sent the reply. The results are compared with stored files. `UPDATE=1` rewrites
 * the files; review the difference.
 */
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { ChatEvent } from '../src/formats/chat/event.js'
import { Fold, type Reply } from '../src/formats/chat/fold.js'
import { Grammar } from '../src/formats/chat/grammar.js'
import { arrayOf, objectOf, stringOf, type JsonObject, type JsonValue } from '../src/base/json.js'
import type { ModelFacts } from '../src/formats/chat/model-facts.js'
import type { ChatRequest } from '../src/formats/chat/request.js'
import { createCatalogue, factsFor } from '../src/config/catalogue.js'
import type { EscrowConfig } from '../src/config/config.js'
import type { DialectName } from '../src/formats/dialect.js'
import { GatewayError } from '../src/errors.js'
import { TranslatedStream } from '../src/formats/translated-stream.js'
import { translateReply } from '../src/gateway/streams/whole-reply.js'
import { Escrow } from '../src/gateway/reasoning/escrow.js'
import { SseFramer } from '../src/formats/wire/frames/sse-framer.js'
import { client, SEED, transcripts, upstream, type Transcript } from './properties/transcript-streams.js'
import { FakeSharedCache } from './gateway/reasoning/fake-shared-cache.js'

const SETTINGS: EscrowConfig = {
  enabled: true,
  key: null,
  ttlSeconds: 3_600,
  maxEntries: 9,
  maxBytes: 1_048_576,
  memoryBytes: 1_048_576,
}
const QUESTION = client.decodeRequest(
  { model: 'm', messages: [{ role: 'user', content: 'Well?' }] },
  { operation: 'chat' },
)
/** Facts of a model that follow from its name alone. */
const NO_MODELS = createCatalogue([])
const FOLDER = join(process.cwd(), 'test/transcripts')
const FAMILIES: Readonly<Partial<Record<DialectName, ModelFacts['family']>>> = {
  'openai-responses': 'openai',
  anthropic: 'anthropic',
  gemini: 'google',
}

/** The parts of a test that a golden file needs. */
interface GoldenTest {
  fail(message: string): unknown
  equal(found: string, wanted: string, name: string): unknown
}

function golden(t: GoldenTest, file: string, text: string): void {
  const path = join(FOLDER, file)
  if (process.env['UPDATE'] === '1') writeFileSync(path, text)
  if (!existsSync(path)) {
    t.fail(`${file} does not exist: UPDATE=1 writes it`)
    return
  }
  t.equal(text, readFileSync(path, 'utf8'), file)
}

function pretty(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}

function read(file: string): JsonObject {
  return objectOf(JSON.parse(readFileSync(join(FOLDER, file), 'utf8')))
}

/** The client's request, decoded in its own dialect. */
function askedFor({ dialect, name }: Transcript): ChatRequest {
  const body = read(`${name}.${dialect === 'openai-chat' ? 'request' : 'asked'}.json`)
  const streamed = { ...body, stream: true, stream_options: { include_usage: true } }
  return client.decodeRequest(streamed, { operation: 'chat' })
}

interface Decoded {
  readonly events: ChatEvent[]
  readonly reply: Reply | null
  readonly breach: string | null
}

function listen(say: (grammar: Grammar) => void): Decoded {
  const events: ChatEvent[] = []
  const fold = new Fold()
  const grammar = new Grammar({
    event(event) {
      events.push(event)
      fold.event(event)
    },
  })
  say(grammar)
  return { events, reply: fold.reply(), breach: grammar.breach }
}

function decodeStream({ dialect, bytes }: Transcript, request: ChatRequest): Decoded {
  return listen((grammar) => {
    const decoder = upstream(dialect).newDecoder(request, grammar, true)
    const framer = new SseFramer(decoder)
    framer.write(bytes)
    framer.end()
    decoder.end()
  })
}

/** The comparable parts of a whole reply and a stream: arguments as values, and counts if both have them. */
function comparable(reply: Reply | null, withUsage: boolean): unknown {
  if (reply === null) return null
  const blocks = reply.blocks.map((block) =>
    block.type === 'tool' && block.custom !== true
      ? { ...block, json: JSON.parse(block.json) as unknown }
      : block,
  )
  return { ...reply, blocks, usage: withUsage ? reply.usage : {} }
}

for (const transcript of transcripts) {
  const { dialect, name, bytes } = transcript
  const replyFile = `${name}.reply.json`
  const hasReply = existsSync(join(FOLDER, replyFile))

  void t.test(`${name}: events`, (t) => {
    const request = askedFor(transcript)
    const { events, reply, breach } = decodeStream(transcript, request)
    t.equal(breach, null, 'in order')
    t.equal(/[^\r]\n/.test(bytes.toString('latin1')), dialect !== 'gemini', 'the framing is its own')
    const lines = events.map((event) => `${JSON.stringify(event)}\n`).join('')
    golden(t, `${name}.events.ndjson`, lines)
    if (hasReply) {
      const whole = listen((grammar) => {
        upstream(dialect).decodeReply(read(replyFile), request, grammar)
      })
      t.equal(whole.breach, null, 'the whole reply is in order')
      // A stream of chat completions has usage only on request.
      const counted = dialect !== 'openai-chat' || bytes.includes('"prompt_tokens"')
      t.same(comparable(whole.reply, counted), comparable(reply, counted), 'whole = stream')
    } else {
      t.equal(reply, null, 'only an answer that failed has no whole reply')
    }
    const tools = request.tools.map((tool) => tool.name)
    for (const event of events) {
      if (event.type === 'tool-start') t.ok(tools.includes(event.name), 'a tool that was offered')
    }
    t.end()
  })

  void t.test(`${name}: for the chat-completions client`, (t) => {
    const request = askedFor(transcript)
    const seed = { ...SEED, origin: dialect }
    const stream = new TranslatedStream({
      upstreamCodec: upstream(dialect),
      clientCodec: client,
      request,
      seed,
    })
    let out = stream.write(bytes) + stream.end()
    if (stream.error !== null) out += client.encodeStreamError(stream.error)
    t.equal(stream.breach, null)
    golden(t, `${name}.to-openai-chat.sse`, out)
    t.equal(stream.outcome, hasReply ? 'complete' : 'failed')
    if (hasReply) {
      const reply = translateReply(read(replyFile), {
        upstreamCodec: upstream(dialect),
        clientCodec: client,
        request,
        seed,
      })
      t.equal(reply.outcome, 'complete')
      golden(t, `${name}.to-openai-chat.json`, pretty(JSON.parse(reply.body)))
    }
    t.end()
  })

  const family = FAMILIES[dialect]
  if (family === undefined) continue
  void t.test(`${name}: the request to its upstream`, (t) => {
    golden(t, `${name}.request.json`, pretty(actual(askedFor(transcript), dialect, family)))
    t.end()
  })
}

/** The body for an upstream and the lost fields, or the reason for a refusal. */
function actual(request: ChatRequest, dialect: DialectName, family: ModelFacts['family']): object {
  const lost: string[] = []
  try {
    const known = factsFor(NO_MODELS, request.model)
    const facts = known.family === family ? known : { id: request.model, family, createdAtSeconds: 0 }
    const body = upstream(dialect).encodeRequest(request, facts, {
      drop: (path, why) => void lost.push(`${path}: ${why}`),
    })
    return { lost, body }
  } catch (error) {
    if (error instanceof GatewayError) return { refused: error.wire }
    throw error
  }
}

/** Definitions of the tools that a reply calls. */
function toolsOf(message: JsonObject): JsonValue[] {
  const called = arrayOf(message['tool_calls']).map((call) => {
    const type = stringOf(objectOf(call)['type']) ?? 'function'
    return JSON.stringify({ type, [type]: { name: objectOf(objectOf(call)[type])['name'] ?? '' } })
  })
  return [...new Set(called)].map((tool) => objectOf(JSON.parse(tool)))
}

const CALLED = transcripts.filter(({ dialect, name }) => {
  const file = join(FOLDER, `${name}.reply.json`)
  const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
  return dialect !== 'openai-chat' && /"tool_use"|"functionCall"|"function_call"/.test(text)
})

for (const transcript of CALLED) {
  const { dialect, name } = transcript
  void t.test(`the turn after ${name}, for its own upstream`, async (t) => {
    const reply = objectOf(JSON.parse(readFileSync(join(FOLDER, `${name}.reply.json`), 'utf8')))
    const shelf = new FakeSharedCache()
    const escrow = new Escrow({
      cache: shelf,
      settings: () => SETTINGS,
      secret: 's',
      now: () => 0,
      onResult: () => undefined,
    })
    t.teardown(() => escrow.close())
    const fold = new Fold()
    const asked = askedFor(transcript)
    upstream(dialect).decodeReply(reply, asked, fold)
    const scope = { accountId: 'a', family: dialect, model: 'm' }
    const folded = fold.reply()
    if (folded !== null) await escrow.keep(QUESTION, folded, scope)

    const reported = translateReply(reply, {
      upstreamCodec: upstream(dialect),
      clientCodec: client,
      request: asked,
      seed: { ...SEED, origin: dialect },
    })
    const { choices } = objectOf(JSON.parse(reported.body))
    const message = objectOf(objectOf(arrayOf(choices)[0])['message'])
    const { content, tool_calls } = message
    const calls = arrayOf(tool_calls).map((call) => {
      const { id } = objectOf(call)
      const type = stringOf(objectOf(call)['type']) ?? 'function'
      return { id: id ?? '', type, [type]: objectOf(call)[type] ?? {} }
    })
    const bare = { role: 'assistant', content: content ?? null, tool_calls: calls }
    const family = dialect === 'gemini' ? 'google' : dialect === 'anthropic' ? dialect : 'openai'
    const kept = actual(turn(message), dialect, family)
    golden(t, `${name}.turn-2.request.json`, pretty(kept))
    const restored = actual(await escrow.restore(turn(bare), scope), dialect, family)
    const fromEscrow = actual(await escrow.restore(turn(message), scope), dialect, family)
    t.same(fromEscrow, restored, 'the same for both clients')
    // A client has one text for the whole reply; the stored state has the positions of thinking blocks in it.
    if (name === 'anthropic/thinking-tools') golden(t, `${name}.turn-2.restored.json`, pretty(restored))
    else t.same(restored, kept, 'and the same as kept by the client')
  })
}

/** The second turn: a received message, and the results of its calls. */
function turn(message: JsonObject): ChatRequest {
  const results = arrayOf(message['tool_calls']).map((call) => {
    return { role: 'tool', tool_call_id: objectOf(call)['id'] ?? '', content: 'calm' }
  })
  const messages = [{ role: 'user', content: 'Well?' }, message, ...results]
  return client.decodeRequest(
    { model: 'm', messages, tools: toolsOf(message), reasoning_effort: 'medium' },
    { operation: 'chat' },
  )
}

const REQUESTS = readdirSync(join(FOLDER, 'openai-chat'))
  .filter((file) => file.endsWith('.request.json') && !file.includes('.to-'))
  .map((file) => file.slice(0, -'.request.json'.length))

for (const name of REQUESTS) {
  void t.test(`the request of openai-chat/${name}, for the other dialects`, (t) => {
    const request = client.decodeRequest(read(`openai-chat/${name}.request.json`), {
      operation: 'chat',
    })
    for (const [dialect, family] of [
      ['openai-responses', 'openai'],
      ['anthropic', 'anthropic'],
      ['gemini', 'google'],
    ] as const) {
      const made = actual(request, dialect, family)
      golden(t, `openai-chat/${name}.to-${dialect}.request.json`, pretty(made))
    }
    t.end()
  })
}

void t.test('a missing or outdated file fails the test', (t) => {
  const failures: string[] = []
  const check = {
    fail: (message: string) => void failures.push(message),
    equal: (a: string, b: string, name: string) => {
      if (a !== b) failures.push(name)
    },
  }
  const keep = process.env['UPDATE']
  delete process.env['UPDATE']
  golden(check, 'anthropic/no-such-case.events.ndjson', '')
  golden(check, 'anthropic/README.md', 'old')
  if (keep !== undefined) process.env['UPDATE'] = keep
  t.equal(failures.length, 2)
  t.match(failures[0], 'UPDATE=1')
  t.end()
})
