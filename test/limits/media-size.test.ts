/**
 * Goal: budgets reserve what a document, sound or video may cost, however few bytes it has.
 * Method: small files with many pages, or of unknown length, and budgets below and above their cost.
 */
import t, { type Test } from 'tap'
import { redisMissing, startRedis } from '../helpers/redis.js'
import { chat, document, gemini, messages, setUp, user, type Asked } from './hosted-upstream.js'

const OVER = [402, 429]
const base64 = (text: string): string => Buffer.from(text, 'latin1').toString('base64')

/** A PDF with this many pages; `shared`: the same page each time. */
function pdf(pages: number, shared = false): string {
  const ids = Array.from({ length: pages }, (_, index) => (shared ? 10 : 10 + index))
  const kids = ids.map((id) => `${id} 0 R`).join(' ')
  const objects = [...new Set(ids)].map((id) => `${id} 0 obj << /Type /Page /Parent 2 0 R >> endobj`)
  return base64(`%PDF-1.4\n2 0 obj << /Type /Pages /Kids [${kids}] /Count 1 >> endobj\n${objects.join('\n')}`)
}

const source = (data: string): object => ({ type: 'base64', media_type: 'application/pdf', data })
const anthropic = (data: string): Asked => messages({ messages: [document(source(data))] })
const openai = (data: string): Asked =>
  chat({
    messages: [
      user({ type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${data}` } }),
    ],
  })
const google = (mimeType: string, data: string): Asked =>
  gemini({ contents: [{ role: 'user', parts: [{ inlineData: { mimeType, data } }] }] })

/** Requests that may cost more than a dollar (the last column: an amount that is enough). */
const LARGE: readonly (readonly [string, Asked, number])[] = [
  ['300 pages, Anthropic', anthropic(pdf(300)), 7],
  ['one page 300 times, Anthropic', anthropic(pdf(300, true)), 7],
  ['compressed objects, Anthropic', anthropic(base64('%PDF-1.5\n1 0 obj << /Type /ObjStm >>')), 7],
  ['one page 1000 times, Gemini', google('application/pdf', pdf(1_000, true)), 2],
  ['video, Gemini', google('video/mp4', 'AAAA'), 2],
  ['sound of unknown length, Gemini', google('audio/ogg', 'T2dnUw=='), 2],
  ['an archive, Gemini', google('application/zip', 'UEsDBA=='), 2],
]

const SMALL: readonly (readonly [string, Asked])[] = [
  ['three pages, Anthropic', anthropic(pdf(3))],
  ['three pages, OpenAI', openai(pdf(3))],
  ['three pages, Gemini', google('application/pdf', pdf(3))],
  ['ten seconds of MP3, Gemini', google('audio/mp3', base64('x'.repeat(10_000)))],
  ['text, Gemini', google('text/plain', base64('x'.repeat(10_000)))],
]

async function check(t: Test, store?: string): Promise<void> {
  const { key, ask } = await setUp(t, store === undefined ? {} : { store })
  for (const [what, asked, enough] of LARGE) {
    const small = await ask(await key({ limits: { nanoUsdPerDay: 1e9 } }), asked)
    t.ok(OVER.includes(small.status), `${what}: ${small.status} ${small.text.slice(0, 200)}`)
    const large = await ask(await key({ limits: { nanoUsdPerDay: enough * 1e9 } }), asked)
    t.equal(large.status, 200, `${what}: ${large.text.slice(0, 200)}`)
  }
  for (const [what, asked] of SMALL) {
    const answer = await ask(await key({ limits: { nanoUsdPerDay: 0.2e9 } }), asked)
    t.equal(answer.status, 200, `${what}: ${answer.text.slice(0, 200)}`)
  }
  const half = await ask(await key({ limits: { nanoUsdPerDay: 0.1e9 } }), openai(pdf(300, true)))
  t.ok(OVER.includes(half.status), `OpenAI: ${half.status}`)
}

void t.test('files are reserved by pages and seconds: SQLite', (t) => check(t))
void t.test('files are reserved by pages and seconds: Redis', { skip: redisMissing() }, async (t) => {
  const redis = await startRedis(t)
  await check(t, redis.url())
})
