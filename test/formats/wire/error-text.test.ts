/**
 * Goal: the words of an error reach the client wherever a server puts them.
 * Method: bodies of several servers, decoded for an upstream of each format.
 */
import t from 'tap'
import { decodeError as decodeAnthropic } from '../../../src/formats/anthropic/upstream/decode-error.js'
import { decodeError as decodeGemini } from '../../../src/formats/gemini/upstream/decode-error.js'
import { decodeAwsError } from '../../../src/formats/wire/aws/decode-error.js'
import { strayFrame } from '../../../src/formats/wire/upstream-errors.js'
import { decodeError as decodeOpenAi } from '../../../src/formats/wire/openai/decode-error.js'

const BODIES: readonly object[] = [
  { errors: { size: ['is too odd'] } },
  { error: { code: 'x', details: 'is too odd' } },
  { error: { innererror: { message: 'is too odd' } } },
  { fault: { faultstring: 'is too odd' } },
  { errorMessage: 'is too odd' },
  { description: 'is too odd' },
  { err: 'is too odd' },
  { err: { msg: 'is too odd' } },
  { status: 400, statusText: 'is too odd' },
  { error: 'invalid_request', error_description: 'is too odd' },
  { error: { message: JSON.stringify({ error: { message: 'is too odd' } }) } },
  { error: JSON.stringify({ message: 'is too odd' }) },
  { error: { cause: 'is too odd' } },
  { exception: 'is too odd' },
  { failure: { reason: 'is too odd' } },
  { success: false, info: 'is too odd' },
  { warning: 'is too odd' },
  { ret_code: 7, ret_msg: 'is too odd' },
  { Errors: [{ Message: 'is too odd' }] },
  { 'error-message': 'is too odd' },
  { response: { error: { message: 'is too odd' } } },
  { data: { error: 'is too odd' } },
  { result: { message: 'is too odd' } },
]

/** Bodies that are not JSON, or not alone. */
const TEXTS: readonly string[] = [
  'is too odd',
  '"is too odd"',
  '\ufeff{"error":{"message":"is too odd"}}',
  'data: {"error":{"message":"is too odd"}}\n\n',
  'event: error\ndata: {"error":{"message":"is too odd"}}\n\n',
  '<html><head><title>is too odd</title></head><body><h1>Sorry</h1></body></html>',
  '<!DOCTYPE html>\n<html><body><center><h1 class="x">is too\n odd</h1></center>nginx</body></html>',
  '<html><style>a{b:c}</style><script>let x = 1 < 2</script><p>is <b>too</b> odd</p></html>',
  '<?xml version="1.0"?><Error><Code>InvalidArgument</Code><Message>is too odd</Message></Error>',
  '<s:Envelope xmlns:s="x"><s:Body><s:Fault><s:faultstring>is too odd</s:faultstring></s:Fault></s:Body></s:Envelope>',
]

void t.test('the words of an error are found for upstreams of each format', (t) => {
  for (const decode of [decodeOpenAi, decodeAnthropic, decodeGemini, decodeAwsError]) {
    for (const body of BODIES) {
      const text = JSON.stringify(body)
      t.match(decode(400, {}, text).message, /is too odd$/, text)
    }
  }
  t.equal(decodeOpenAi(400, {}, JSON.stringify(BODIES[0])).message, 'size: is too odd')
  t.end()
})

void t.test('words that are no JSON, or in an event, a page or XML', (t) => {
  for (const decode of [decodeOpenAi, decodeAnthropic, decodeGemini, decodeAwsError]) {
    for (const text of TEXTS) t.equal(decode(400, {}, text).message, 'is too odd', text)
    const large = 'is too odd ' + 'x'.repeat(100_000)
    t.match(decode(400, {}, large).message, /^is too odd x{1000}/)
    t.match(decode(400, {}, `<html>${'x'.repeat(100_000)}`).message, /^x{300}$/)
    t.match(decode(502, {}, '<title>a &lt;b&gt; &amp;&#39;c&#39;</title>').message, "a <b> &'c'")
  }
  t.end()
})

void t.test('words in a body or frame that is no reply', (t) => {
  const error = { message: 'is too odd' }
  const frames = [
    { warning: error.message },
    { warning: error },
    { choices: [{ index: 0, delta: {}, error }] },
  ]
  for (const frame of frames) t.match(strayFrame(JSON.stringify(frame)).message, /: is too odd$/)
  t.end()
})

void t.test('what an error contains beside its message follows it', (t) => {
  const field = { field: 'size', description: 'is too odd' }
  const violations = { code: 400, message: 'Invalid.', details: [{ fieldViolations: [field] }] }
  const inner = { code: 'BadRequest', message: 'Invalid.', innererror: { message: 'is too odd' } }
  for (const decode of [decodeOpenAi, decodeAnthropic, decodeGemini]) {
    t.equal(decode(400, {}, JSON.stringify({ error: violations })).message, 'Invalid. (size: is too odd)')
    t.equal(decode(400, {}, JSON.stringify({ error: inner })).message, 'Invalid. (is too odd)')
  }
  t.end()
})

void t.test('the words of a refused credential and of a wrong path are for the log only', (t) => {
  for (const decode of [decodeOpenAi, decodeAnthropic, decodeGemini, decodeAwsError]) {
    const denied = decode(403, {}, '{"message":"Verify your organization first."}')
    t.match(denied, { kind: 'upstream_denied', upstreamMessage: 'Verify your organization first.' })
    t.notMatch(denied.message, /Verify/)
    const missing = decode(404, {}, '<title>404 Not Found</title>')
    t.match(missing, { kind: 'upstream_misconfigured', upstreamMessage: '404 Not Found' })
  }
  t.end()
})

void t.test('an account without credit is not worth another attempt, in each format', (t) => {
  for (const decode of [decodeOpenAi, decodeAnthropic, decodeGemini, decodeAwsError]) {
    const spent = decode(402, { 'retry-after': '7' }, '{"message":"Add credit."}')
    t.match(spent, { kind: 'upstream_busy', retryable: false })
  }
  t.end()
})

void t.test('the words of the provider behind a router follow those of the router', (t) => {
  const raw = JSON.stringify({ error: { message: 'is too odd' } })
  const body = JSON.stringify({ error: { message: 'Provider returned error', metadata: { raw } } })
  for (const decode of [decodeOpenAi, decodeAnthropic, decodeGemini]) {
    t.equal(decode(400, {}, body).message, 'Provider returned error (is too odd)')
  }
  t.end()
})
