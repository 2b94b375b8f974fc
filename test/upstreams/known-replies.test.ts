/**
 * Goal: a reply's head that is taken for known says what reading it would have said.
 * Method: heads that are known, changed at every byte, one after another, against a fresh reading of each.
 */
import t from 'tap'
import { KnownReplies } from '../../src/upstreams/known-replies.js'
import { parseReplyHead, type ReplyHead } from '../../src/upstreams/reply-head.js'
import { headEnd } from '../../src/wire/http-message.js'
import { dice } from '../helpers/dice.js'

const DATE = 'Date: Sun, 22 Nov 2026 09:00:00 GMT'
const TYPE = 'Content-Type: application/json'
const HEADS = [
  [
    'HTTP/1.1 200 OK',
    DATE,
    TYPE,
    'Content-Length: 512',
    'request-id: req_1',
    'x-empty:',
    'x: a b \t',
  ],
  [
    'HTTP/1.1 200 OK',
    DATE,
    'content-type:text/event-stream',
    'Transfer-Encoding: chunked',
    'x-é: \xe9',
  ],
  ['HTTP/1.0 200', TYPE, 'Connection: keep-alive', 'Keep-Alive: timeout=5', 'content-length: 0'],
  ['HTTP/1.1 200 OK', TYPE, 'x: 1', 'x: 2', 'Connection: close'],
].map((lines) => [...lines, '', ''].join('\r\n'))

/** What the head says, and how much of the text it is; null where it is none or not whole. */
function read(replies: KnownReplies, text: string): { head: ReplyHead | null; end: number } {
  // Not at the beginning of the bytes, and with something behind it.
  const bytes = Buffer.from(`..${text}{"a":1}\r\n\r\n`, 'latin1')
  const end = replies.end(bytes, 2)
  return { head: replies.read(bytes, 2, end), end: end - 2 }
}

function check(replies: KnownReplies, text: string): void {
  const whole = Buffer.from(`${text}{"a":1}\r\n\r\n`, 'latin1')
  const end = headEnd(whole, 0)
  const wanted = { head: parseReplyHead(whole.toString('latin1', 0, end)), end }
  const found = read(replies, text)
  if (JSON.stringify(found) !== JSON.stringify(wanted)) t.same(found, wanted, JSON.stringify(text))
}

const OTHERS = [
  '\r',
  '\n',
  '\r\n',
  '\r\n\r\n',
  ' ',
  '\t',
  ':',
  ',',
  '0',
  '1',
  'a',
  '\0',
  '\x7f',
  '\x80',
  '',
]

void t.test('heads that differ in any byte are read as they are', (t) => {
  const random = dice(7)
  for (const known of HEADS) {
    for (let at = 0; at < known.length; at += 1) {
      const replies = new KnownReplies()
      for (const head of HEADS) check(replies, head)
      for (const other of OTHERS) {
        check(replies, known.slice(0, at) + other + known.slice(at + 1))
        check(replies, known.slice(0, at) + other + known.slice(at))
        check(replies, HEADS[Math.floor(random() * HEADS.length)] ?? '')
      }
    }
  }
  t.pass()
  t.end()
})

void t.test('a head that has not come whole is waited for', (t) => {
  for (const head of HEADS) {
    const replies = new KnownReplies()
    check(replies, head)
    for (let cut = 0; cut < head.length; cut += 1) {
      t.equal(replies.end(Buffer.from(head.slice(0, cut), 'latin1'), 0), -1)
    }
  }
  t.end()
})

void t.test('what is the same is not read again', (t) => {
  const replies = new KnownReplies()
  const first = HEADS.map((head) => read(replies, head).head)
  t.ok(HEADS.every((head, i) => read(replies, head).head === first[i]))
  const [head = ''] = HEADS
  const later = head.replace('09:00:00', '10:11:12')
  t.equal(read(replies, later).head?.headers[1], 'Sun, 22 Nov 2026 10:11:12 GMT')
  for (let i = 0; i < 10; i += 1) read(replies, later)
  const second = read(replies, later).head
  t.equal(second?.framing, first[0]?.framing)
  t.equal(read(replies, later).head, second, 'a date that comes again is known')
  const longer = read(replies, later.replace('512', '1024')).head
  t.same(longer?.framing, { kind: 'length', bytes: 1024 })
  t.equal(read(replies, later).head, second, 'another length is no other date')
  t.end()
})

void t.test('whoever never repeats a head is not remembered for ever', (t) => {
  const replies = new KnownReplies()
  const head = (i: number): string => `HTTP/1.1 200 OK\r\nx-${i}: a\r\ncontent-length: 0\r\n\r\n`
  for (let i = 0; i < 100; i += 1) read(replies, head(i))
  t.not(read(replies, head(100)).head, read(replies, head(100)).head)
  t.end()
})
