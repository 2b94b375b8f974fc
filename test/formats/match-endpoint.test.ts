/**
 * Goal: a method and path name one endpoint, and an unknown path gets the most similar endpoint as a
 * suggestion.
 * Method: hand-written paths with the expected results; long and hostile ones under a time limit.
 */
import t from 'tap'
import { ENDPOINTS, nearestRow, matchingRows } from '../../src/formats/match-endpoint.js'
import { resolveEndpoint, allowedMethods } from '../../src/formats/index.js'

void t.test('a method and path resolve to one endpoint', (t) => {
  const at = (method: string, path: string): unknown => resolveEndpoint(method, path)?.endpoint
  t.same(at('POST', '/v1/chat/completions'), { operation: 'chat' })
  t.same(at('GET', '/v1/models'), { operation: 'models' })
  t.same(at('HEAD', '/v1/models'), { operation: 'models' })
  t.same(at('GET', '/v1/models/o1'), { operation: 'models', model: 'o1' })
  t.same(at('GET', '/v1beta/models/gemini-3'), { operation: 'models', model: 'gemini-3' })
  t.same(at('GET', '/v1/models/a/b%2Fc%20d'), { operation: 'models', model: 'a/b/c d' })
  const none: [string, string][] = [
    ['GET', '/v1/chat/completions'],
    ['POST', '/v1/chat/completions/'],
    ['POST', '/v1/models'],
    ['GET', '/v1/models/'],
    ['GET', '/v1/modelsx'],
    ['GET', '/v1/models/%zz'],
    ['POST', '/v2/chat/completions'],
    ['POST', '/v1/Chat/completions'],
  ]
  for (const [method, path] of none) t.equal(resolveEndpoint(method, path), null, path)
  t.same(allowedMethods('/v1/models'), ['GET', 'HEAD'])
  t.same(allowedMethods('/v1/chat/completions'), ['POST'])
  t.same(allowedMethods('/v1/none'), [])
  t.end()
})

void t.test('a path with an action is not the path of a model whose id has a colon', (t) => {
  const rows = (path: string): unknown =>
    matchingRows(path, ENDPOINTS).map(({ row, parameter }) => [row.method, row.endpoint, parameter])
  for (const version of ['v1', 'v1beta']) {
    const model = `/${version}/models/a%2Fb:free`
    t.same(rows(`${model}:generateContent`), [['POST', { operation: 'chat', stream: false }, 'a/b:free']])
    t.same(rows(`${model}:streamGenerateContent`), [
      ['POST', { operation: 'chat', stream: true }, 'a/b:free'],
    ])
    t.same(rows(model), [['GET', { operation: 'models' }, 'a/b:free']])
  }
  t.end()
})

void t.test('an unknown path suggests the most similar endpoint', (t) => {
  const nearest = (method: string, path: string): string | undefined =>
    nearestRow(method, path, ENDPOINTS)?.path
  t.equal(nearest('POST', '/chat/completions'), '/v1/chat/completions')
  t.equal(nearest('POST', '/v1/v1/chat/completions'), '/v1/chat/completions')
  t.equal(nearest('POST', '/v1/Chat/Completion'), '/v1/chat/completions')
  t.equal(nearest('POST', '/v1/message'), '/v1/messages')
  t.equal(nearest('POST', '/v1/messages/'), '/v1/messages')
  t.equal(nearest('POST', '/v1/response'), '/v1/responses')
  t.equal(nearest('GET', '/v1/model'), '/v1/models')
  t.equal(
    nearest('POST', '/v1beta/models/some-rather-long-model-name:generate'),
    '/v1beta/models/{model}:generateContent',
  )
  t.equal(nearest('GET', '/favicon.ico'), undefined)
  t.equal(nearest('GET', '/x'), undefined)
  t.end()
})

void t.test('hostile paths are resolved within the time limit', (t) => {
  const began = performance.now()
  for (let round = 0; round < 20; round += 1) {
    for (const path of ['/v1/chat/'.repeat(1800), `/v1/models/${':'.repeat(16_000)}`, '/'.repeat(16_000)]) {
      matchingRows(path, ENDPOINTS)
      nearestRow('POST', path, ENDPOINTS)
    }
  }
  t.ok((performance.now() - began) / 60 < 20)
  t.end()
})
