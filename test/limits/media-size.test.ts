/**
 * Goal: budgets reserve what a document, sound or video may cost, however few bytes it has.
 * Method: small files with many pages, or of unknown length, and budgets below and above their cost.
 */
import t, { type Test } from 'tap'
import { redisMissing, startRedis } from '../helpers/redis.js'
import { anotherDay, ofToday } from '../helpers/long-suite.js'
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

const pictureUrl = (data: string): object =>
  user({ type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } })

/** The same in other formats, for a model of Google's. */
const MODEL = 'gemini-2.5-flash'
const asUrl = (mimeType: string, data: string): Asked =>
  chat({
    model: MODEL,
    messages: [user({ type: 'image_url', image_url: { url: `data:${mimeType};base64,${data}` } })],
  })
const asSound = (data: string): Asked =>
  chat({ model: MODEL, messages: [user({ type: 'input_audio', input_audio: { data, format: 'mp3' } })] })
const picture = (data: string): Asked =>
  messages({
    model: MODEL,
    messages: [user({ type: 'image', source: { type: 'base64', media_type: 'image/png', data } })],
  })
const earlier = (mimeType: string, data: string): Asked =>
  gemini({
    contents: [
      { role: 'model', parts: [{ inlineData: { mimeType, data } }] },
      { role: 'user', parts: [{ text: 'hi' }] },
    ],
  })

/** Requests that may cost more than a dollar (the last column: an amount that is enough). */
const LARGE: readonly (readonly [string, Asked, number])[] = [
  ['300 pages, Anthropic', anthropic(pdf(300)), 7],
  ['one page 300 times, Anthropic', anthropic(pdf(300, true)), 7],
  ['compressed objects, Anthropic', anthropic(base64('%PDF-1.5\n1 0 obj << /Type /ObjStm >>')), 7],
  ['one page 1000 times, Gemini', google('application/pdf', pdf(1_000, true)), 2],
  ['video, Gemini', google('video/mp4', 'AAAA'), 2],
  ['sound of unknown length, Gemini', google('audio/ogg', 'T2dnUw=='), 2],
  ['an archive, Gemini', google('application/zip', 'UEsDBA=='), 2],
  ...Object.entries({
    'one page 1000 times': pdf(1_000, true),
    'a document behind other bytes': base64(`\n${' '.repeat(500)}%PDF-1.5\n1 0 obj << /Type /ObjStm >>`),
    sound: base64('OggS\0'),
    'a video': base64('\0\0\0\x20ftypisom'),
    'a picture with frames': base64('RIFF\x24\0\0\0WEBPVP8X\x0a\0\0\0\x02\0\0\0'),
    'anything else': base64('\0\x01\x02'),
  }).flatMap(([what, data]) =>
    ['image/png', 'image/webp', 'text/plain', 'text/csv', 'audio/mp3', 'audio/wav', 'application/json'].map(
      (mimeType): readonly [string, Asked, number] => [`${what} as ${mimeType}`, google(mimeType, data), 2],
    ),
  ),
]

/** Requests that may have the whole context of a model of Google's, which costs 30 cents. */
const WHOLE: readonly (readonly [string, Asked])[] = [
  ['a document in a data: URL', asUrl('image/jpeg', pdf(1_000, true))],
  ['a document as sound', asSound(pdf(1_000, true))],
  ['a document of Anthropic’s as picture', picture(pdf(1_000, true))],
  ['a document in an earlier reply', earlier('image/png', pdf(1_000, true))],
]

const SMALL: readonly (readonly [string, Asked])[] = [
  ['three pages, Anthropic', anthropic(pdf(3))],
  ['three pages, OpenAI', openai(pdf(3))],
  ['three pages, Gemini', google('application/pdf', pdf(3))],
  ['ten seconds of MP3, Gemini', google('audio/mp3', base64('x'.repeat(10_000)))],
  ['text, Gemini', google('text/plain', base64('x'.repeat(10_000)))],
  ['a picture, Gemini', google('image/png', base64('\x89PNG\r\n\x1a\n\0\0\0\rIHDR'))],
  ['a still picture, Gemini', google('image/gif', base64('GIF89a\x01\0\x01\0'))],
  ['a picture of another type, Gemini', google('image/png', base64('RIFF\x24\0\0\0WEBPVP8 '))],
  ['a document as a picture, which OpenAI refuses', chat({ messages: [pictureUrl(pdf(1_000, true))] })],
]

async function check(t: Test, store?: string): Promise<void> {
  const { key, ask } = await setUp(t, store === undefined ? {} : { store })
  for (const [what, asked, enough] of ofToday(LARGE, 3)) {
    const small = await ask(await key({ limits: { nanoUsdPerDay: 1e9 } }), asked)
    t.ok(OVER.includes(small.status), `${what}: ${small.status} ${small.text.slice(0, 200)}`)
    const large = await ask(await key({ limits: { nanoUsdPerDay: enough * 1e9 } }), asked)
    t.equal(large.status, 200, `${what}: ${large.text.slice(0, 200)}`)
  }
  for (const [what, asked] of ofToday(WHOLE, 3)) {
    const answer = await ask(await key({ limits: { nanoUsdPerDay: 0.25e9 } }), asked)
    t.ok(OVER.includes(answer.status), `${what}: ${answer.status} ${answer.text.slice(0, 200)}`)
  }
  for (const [what, asked] of ofToday(SMALL, 3)) {
    const answer = await ask(await key({ limits: { nanoUsdPerDay: 0.2e9 } }), asked)
    t.equal(answer.status, 200, `${what}: ${answer.text.slice(0, 200)}`)
  }
  const half = await ask(await key({ limits: { nanoUsdPerDay: 0.1e9 } }), openai(pdf(300, true)))
  t.ok(OVER.includes(half.status), `OpenAI: ${half.status}`)
}

void t.test('files are reserved by pages and seconds: SQLite', { skip: anotherDay(0, 2) }, (t) => check(t))
const skip = anotherDay(1, 2) || redisMissing()
void t.test('files are reserved by pages and seconds: Redis', { skip }, async (t) => {
  const redis = await startRedis(t)
  await check(t, redis.url())
})
