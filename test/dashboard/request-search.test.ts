/**
 * Goal: the search of the page of requests becomes the conditions that the reader means.
 * Method: searches and their conditions.
 */
import t from 'tap'
import { searchTerms } from '../../src/dashboard/web/format/request-search.js'

const NONE = { status: '', upstream: '', modelAsked: '', requestId: '' }

void t.test('a search is read as conditions', (t) => {
  for (const [text, terms] of [
    ['', {}],
    ['  ', {}],
    ['429', { status: '429' }],
    ['status:503 upstream:openai', { status: '503', upstream: 'openai' }],
    ['asked:gpt-5.4', { modelAsked: 'gpt-5.4' }],
    ['gpt-5.4', { modelAsked: 'gpt-5.4' }],
    ['req_0a1b', { requestId: 'req_0a1b' }],
    ['id:abc 200', { requestId: 'abc', status: '200' }],
    ['status:many', {}],
    ['999', { modelAsked: '999' }],
  ] as const) {
    t.strictSame(searchTerms(text), { ...NONE, ...terms }, text)
  }
  t.end()
})
