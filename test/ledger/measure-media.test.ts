/**
 * Goal: a file is never measured as less than vendors bill: pages and seconds that its bytes hide count as
 * not known.
 */
import t from 'tap'
import { contentsOf, extentOf, filesIn } from '../../src/ledger/measure-media.js'

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
  // A reader may take either format of two.
  const twice = Buffer.from(wav(8_000), 'base64')
  const format = Buffer.from(twice.subarray(12, 36))
  format.writeUInt32LE(384_000, 12)
  const second = Buffer.concat([twice.subarray(0, 12), format, twice.subarray(12, 36), twice.subarray(60)])
  t.same(extentOf('audio/wav', second.toString('base64')), { unit: 'seconds', count: 11 }, 'two formats')
  const frames = `\xff\xfb\x90\x64${'x'.repeat(2_996)}`
  t.same(extentOf('', base64(frames)), { unit: 'seconds', count: 3 }, 'MP3')
  const tag = `ID3\x04\0\0\0\0\x02\x03${'t'.repeat(259)}`
  t.same(extentOf('audio/mp3', base64('x'.repeat(3_000))), { unit: 'seconds', count: 3 }, 'passed text')
  t.same(extentOf('image/png', base64(tag + frames)), { unit: 'seconds', count: 4 }, 'MP3 with a tag')
  for (const [name, bytes] of [
    ['a tag alone', `${tag}${'x'.repeat(3_000)}`],
    ['a free rate', `\xff\xfb\x00${'x'.repeat(3_000)}`],
    ['AAC', `\xff\xf1\x50\x80${'x'.repeat(3_000)}`],
    ['Ogg', `OggS${'x'.repeat(3_000)}`],
    ['FLAC', `fLaC${'x'.repeat(3_000)}`],
    ['MP4', `\0\0\0\x20ftypisom${'x'.repeat(3_000)}`],
    ['Matroska', `\x1a\x45\xdf\xa3${'x'.repeat(3_000)}`],
    ['text', 'x'.repeat(3_000)],
    ['MP3 with a document', `\xff\xfb\x90\x64${'x'.repeat(500)}%PDF-1.4`],
  ] as const) {
    t.equal(extentOf('audio/ogg', base64(bytes)), null, name)
  }
  t.end()
})

void t.test('what a file is', (t) => {
  for (const [contents, bytes] of [
    ['picture', '\x89PNG\r\n\x1a\n\0\0\0\rIHDR'],
    ['picture', '\xff\xd8\xff\xe0\0\x10JFIF'],
    ['picture', 'GIF89a\x01\0\x01\0'],
    ['picture', 'RIFF\x24\0\0\0WEBPVP8 '],
    ['picture', '\0\0\0\x18ftypheic'],
    ['unknown', 'GIF89a\x01\0\x01\0!\xff\x0bNETSCAPE2.0'],
    ['unknown', 'RIFF\x24\0\0\0WEBPVP8X\x0a\0\0\0\x02\0\0\0'],
    ['pdf', '%PDF-1.4'],
    ['unknown', ' %PDF-1.4'],
    ['unknown', `\x89PNG\r\n\x1a\n${'x'.repeat(900)}%PDF-1.4`],
    ['sound', 'RIFF\x24\0\0\0WAVEfmt '],
    ['sound', 'OggS\0'],
    ['video', '\0\0\0\x20ftypisom'],
    ['video', 'RIFF\x24\0\0\0AVI LIST'],
    ['document', 'PK\x03\x04'],
    ['text', 'a,b\r\n1,\u00e4\n'],
    ['text', ''],
    ['unknown', 'a\0b'],
  ] as const) {
    t.equal(contentsOf(base64(bytes)), contents, bytes)
  }
  t.end()
})

void t.test('files in a value', (t) => {
  const document = base64(`%PDF-1.4${'x'.repeat(100)}`)
  const sound = base64(`OggS${'x'.repeat(100)}`)
  const value = {
    ...{ a: [{ inlineData: { mimeType: 'text/plain', data: document } }], b: 'many words '.repeat(20) },
    c: `data:image/png;base64,${sound}`,
  }
  t.same([...filesIn(value)].sort(), [document, sound].sort())
  t.same([...filesIn(null)], [])
  t.end()
})
