/**
 * Goal: what a client gets for a transcript, and what an upstream is sent, does not change unnoticed.
 * Method: every stream and whole reply under `test/transcripts` rendered for the chat-completions
 * client, every request of that client rendered for the other two; `UPDATE=1` rewrites them, and the
 * difference is then reviewed.
 */
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { objectOf } from '../src/chat/json.js'
import type { ModelFacts } from '../src/chat/model.js'
import type { ChatRequest } from '../src/chat/request.js'
import type { DialectName } from '../src/dialects/dialect.js'
import { GatewayError } from '../src/errors.js'
import { TranslatedStream, translateReply } from '../src/gateway/translate.js'
import { client, REQUEST, SEED, transcripts, upstream } from './properties/streams.js'

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
