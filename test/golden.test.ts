/**
 * Goal: what a client gets for a transcript, and what an upstream is sent, does not change unnoticed.
 * Method: every stream and whole reply under `test/transcripts` rendered for the chat-completions
 * client, every request of that client rendered for the other two, and the turn after an answer that calls
 * tools, as clients send it, for the upstream that gave the answer; `UPDATE=1` rewrites them, and the
 * difference is then reviewed.
 */
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { Fold } from '../src/chat/fold.js'
import { arrayOf, objectOf, type JsonObject, type JsonValue } from '../src/chat/json.js'
import type { ModelFacts } from '../src/chat/model.js'
import type { ChatRequest } from '../src/chat/request.js'
import type { EscrowConfig } from '../src/config/config.js'
import type { DialectName } from '../src/dialects/dialect.js'
import { GatewayError } from '../src/errors.js'
import { TranslatedStream, translateReply } from '../src/gateway/translate.js'
import { Escrow } from '../src/reasoning/escrow.js'
import { client, REQUEST, SEED, transcripts, upstream } from './properties/streams.js'
import { FakeShelf } from './reasoning/shelf.js'

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
const FOLDER = join(process.cwd(), 'test/transcripts')

function golden(t: Test, file: string, text: string): void {
  const path = join(FOLDER, file)
  if (process.env['UPDATE'] === '1') writeFileSync(path, text)
  t.ok(existsSync(path), 'is on record; UPDATE=1 writes it')
  t.equal(text, readFileSync(path, 'utf8'), file)
}

function pretty(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}

for (const { dialect, name, bytes } of transcripts) {
  void t.test(`${name}, for the chat-completions client`, (t) => {
    const seed = { ...SEED, origin: dialect }
    const stream = new TranslatedStream(upstream(dialect), client, REQUEST, seed)
    let out = stream.write(bytes) + stream.end()
    if (stream.error !== null) out += client.encodeStreamError(stream.error)
    t.equal(stream.breach, null)
    golden(t, `${name}.to-openai-chat.sse`, out)

    const file = join(FOLDER, `${name}.reply.json`)
    if (existsSync(file)) {
      const body = objectOf(JSON.parse(readFileSync(file, 'utf8')))
      const reply = translateReply(body, upstream(dialect), client, REQUEST, seed)
      t.equal(reply.outcome, 'complete')
      golden(t, `${name}.to-openai-chat.json`, pretty(JSON.parse(reply.body)))
    } else {
      t.equal(stream.outcome, 'failed', 'only an answer that failed has no whole reply')
    }
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

/** The tools that an answer calls, as its request had them. */
function toolsOf(message: JsonObject): JsonValue[] {
  const names = arrayOf(message['tool_calls']).map(
    (call) => objectOf(objectOf(call)['function'])['name'],
  )
  return [...new Set(names)].map((name) => ({ type: 'function', function: { name: name ?? '' } }))
}

const CALLED = transcripts.filter(({ dialect, name }) => {
  const file = join(FOLDER, `${name}.reply.json`)
  const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
  return dialect !== 'openai-chat' && /"tool_use"|"functionCall"|"function_call"/.test(text)
})

for (const { dialect, name } of CALLED) {
  void t.test(`the turn after ${name}, for its own upstream`, async (t) => {
    const reply = objectOf(JSON.parse(readFileSync(join(FOLDER, `${name}.reply.json`), 'utf8')))
    const shelf = new FakeShelf()
    const escrow = new Escrow({
      shelf,
      settings: () => SETTINGS,
      secret: 's',
      now: () => 0,
      onResult: () => undefined,
    })
    t.teardown(() => escrow.close())
    const fold = new Fold()
    upstream(dialect).decodeReply(reply, REQUEST, fold)
    const scope = { accountId: 'a', family: dialect, model: 'm' }
    const folded = fold.reply()
    if (folded !== null) await escrow.keep(QUESTION, folded, scope)

    const told = translateReply(reply, upstream(dialect), client, REQUEST, {
      ...SEED,
      origin: dialect,
    })
    const { choices } = objectOf(JSON.parse(told.body))
    const message = objectOf(objectOf(arrayOf(choices)[0])['message'])
    const { content, tool_calls } = message
    const calls = arrayOf(tool_calls).map((call) => {
      const { id, type, function: inner } = objectOf(call)
      return { id: id ?? '', type: type ?? '', function: inner ?? {} }
    })
    const bare = { role: 'assistant', content: content ?? null, tool_calls: calls }
    const family = dialect === 'gemini' ? 'google' : dialect === 'anthropic' ? dialect : 'openai'
    const kept = said(turn(message), dialect, family)
    golden(t, `${name}.turn-2.request.json`, pretty(kept))
    const restored = said(await escrow.restore(turn(bare), scope), dialect, family)
    const fromEscrow = said(await escrow.restore(turn(message), scope), dialect, family)
    t.same(fromEscrow, restored, 'the same whatever the client kept')
    // A client has one text for all of an answer; ours knows where thoughts stood between its pieces.
    if (name === 'anthropic/thinking-tools')
      golden(t, `${name}.turn-2.restored.json`, pretty(restored))
    else t.same(restored, kept, 'and the same as kept by the client')
  })
}

/** The second turn: a message that came, and the results of its calls. */
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
    const text = readFileSync(join(FOLDER, 'openai-chat', `${name}.request.json`), 'utf8')
    const request = client.decodeRequest(objectOf(JSON.parse(text)), { operation: 'chat' })
    for (const [dialect, family] of [
      ['openai-responses', 'openai'],
      ['anthropic', 'anthropic'],
      ['gemini', 'google'],
    ] as const) {
      const made = said(request, dialect, family)
      const file = `openai-chat/${name}.to-${dialect}.request.json`
      golden(t, file, pretty(made))
    }
    t.end()
  })
}
