/**
 * Goal: the head of a request says what it was asked to say, whatever was asked before.
 * Method: requests that differ in one thing each, again and again, against what they must be.
 */
import t from 'tap'
import { RequestLines } from '../../src/upstreams/request-lines.js'

const HEADERS = ['authorization', 'Bearer one', 'accept', 'application/json']
const ASKED = [
  { method: 'POST', path: '/v1/a', headers: HEADERS },
  { method: 'POST', path: '/v1/b', headers: HEADERS },
  { method: 'GET', path: '/v1/a', headers: HEADERS },
  { method: 'POST', path: '/v1/a', headers: HEADERS.with(1, 'Bearer two') },
  { method: 'POST', path: '/v1/a', headers: HEADERS.slice(0, 2) },
  { method: 'POST', path: '/v1/a', headers: [...HEADERS, 'x', ''] },
]

function wanted({ method, path, headers }: (typeof ASKED)[number]): string {
  let lines = `${method} ${path} HTTP/1.1\r\nhost: a:1\r\nconnection: keep-alive\r\n`
  for (let i = 0; i < headers.length; i += 2) lines += `${headers[i]}: ${headers[i + 1]}\r\n`
  return lines
}

void t.test('every request gets its own lines', (t) => {
  const lines = new RequestLines('a:1')
  for (let i = 0; i < 200; i += 1) {
    // Some ways more than are remembered, some of them again before they are forgotten.
    const asked = ASKED[(i * i + (i >> 1)) % ASKED.length]
    if (asked !== undefined) t.equal(lines.of({ ...asked }), wanted(asked))
  }
  t.end()
})

void t.test('a character that ends a line is refused each time', (t) => {
  const lines = new RequestLines('a:1')
  for (const bad of ['a\r\nb', 'a\n', '\0', '\x7f', 'é€']) {
    for (let i = 0; i < 2; i += 1) {
      t.equal(lines.of({ method: 'POST', path: bad, headers: [] }), null)
      t.equal(lines.of({ method: 'POST', path: '/', headers: ['x', bad] }), null)
    }
  }
  t.end()
})
