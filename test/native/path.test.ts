/**
 * Goal: no spelling of a path reaches an endpoint that no rule allows.
 * Method: the pure functions, with hostile paths.
 */
import t from 'tap'
import { headersForClient, headersForUpstream } from '../../src/gateway/native/native-headers.js'
import { isAllowed, nativePathOf, nativeUrl } from '../../src/gateway/native/native-path.js'
import { usageIn } from '../../src/gateway/native/native-attempt.js'
import { cpuWatch } from '../helpers/stopwatch.js'

const segments = (path: string): readonly string[] => nativePathOf(path)?.segments ?? []

void t.test('paths are normalized, and ambiguous ones are refused', (t) => {
  t.strictSame(nativePathOf('/native/openai/v1/files'), {
    upstream: 'openai',
    segments: ['v1', 'files'],
  })
  t.strictSame(segments('/native/openai/v1/%66iles'), ['v1', 'files'])
  for (const path of [
    '/native/openai',
    '/native/openai/',
    '/native/openai/v1//files',
    '/native/openai/v1/files/',
    '/native/openai/v1/../admin',
    '/native/openai/v1/%2e%2e/admin',
    '/native/openai/v1/..;/admin',
    '/native/openai/v1/a%2fb',
    '/native/openai/v1/a%5cb',
    '/native/openai/v1/%252e%252e/admin',
    '/native/openai/v1/%00',
    '/native/openai/v1/%zz',
    '/native/openai/models/a%2Fb',
    '/v1/files',
  ]) {
    t.equal(nativePathOf(path), null, path)
  }
  t.end()
})

void t.test('* matches one or more segments', (t) => {
  const open = (pattern: string, path: string): boolean =>
    isAllowed([{ method: 'GET', segments: pattern.split('/') }], 'GET', path.split('/'))
  t.ok(open('v1/files/*', 'v1/files/a'))
  t.ok(open('v1/files/*', 'v1/files/a/content'))
  t.notOk(open('v1/files/*', 'v1/files'))
  t.notOk(open('v1/files', 'v1/files/a'))
  t.notOk(open('v1/files', 'v1'))
  t.ok(open('v1/*/content', 'v1/files/a/content'))
  t.ok(open('*/content', 'content/content'))
  t.notOk(open('v1/*/content', 'v1/content'))
  t.notOk(open('v1/*/content', 'v1/files/a/contents'))
  t.notOk(isAllowed([{ method: 'GET', segments: ['v1'] }], 'POST', ['v1']))
  const long = Array.from({ length: 8000 }, () => 'a')
  const watch = cpuWatch()
  t.notOk(isAllowed([{ method: 'GET', segments: ['*', 'a', '*', 'a', '*', 'b'] }], 'GET', long))
  t.ok(watch() < 50)
  t.end()
})

void t.test('the version of base_url is not repeated, and credentials are removed from the query', (t) => {
  const to = (
    baseUrl: string,
    path: string,
    { query = '', own = {} }: { query?: string; own?: Record<string, string> } = {},
  ): string => nativeUrl({ baseUrl, query: own }, path.split('/'), query).href
  t.equal(to('https://a.com/v1', 'v1/files'), 'https://a.com/v1/files')
  t.equal(to('https://a.com/x/v1', 'v1/files'), 'https://a.com/x/v1/files')
  t.equal(to('https://a.com/v1beta', 'v1alpha/files'), 'https://a.com/v1alpha/files')
  t.equal(to('https://a.com/v1', 'files'), 'https://a.com/v1/files')
  t.equal(to('https://a.com', 'v1/models/x:embed'), 'https://a.com/v1/models/x:embed')
  t.equal(to('https://a.com/v1', 'v1/a?b#c'), 'https://a.com/v1/a%3Fb%23c')
  t.equal(
    to('https://a.com/v1', 'v1/f', { query: 'a=1&key=s&%6bey=s&KEY=s&access_token=s&b=2' }),
    'https://a.com/v1/f?a=1&b=2',
  )
  t.equal(
    to('https://a.com', 'f', { query: 'api-version=x&a=1', own: { 'api-version': '1' } }),
    'https://a.com/f?a=1&api-version=1',
  )
  t.end()
})

void t.test("Azure's API without versions gets no version from the gateway", (t) => {
  const platform = { name: 'azure', root: 'https://a.com' } as const
  const to = (path: string, clientQuery = ''): string => {
    const address = { baseUrl: 'https://a.com/openai', query: { 'api-version': '2', b: '1' }, platform }
    return nativeUrl(address, path.split('/'), clientQuery).href
  }
  t.equal(to('openai/v1/files'), 'https://a.com/openai/v1/files?b=1')
  t.equal(
    to('openai/v1/files', 'api-version=preview'),
    'https://a.com/openai/v1/files?api-version=preview&b=1',
  )
  t.equal(to('openai/files'), 'https://a.com/openai/files?api-version=2&b=1')
  for (const [baseUrl, path, expected] of [
    ['https://a.com/openai', 'v1/files', 'https://a.com/openai/v1/files'],
    ['https://a.com/openai/v1', 'v1/files', 'https://a.com/openai/v1/files'],
    ['https://a.com', 'openai/v1/files', 'https://a.com/openai/v1/files'],
    ['https://a.com/openai', 'files', 'https://a.com/openai/files?api-version=2'],
  ] as const) {
    const address = { baseUrl, query: { 'api-version': '2' }, preset: 'azure' } as const
    t.equal(nativeUrl(address, path.split('/'), '').href, expected)
  }
  t.end()
})

void t.test('credentials, cookies and hop-by-hop headers are removed', (t) => {
  const secret = {
    authorization: 's',
    cookie: 's',
    'x-api-key': 's',
    'x-goog-api-key': 's',
    'api-key': 's',
  }
  const hop = {
    connection: 'x-named, close',
    'x-named': '1',
    te: 'trailers',
    host: 'h',
    expect: 'e',
    'transfer-encoding': 'chunked',
    'proxy-authorization': 's',
    'keep-alive': '1',
    upgrade: 'h2c',
  }
  t.strictSame(
    headersForUpstream(
      { ...secret, ...hop, 'x-forwarded-for': '1.1.1.1', 'content-type': 'a/b' },
      { Authorization: 'own' },
      'acc_1',
    ),
    { 'content-type': 'a/b', 'accept-encoding': 'identity', authorization: 'own' },
  )
  t.strictSame(
    headersForUpstream({ 'sec-websocket-protocol': 'realtime, openai-insecure-api-key.sk_x' }, {}, 'acc_1'),
    { 'sec-websocket-protocol': 'realtime', 'accept-encoding': 'identity' },
  )
  t.strictSame(
    headersForClient({
      ...secret,
      ...hop,
      'set-cookie': ['a', 'b'],
      'content-length': '3',
      'x-sluice-upstream': 'x',
      'x-request-id': 'r',
    }),
    { 'content-length': '3' },
  )
  t.end()
})

void t.test("usage is read in each provider's format", (t) => {
  t.strictSame(usageIn('{"usage":{"prompt_tokens":3,"total_tokens":3}}'), { input: 3, output: 0 })
  t.strictSame(usageIn('{"usage":{"input_tokens":3,"output_tokens":4}}'), { input: 3, output: 4 })
  t.strictSame(usageIn('{"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4}}'), {
    input: 3,
    output: 4,
  })
  for (const text of [
    '',
    '[]',
    '{}',
    '{"usage":null}',
    '{"usage":[1]}',
    '{"usage":{"input_tokens":-1}}',
    '{"usage":',
  ]) {
    t.strictSame(usageIn(text), {}, text)
  }
  t.end()
})
