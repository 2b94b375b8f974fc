/**
 * Goal: a file is never measured as less than vendors bill: pages and seconds that its bytes hide count as
 * not known.
 */
import t from 'tap'
import { extentOf } from '../../src/ledger/measure-media.js'

const base64 = (text: string): string => Buffer.from(text, 'latin1').toString('base64')
const pdf = (body: string): ReturnType<typeof extentOf> =>
  extentOf('application/pdf', base64(`%PDF-1.4\n${body}`))

void t.test('the pages of a PDF', (t) => {
  const page = (id: number): string => `${id} 0 obj << /Type /Page /Parent 1 0 R >> endobj\n`
  const plain = `1 0 obj << /Type /Pages /Kids [2 0 R 3 0 R] /Count 2 >> endobj\n${page(2)}${page(3)}`
  t.same(pdf(plain), { unit: 'pages', count: 2 })
  t.same(pdf(plain.replace('/Count 2', '/Count 1')), { unit: 'pages', count: 2 }, 'not by the count')
  const hidden: readonly (readonly [string, string])[] = [
    ['one page many times', `1 0 obj << /Kids [${'2 0 R '.repeat(300)}] /Count 300 >> endobj\n${page(2)}`],
    ['a shared list', '1 0 obj << /Kids [2 0 R 3 0 R] >> 2 0 obj << /Kids [3 0 R] >> endobj'],
    ['an escaped name', `1 0 obj << /K#69ds [2 0 R 2 0 R] >> endobj\n${page(2)}`],
    ['a list elsewhere', `1 0 obj << /Kids 5 0 R >> endobj 5 0 obj [2 0 R 3 0 R] endobj`],
    ['a comment in a list', `1 0 obj << /Kids [%]\n 2 0 R 3 0 R] >> endobj`],
    ['compressed objects', `${plain} 9 0 obj << /Type /ObjStm /N 300 /First 10 >> stream`],
    ['a compressed table', `${plain} 9 0 obj << /Type /XRef >> stream`],
    ['encrypted', `${plain} trailer << /Encrypt 7 0 R >>`],
    ['no list', page(2)],
  ]
  for (const [what, body] of hidden) t.equal(pdf(body), null, what)
  t.equal(extentOf('application/pdf', base64('PK')), null, 'no PDF')
  t.end()
})

void t.test('the seconds of sound', (t) => {
  const wav = (rate: number, { bits = 16, format = 1 } = {}): string => {
    const bytes = Buffer.alloc(44 + 160_000)
    bytes.write('RIFF....WAVEfmt ', 0, 'latin1')
    bytes.writeUInt32LE(16, 16)
    bytes.writeUInt16LE(format, 20)
    bytes.writeUInt16LE(1, 22)
    bytes.writeUInt32LE(rate, 24)
    // The rate of bytes is not used.
    bytes.writeUInt32LE(1_000_000_000, 28)
    bytes.writeUInt16LE(bits, 34)
    return bytes.toString('base64')
  }
  t.same(extentOf('audio/wav', wav(8_000)), { unit: 'seconds', count: 11 })
  t.equal(extentOf('audio/wav', wav(4_000_000_000)), null, 'a rate that no recording has')
  t.equal(extentOf('audio/wav', wav(8_000, { format: 2 })), null, 'compressed')
  t.equal(extentOf('audio/wav', wav(8_000, { bits: 0 })), null)
  t.equal(extentOf('audio/wav', base64('OggS')), null, 'another format')
  t.match(extentOf('audio/mp3', base64('x'.repeat(3_000))), { unit: 'seconds', count: 4 })
  for (const type of ['audio/ogg', 'audio/flac', 'video/mp4', 'application/zip']) {
    t.equal(extentOf(type, base64('x'.repeat(3_000))), null, type)
  }
  t.end()
})
