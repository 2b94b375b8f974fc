/**
 * Goal: heads and bodies are read the same however their bytes are cut, and what is broken is said so.
 * Method: bodies at every split and byte by byte, a table of wrong ones, and seeded corruption.
 */
import t from 'tap'
import {
  BodyReader,
  headEnd,
  headFields,
  isFieldText,
  type Framing,
} from '../../src/wire/http-message.js'

/** What a reader made of bytes that came in pieces. */
interface Read {
  content: string
  /** What is behind the body. */
  rest: string
  done: boolean
  fault: string | null
  trailers: readonly string[]
}

function read(framing: Framing, pieces: readonly string[]): Read {
  const reader = new BodyReader(framing)
  let content = ''
  let rest = ''
  for (const piece of pieces) {
    const bytes = Buffer.from(piece, 'latin1')
    const end = reader.read(bytes, 0, (taken) => (content += taken.toString('latin1')))
    rest += bytes.toString('latin1', end)
  }
  const { done, fault, trailers } = reader
  return { content, rest, done, fault, trailers }
}

const CHUNKED: Framing = { kind: 'chunked' }

void t.test('a head ends at its empty line', (t) => {
  const bytes = Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\nbody\r\n\r\n')
  t.equal(headEnd(bytes, 0), 27)
  t.equal(headEnd(bytes, 27), bytes.length)
  for (let length = 0; length < 27; length += 1) t.equal(headEnd(bytes.subarray(0, length), 0), -1)
  t.end()
})

void t.test('fields are name and value, without case or the blanks around a value', (t) => {
  const fields = (lines: string): string[] | null => headFields(`${lines}\r\n`, 0)
  t.same(fields(''), [])
  t.same(fields('A: b\r\nA:c\r\nX-y:  \t d e\t \r\nEmpty:\r\n'), [
    ...['a', 'b', 'a', 'c'],
    ...['x-y', 'd e', 'empty', ''],
  ])
  t.same(fields('a: b:c\u00e9\r\n'), ['a', 'b:c\u00e9'])
  const wrong = [
    ...['a b: c\r\n', ': c\r\n', 'a : c\r\n', 'nonsense\r\n', ' a: b\r\n', 'a: b\r\n c\r\n'],
    ...['a: b\rc\r\n', 'a: b\nc: d\r\n', 'a: \u0000\r\n', 'a\u00e9: b\r\n', 'a\r\nb: c\r\n'],
  ]
  for (const lines of wrong) t.equal(fields(lines), null, JSON.stringify(lines))
  t.end()
})

void t.test('what may stand in a line', (t) => {
  t.ok(isFieldText('a\tb \u00ff~'))
  for (const text of ['a\r\nb', 'a\nb', '\u0000', '\u007f', '\u0100']) t.notOk(isFieldText(text))
  t.end()
})

void t.test('a body is the same at every split', (t) => {
  const bodies: readonly { framing: Framing; text: string; is: Partial<Read> }[] = [
    { framing: { kind: 'length', bytes: 5 }, text: 'hello', is: { content: 'hello' } },
    {
      framing: CHUNKED,
      text: '5\r\nhello\r\n00a;x="y"\r\n0123456789\r\nA\r\nabcdefghij\r\n0\r\n\r\n',
      is: { content: 'hello0123456789abcdefghij', trailers: [] },
    },
    {
      framing: CHUNKED,
      text: '1;\r\n\r\r\n0;last\r\nT: 1\r\nu:\r\n\r\n',
      is: { content: '\r', trailers: ['t', '1', 'u', ''] },
    },
  ]
  for (const { framing, text, is } of bodies) {
    const bytes = `${text}GET /`
    const whole = { ...is, done: true, fault: null, rest: 'GET /' }
    t.match(read(framing, [bytes]), whole)
    t.match(read(framing, bytes.split('')), whole, 'byte by byte')
    for (let at = 1; at < bytes.length; at += 1) {
      const seen = read(framing, [bytes.slice(0, at), bytes.slice(at)])
      if (seen.content !== is.content || !seen.done || seen.rest !== 'GET /') t.fail(`cut at ${at}`)
    }
    for (let length = 0; length < text.length; length += 1) {
      const seen = read(framing, [text.slice(0, length)])
      if (seen.done || seen.fault !== null) t.fail(`${length} bytes of it are not whole`)
    }
  }
  t.end()
})

void t.test('where a body ends', (t) => {
  t.ok(new BodyReader({ kind: 'length', bytes: 0 }).done)
  const closed = new BodyReader({ kind: 'close' })
  t.equal(closed.endIsTold, false)
  let content = ''
  t.equal(
    closed.read(Buffer.from('abc'), 1, (piece) => (content += piece.toString())),
    3,
  )
  t.same([content, closed.done, closed.end(), closed.done], ['bc', false, true, true])
  const cut = new BodyReader({ kind: 'length', bytes: 2 })
  t.same([cut.end(), cut.endIsTold], [false, true])
  t.end()
})

void t.test('broken chunks', (t) => {
  const wrong: Record<string, string> = {
    ...{
      '\r\n': 'malformed',
      '+5\r\n': 'malformed',
      '0x5\r\n': 'malformed',
      '5 \r\n': 'malformed',
    },
    ...{ '5\nhello': 'malformed', '5\r\nhello\n': 'malformed', '5\r\nhello0': 'malformed' },
    ...{ '5;\u0000': 'malformed', '5;a\nb': 'malformed', '5;a\r\r': 'malformed' },
    ...{ '0\r\nno colon\r\n\r\n': 'malformed', '0\r\na: b\n': 'malformed' },
    ...{ ['0'.repeat(14)]: 'malformed', 'FFFFFFFFFFFFFF\r\n': 'malformed' },
    [`5;${'x'.repeat(16_385)}`]: 'extensions_too_large',
    [`0\r\n${'a: b\r\n'.repeat(3000)}`]: 'trailers_too_large',
  }
  for (const [text, fault] of Object.entries(wrong)) {
    const seen = read(CHUNKED, [text])
    t.same([seen.fault, seen.done], [fault, false], JSON.stringify(text.slice(0, 20)))
    t.equal(read(CHUNKED, text.split('')).fault, fault, 'byte by byte')
  }
  const reader = new BodyReader(CHUNKED)
  reader.read(Buffer.from('zz'), 0, () => t.fail('there is no content'))
  t.equal(reader.endIsTold, false)
  t.equal(
    reader.read(Buffer.from('5\r\nhello'), 0, () => t.fail('nothing after a fault')),
    0,
  )
  t.end()
})

void t.test('chunks that come together are one piece, and what is behind them stays', (t) => {
  const text = '5\r\nhello\r\n1;x=y\r\n \r\n5\r\nworld\r\n0\r\n\r\nGET / '
  const bytes = Buffer.from(text)
  const pieces: string[] = []
  const end = new BodyReader(CHUNKED).read(bytes, 0, (piece) => pieces.push(piece.toString()))
  t.same(pieces, ['hello world'])
  t.equal(bytes.toString('latin1', end), 'GET / ')
  t.end()
})

void t.test(
  'seeded corruption is a fault, an end or a wait, and never content that was not sent',
  (t) => {
    let state = 7
    const random = (below: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
      return Math.floor((state / 0x80000000) * below)
    }
    const good = '5\r\nhello\r\n3;x=y\r\nabc\r\n0\r\nT: 1\r\n\r\n'
    const ends = { fault: 0, done: 0, waiting: 0 }
    for (let round = 0; round < 5000; round += 1) {
      const at = random(good.length)
      const with_ = ['', '\r', '\n', ' ', ';', '0', 'f', '\u00ff', '\u0000'][random(9)] ?? ''
      const text = good.slice(0, at) + with_ + good.slice(at + random(3))
      const cut = random(text.length)
      const whole = read(CHUNKED, [text])
      const split = read(CHUNKED, [text.slice(0, cut), text.slice(cut)])
      if (
        whole.content !== split.content ||
        whole.fault !== split.fault ||
        whole.done !== split.done
      )
        t.fail(`${JSON.stringify(text)} differs when cut at ${cut}`)
      if (whole.content.length > text.length) t.fail('more came out than went in')
      ends[whole.done ? 'done' : whole.fault === null ? 'waiting' : 'fault'] += 1
    }
    t.ok(ends.fault > 500 && ends.done > 500 && ends.waiting > 100, JSON.stringify(ends))
    t.end()
  },
)
