/**
 * Goal: what our own transcripts mean stays what it is: the body sent, the events of the stream, and
 * the whole reply as the same answer. Method: golden files; UPDATE=1 rewrites them for review.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { JsonValue } from '../../../src/chat/json.js'
import type { ChatRequest } from '../../../src/chat/request.js'
import { GeminiDecoder } from '../../../src/dialects/gemini/stream.js'
import { SseFramer } from '../../../src/wire/sse.js'
import { ask, decodeWhole, encode, facts, listen } from './ask.js'

const FOLDER = join(process.cwd(), 'test/transcripts/gemini')
const UPDATE = process.env['UPDATE'] === '1'

function says(text: string): ChatRequest['messages'] {
  return [
    { role: 'system', index: 0, parts: [{ type: 'text', text: 'You keep the harbour log.' }] },
    { role: 'user', index: 1, parts: [{ type: 'text', text }] },
  ]
}

/** The requests that the transcripts answer. */
const REQUESTS: Readonly<Record<string, Partial<ChatRequest>>> = {
  text: { messages: says('Where is the lantern?'), temperature: 0.2, stop: ['END'] },
  thinking: {
    messages: says('Twelve eggs, five are sold. How many are left?'),
    reasoningEffort: 'low',
  },
  'tools-parallel': {
    messages: says('When is high tide at Skerry and Ness? And the morning report.'),
    tools: [
      {
        name: 'tide_at',
        description: 'The tide at a harbour',
        parameters: {
          type: 'object',
          properties: { harbour: { type: 'string' }, when: { type: 'object' } },
          required: ['harbour'],
        },
      },
      { name: '9am_report' },
    ],
    toolChoice: { mode: 'required' },
  },
  'blocked-prompt': { messages: says('Something that is not allowed.') },
  'max-tokens': { messages: says('Tell me a tale.'), maxOutputTokens: 100, seed: 7 },
  'error-in-stream': { messages: says('When does the ferry leave?'), stream: true },
}

function golden(
  t: { equal: (a: string, b: string, name: string) => void },
  file: string,
  text: string,
): void {
  const path = join(FOLDER, file)
  if (UPDATE) writeFileSync(path, text)
  t.equal(text, readFileSync(path, 'utf8'), file)
}

for (const [name, request] of Object.entries(REQUESTS)) {
  void t.test(`the transcript ${name}`, (t) => {
    const { body, losses } = encode(request, facts())
    golden(t, `${name}.request.json`, `${JSON.stringify(body, null, 2)}\n`)
    t.strictSame(losses, [], 'nothing is lost')

    const bytes = readFileSync(join(FOLDER, `${name}.stream.sse`))
    t.ok(bytes.includes('\r\n\r\n') && !/[^\r]\n/.test(bytes.toString()), 'CRLF, as Gemini sends')
    const streamed = listen((sink) => {
      const decoder = new GeminiDecoder(ask(request), sink)
      const framer = new SseFramer(decoder)
      framer.write(bytes)
      framer.end()
      decoder.end()
    })
    t.equal(streamed.breach, null, 'grammatical')
    const lines = streamed.events.map((event) => JSON.stringify(event)).join('\n')
    golden(t, `${name}.events.ndjson`, `${lines}\n`)

    const replyFile = join(FOLDER, `${name}.reply.json`)
    if (existsSync(replyFile)) {
      const whole = JSON.parse(readFileSync(replyFile, 'utf8')) as JsonValue
      t.strictSame(decodeWhole(whole, ask(request)).reply, streamed.reply, 'whole = stream')
      t.not(streamed.reply, null, 'finished')
    } else {
      t.equal(streamed.error?.kind, 'upstream_busy', 'a stream that fails has no whole reply')
    }
    t.end()
  })
}
