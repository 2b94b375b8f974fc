/**
 * Goal: names that codecs make stay the same in later versions.
 * Method: the digests that FIPS 180-4 gives as examples, and one of text beyond ASCII.
 */
import t from 'tap'
import { sha256Hex, shortHash } from '../../../src/formats/wire/sha256.js'

void t.test('the digests are those of the standard, of the bytes in UTF-8', (t) => {
  t.equal(sha256Hex('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
  t.equal(sha256Hex(''), 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
  t.equal(shortHash('abc'), 'ba7816bf')
  t.equal(shortHash('é🐈\ud800'), shortHash('é🐈\ufffd'), 'an unpaired surrogate is replaced')
  t.end()
})
