/**
 * Goal: the type of a file is read from its first bytes, raw or as base64; other content has no type.
 * Method: the signature of each format with some bytes after it; texts and similar bytes.
 */
import t from 'tap'
import { sniffBase64, sniffBytes } from '../../../src/formats/wire/inline-media.js'

const HEADS: Readonly<Record<string, string>> = {
  'image/jpeg': '\xff\xd8\xff\xe0',
  'image/png': '\x89PNG\r\n\x1a\n',
  'image/gif': 'GIF89a',
  'image/webp': 'RIFF\x10\0\0\0WEBPVP8 ',
  'image/heic': '\0\0\0\x18ftypheic',
  'image/bmp': 'BM\x1a\0\0\0\0\0\0\0',
  'application/pdf': '%PDF-1.7',
}

for (const [type, head] of Object.entries(HEADS)) {
  void t.test(type, (t) => {
    const bytes = Buffer.from(`${head}and more`, 'latin1')
    t.equal(sniffBytes(bytes), type)
    t.equal(sniffBase64(bytes.toString('base64')), type)
    t.equal(sniffBytes(bytes.subarray(1)), undefined, 'no type without the first byte')
    t.end()
  })
}

void t.test('other content has no type', (t) => {
  for (const head of ['', 'P', '<svg xmlns=', 'RIFF\x10\0\0\0WAVE', '\0\0\0\x18ftypmp42', 'BMW']) {
    t.equal(sniffBytes(Buffer.from(head, 'latin1')), undefined)
  }
  t.end()
})
