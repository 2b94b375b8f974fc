/**
 * Goal: what a transcript means, what a client gets for it, and what an upstream is sent, does not
 * change unnoticed.
 * Method: every answer under `test/transcripts`, decoded as the answer to its own request: the events
 * of its stream, the same answer whole, both as the chat-completions client gets them, and the
 * request as each upstream is sent it. `UPDATE=1` writes what is made; the difference is reviewed.
 */
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { ChatEvent } from '../src/chat/event.js'
import { Fold, type Reply } from '../src/chat/fold.js'
import { Grammar } from '../src/chat/grammar.js'
import { objectOf, type JsonObject } from '../src/chat/json.js'
import type { ModelFacts } from '../src/chat/model.js'
import type { ChatRequest } from '../src/chat/request.js'
import type { DialectName } from '../src/dialects/dialect.js'
import { GatewayError } from '../src/errors.js'
import { TranslatedStream, translateReply } from '../src/gateway/translate.js'
import { SseFramer } from '../src/wire/sse.js'
import { client, SEED, transcripts, upstream, type Transcript } from './properties/streams.js'

const FOLDER = join(process.cwd(), 'test/transcripts')
const FAMILIES: Readonly<Partial<Record<DialectName, ModelFacts['family']>>> = {
  anthropic: 'anthropic',
  gemini: 'google',
}

/** As much of a test as a golden file needs. */
interface Judge {
  fail(message: string): unknown
  equal(found: string, wanted: string, name: string): unknown
}

function golden(t: Judge, file: string, text: string): void {
  const path = join(FOLDER, file)
  if (process.env['UPDATE'] === '1') writeFileSync(path, text)
  if (!existsSync(path)) {
    t.fail(`${file} is not on record; UPDATE=1 writes it`)
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

/** What the client asked, in its own dialect. */
function askedFor({ dialect, name }: Transcript): ChatRequest {
  const body = read(`${name}.${dialect === 'openai-chat' ? 'request' : 'asked'}.json`)
  const streamed = { ...body, stream: true, stream_options: { include_usage: true } }
  return client.decodeRequest(streamed, { operation: 'chat' })
}

interface Heard {
  readonly events: ChatEvent[]
  readonly reply: Reply | null
  readonly breach: string | null
}

function listen(say: (grammar: Grammar) => void): Heard {
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

function hearStream({ dialect, bytes }: Transcript, request: ChatRequest): Heard {
  return listen((grammar) => {
    const decoder = upstream(dialect).newDecoder(request, grammar, true)
    const framer = new SseFramer(decoder)
    framer.write(bytes)
    framer.end()
    decoder.end()
  })
}

/** What a whole reply and a stream have in common: arguments as values, and counts where both have them. */
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

  void t.test(`${name}: what it means`, (t) => {
    const request = askedFor(transcript)
    const { events, reply, breach } = hearStream(transcript, request)
    t.equal(breach, null, 'in order')
    t.equal(
      /[^\r]\n/.test(bytes.toString('latin1')),
      dialect !== 'gemini',
      'the framing is its own',
    )
    const lines = events.map((event) => `${JSON.stringify(event)}\n`).join('')
    golden(t, `${name}.events.ndjson`, lines)
    if (hasReply) {
      const whole = listen((grammar) => {
        upstream(dialect).decodeReply(read(replyFile), request, grammar)
      })
      t.equal(whole.breach, null, 'the whole reply is in order')
      // A stream of chat completions counts only where it was asked to.
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
    const stream = new TranslatedStream(upstream(dialect), client, request, seed)
    let out = stream.write(bytes) + stream.end()
    if (stream.error !== null) out += client.encodeStreamError(stream.error)
    t.equal(stream.breach, null)
    golden(t, `${name}.to-openai-chat.sse`, out)
    t.equal(stream.outcome, hasReply ? 'complete' : 'failed')
    if (hasReply) {
      const reply = translateReply(read(replyFile), upstream(dialect), client, request, seed)
      t.equal(reply.outcome, 'complete')
      golden(t, `${name}.to-openai-chat.json`, pretty(JSON.parse(reply.body)))
    }
    t.end()
  })

  const family = FAMILIES[dialect]
  if (family === undefined) continue
  void t.test(`${name}: what its upstream was asked`, (t) => {
    golden(t, `${name}.request.json`, pretty(said(askedFor(transcript), dialect, family)))
    t.end()
  })
}

/** The body for an upstream and what is lost on the way, or why there is none. */
function said(request: ChatRequest, dialect: DialectName, family: ModelFacts['family']): object {
  const lost: string[] = []
  try {
    const facts = { id: request.model, family, createdAtSeconds: 0 }
    const body = upstream(dialect).encodeRequest(request, facts, {
      drop: (path, why) => void lost.push(`${path}: ${why}`),
    })
    return { lost, body }
  } catch (error) {
    if (error instanceof GatewayError) return { refused: error.wire }
    throw error
  }
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
      ['anthropic', 'anthropic'],
      ['gemini', 'google'],
    ] as const) {
      const made = said(request, dialect, family)
      golden(t, `openai-chat/${name}.to-${dialect}.request.json`, pretty(made))
    }
    t.end()
  })
}

void t.test('a file that is missing or old fails the test', (t) => {
  const failures: string[] = []
  const judge = {
    fail: (message: string) => void failures.push(message),
    equal: (a: string, b: string, name: string) => {
      if (a !== b) failures.push(name)
    },
  }
  const keep = process.env['UPDATE']
  delete process.env['UPDATE']
  golden(judge, 'anthropic/no-such-case.events.ndjson', '')
  golden(judge, 'anthropic/README.md', 'old')
  if (keep !== undefined) process.env['UPDATE'] = keep
  t.equal(failures.length, 2)
  t.match(failures[0], 'UPDATE=1')
  t.end()
})
