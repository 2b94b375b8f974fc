/**
 * Goal: text that looks like a secret is removed, and messages have at most 2 KB.
 * Method: each form of secret in the middle of a sentence, and texts of every length around the limit.
 */
import t from 'tap'
import { protectSecrets } from '../../../src/hide-secrets.js'
import { redactUpstreamText, MAX_MESSAGE_CHARS } from '../../../src/formats/wire/upstream-errors.js'

void t.test('keys, tokens and account ids are removed; other text stays', (t) => {
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
    t.equal(redactUpstreamText(`Before ${secret}, after.`), 'Before [redacted], after.', secret)
  }
  t.equal(redactUpstreamText('GET /v1?key=abc123&alt=sse'), 'GET /v1?key=[redacted]&alt=sse')
  const plain = 'The task-list of organisation 7: project-wide risk-free ask.'
  t.equal(redactUpstreamText(plain), plain)
  t.end()
})

void t.test('configured secrets are removed in hexadecimal and in parts of 16 characters', (t) => {
  const secret = 'Zq8-provider:credential/0123456789+abcdefXY'
  protectSecrets([secret])
  const hex = Buffer.from(secret).toString('hex')
  for (const form of [secret, hex, hex.toUpperCase()]) {
    for (let from = 0; from + 16 <= form.length; from += 1) {
      for (const to of [from + 16, from + 17, form.length]) {
        if (to > form.length) continue
        const text = `Key {${form.slice(from, to)}} is wrong.`
        t.equal(redactUpstreamText(text), 'Key {[redacted]} is wrong.', text)
      }
    }
  }
  const short = `Key {${secret.slice(8, 22)}} is wrong.`
  t.equal(redactUpstreamText(short), short, 'a shorter part is not a secret')
  const many = `${secret.slice(4, 24)} ${secret.slice(10)} ${secret.slice(20, 36)}`
  t.equal(redactUpstreamText(many), '[redacted] [redacted] [redacted]')
  protectSecrets([])
  t.end()
})

void t.test('a long text is truncated, also inside a surrogate pair', (t) => {
  t.equal(redactUpstreamText('x'.repeat(MAX_MESSAGE_CHARS)).length, MAX_MESSAGE_CHARS)
  for (const length of [MAX_MESSAGE_CHARS + 1, MAX_MESSAGE_CHARS * 3, 500_000]) {
    const cut = redactUpstreamText('x'.repeat(length))
    t.equal(cut.length, MAX_MESSAGE_CHARS)
    t.ok(cut.endsWith('…'))
  }
  const pairs = redactUpstreamText('x' + '🐈'.repeat(MAX_MESSAGE_CHARS))
  t.notMatch(pairs, /[\uD800-\uDBFF](?![\uDC00-\uDFFF])/)
  const late = redactUpstreamText(`${'x'.repeat(MAX_MESSAGE_CHARS - 4)} sk-abcdefghijklmnop`)
  t.notMatch(late, 'sk-')
  t.end()
})

void t.test('projects, organizations and internal addresses are removed', (t) => {
  const redacted: readonly (readonly [input: string, output: string])[] = [
    ['in projects/my-team-42/locations', 'in projects/[redacted]/locations'],
    ['project_number:123456789', 'project_number:[redacted]'],
    ['key AQ.Ab8RN6IabcdefghijklmnopQRST of', 'key [redacted] of'],
    ['your organization (0a1b2c3d-0000-4abc-8def-001122334455) is', 'your organization ([redacted]) is'],
    ['see http://10.1.2.3:8080/v1/x?y', 'see [redacted]'],
    ['from https://models.prod.svc.cluster.local/v1, it', 'from [redacted] it'],
    ['at http://localhost:4000.', 'at [redacted]'],
    ['at http://inference/v1 now', 'at [redacted] now'],
    ['peer 192.168.0.17:443 reset', 'peer [redacted] reset'],
    ['at https://acme-prod.openai.azure.com/openai', 'at https://[redacted].openai.azure.com/openai'],
  ]
  for (const [input, output] of redacted) t.equal(redactUpstreamText(input), output)
  for (const plain of [
    'See https://platform.openai.com/docs/guides and http://example.com:80/a.',
    'Use version 10.2 or 127 tokens; 1.2.3.4 is a public address.',
    'organization of 12 people, project 7',
  ]) {
    t.equal(redactUpstreamText(plain), plain)
  }
  t.end()
})
