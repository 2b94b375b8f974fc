/**
 * Goal: nothing that looks like a secret survives, and no message is longer than 2 KB.
 * Method: each form of secret in the middle of a sentence, and texts of every length around the bound.
 */
import t from 'tap'
import { scrub, SCRUBBED_MAX } from '../../src/wire/scrub.js'

void t.test('keys, tokens and account ids are taken out, words stay', (t) => {
  const secrets = [
    'sk-proj-abcDEF123456',
    'sk-ant-api03-abc_def',
    'sk_0123456789abcdef',
    'sk-abc***********wxyz',
    'AIzaSyA1234567890abcdefg',
    'Bearer abc.def-ghi',
    'bearer abcdef123',
    'ya29.a0AfH6SMBx1234',
    'org-AbC123456',
    'proj_AbC123456',
    'wrkspc_01abcdef',
  ]
  for (const secret of secrets) {
    t.equal(scrub(`Before ${secret}, after.`), 'Before [redacted], after.', secret)
  }
  t.equal(scrub('GET /v1?key=abc123&alt=sse'), 'GET /v1?key=[redacted]&alt=sse')
  const plain = 'The task-list of organisation 7: project-wide risk-free ask.'
  t.equal(scrub(plain), plain)
  t.end()
})

void t.test('a long text is cut, also in the middle of a pair', (t) => {
  t.equal(scrub('x'.repeat(SCRUBBED_MAX)).length, SCRUBBED_MAX)
  for (const length of [SCRUBBED_MAX + 1, SCRUBBED_MAX * 3, 500_000]) {
    const cut = scrub('x'.repeat(length))
    t.equal(cut.length, SCRUBBED_MAX)
    t.ok(cut.endsWith('…'))
  }
  const pairs = scrub('x' + '🐈'.repeat(SCRUBBED_MAX))
  t.notMatch(pairs, /[\uD800-\uDBFF](?![\uDC00-\uDFFF])/)
  const late = scrub(`${'x'.repeat(SCRUBBED_MAX - 4)} sk-abcdefghijklmnop`)
  t.notMatch(late, 'sk-')
  t.end()
})
