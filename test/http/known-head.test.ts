/**
 * Goal: a head that is taken for known says what reading it would have said, and would have been let in.
 * Method: a known head, changed at every byte and in the length that it tells, against a fresh reading.
 */
import t from 'tap'
import { admit } from '../../src/gateway/admit.js'
import { Heads } from '../../src/http/known-head.js'
import { Request } from '../../src/http/request.js'
import { parseHead, type RequestHead } from '../../src/http/request-head.js'

function head(...lines: string[]): string {
  return ['POST /v1/chat?a HTTP/1.1', 'Host: a', ...lines, '', ''].join('\r\n')
}

const SUFFIX = ['Authorization: Bearer sk_1', 'X-Trace: 0123456789abcdef']
const LENGTHS = ['Content-Length: 12', 'content-length:\t12 \t', 'CONTENT-LENGTH:0']
const KNOWN = [
  ...LENGTHS.flatMap((line) => [head(line), head(line, ...SUFFIX), head(...SUFFIX, line)]),
  head(...SUFFIX),
  head('Transfer-Encoding: chunked', ...SUFFIX),
  head('Expect: 100-continue', 'Content-Length: 7'),
]

/** Reads what follows the known head; null where it is not known. */
function known(first: string, second: string): { head: RequestHead; end: number } | null {
  const heads = new Heads()
  const bytes = Buffer.from(first, 'latin1')
  const read = heads.read(bytes, 0, heads.end(bytes, 0))
  if (read === null) throw new Error('the first head is none')
  heads.remember(read, bytes, 0, bytes.length)
  const next = Buffer.from(`\r\n${second}`, 'latin1')
  const end = heads.end(next, 2)
  if (!heads.isKnown) return null
  const again = heads.read(next, 2, end)
  return again === null ? null : { head: again, end: end - 2 }
}

/** True where the two were alike; what is known must be what is read, and may pass. */
function check(first: string, second: string): boolean {
  const found = known(first, second)
  if (found === null) return false
  const end = second.indexOf('\r\n\r\n') + 4
  const read = parseHead(second.slice(0, end))
  if (read === null || found.end !== end) throw new Error(`known, but none: ${second}`)
  t.same(found.head, read, second)
  t.equal(admit(new Request(read)), null, second)
  return true
}

void t.test('the same bytes are known, whatever follows', (t) => {
  for (const text of KNOWN) {
    t.ok(check(text, text), text)
    t.ok(check(text, `${text}12`), 'digits behind it are not its own')
    for (let cut = 0; cut < text.length; cut += 1) t.equal(known(text, text.slice(0, cut)), null)
  }
  t.end()
})

void t.test('another length is known too, and told', (t) => {
  for (const text of KNOWN.filter((each) => /-length:/i.test(each))) {
    for (const length of ['0', '1', '12', '13', '345', '99999999999']) {
      const second = text.replace(/(-length:\s*)\d+/i, `$1${length}`)
      t.ok(check(text, second), second)
      const found = known(text, second)
      t.equal(found?.head.header('content-length'), length)
      const expected = length === '0' ? null : { kind: 'length', bytes: Number(length) }
      t.same(found?.head.framing, expected)
    }
    for (const length of ['', '-1', '+1', '012', '1 2', '1,2', '0x1', '123456789012', '１']) {
      const second = text.replace(/(-length:\s*)\d+/i, `$1${length}`)
      t.equal(known(text, second), null, `length ${length}`)
    }
  }
  t.end()
})

void t.test('a head that differs in any byte is read', (t) => {
  let alike = 0
  for (const text of KNOWN) {
    for (let at = 0; at < text.length; at += 1) {
      for (const code of [0, 9, 10, 13, 32, 48, 57, 58, 65, 97, 127, 255]) {
        const changed = text.slice(0, at) + String.fromCharCode(code) + text.slice(at + 1)
        const added = text.slice(0, at) + String.fromCharCode(code) + text.slice(at)
        for (const second of [changed, added]) if (check(text, second)) alike += 1
      }
    }
  }
  // Those where only a digit of the length was changed or added.
  t.ok(alike > 50 && alike < 500, `${alike}`)
  t.end()
})

void t.test('who never repeats a head is not remembered for ever, nor is a large head', (t) => {
  const heads = new Heads()
  const pass = (text: string): boolean => {
    const bytes = Buffer.from(text, 'latin1')
    const end = heads.end(bytes, 0)
    const { isKnown } = heads
    const read = heads.read(bytes, 0, end)
    if (read !== null && !isKnown) heads.remember(read, bytes, 0, end)
    return isKnown
  }
  const large = head(`X: ${'x'.repeat(3000)}`)
  t.same([pass(large), pass(large)], [false, false])
  t.same([pass(head('X: 1')), pass(head('X: 1'))], [false, true])
  for (let i = 0; i < 10; i += 1) t.equal(pass(head(`X: ${i}-`)), false)
  t.same([pass(head('X: 1')), pass(head('X: 1'))], [false, false])
  t.end()
})
