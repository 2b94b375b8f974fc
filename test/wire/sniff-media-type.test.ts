/**
 * Goal: a file is known by its first bytes, whole or as base64, and nothing else is guessed.
 * Method: the signature of each format with some bytes after it; texts and near misses.
 */
import t from 'tap'
import { sniffBase64, sniffBytes } from '../../src/wire/sniff-media-type.js'

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
    t.equal(sniffBytes(bytes.subarray(1)), undefined, 'not without its first byte')
    t.end()
  })
}

void t.test('anything else has no type', (t) => {
  for (const head of ['', 'P', '<svg xmlns=', 'RIFF\x10\0\0\0WAVE', '\0\0\0\x18ftypmp42', 'BMW']) {
    t.equal(sniffBytes(Buffer.from(head, 'latin1')), undefined)
  }
  t.end()
})
