/**
 * Goal: the framer's limits, and the bytes that a pass-through reads from it, at their exact limits.
 * Method: small hand-written streams; test/properties/splits-framer tests all splits.
 */
import t from 'tap'
import { SseFramer } from '../../../../src/formats/wire/frames/sse-framer.js'
import type { SseOptions } from '../../../../src/formats/wire/frames/sse-framer.js'

function framerOf(options: SseOptions = {}): { framer: SseFramer; frames: string[] } {
  const frames: string[] = []
  const framer: SseFramer = new SseFramer(
    { frame: (name, data) => frames.push(`${name}|${data}|${framer.raw}`) },
    options,
  )
  return { framer, frames }
}

void t.test('an event at the limit passes, and one above it ends the framing', (t) => {
  for (const bytes of [false, true]) {
    for (const cut of [false, true]) {
      for (const lines of ['data: 1234\n\n', 'event:\ndata\n\n', ': c\n'.repeat(9) + 'data: 1234\n\n']) {
        const feed = (max: number): { framer: SseFramer; frames: string[] } => {
          const { framer, frames } = framerOf({ maxEventBytes: max, bytes })
          const text = `data: 0\n\n${lines}data: 0\n\n`
          const chunks = cut ? text.split('') : [text]
          for (const chunk of chunks) framer.write(Buffer.from(chunk))
          framer.end()
          return { framer, frames }
        }
        t.notOk(feed(10).framer.overflow, 'at the limit')
        const beyond = feed(9)
        t.ok(beyond.framer.overflow, 'above the limit')
        t.equal(beyond.frames.length, 1, 'events before it are delivered, later ones are not')
        t.equal(beyond.framer.pendingBytes, 0, 'no bytes are buffered')
        t.notOk(beyond.framer.truncatedTail)
      }
    }
  }
  t.end()
})

void t.test('a line without an end is dropped at the limit with any chunk sizes', (t) => {
  const { framer, frames } = framerOf({ maxEventBytes: 1000 })
  for (let i = 0; i < 10; i += 1) framer.write(Buffer.from('data: '.padEnd(100, 'x')))
  t.notOk(framer.overflow)
  t.equal(framer.pendingBytes, 1000)
  framer.write(Buffer.from('x'))
  t.ok(framer.overflow)
  framer.write(Buffer.from('\n\ndata: 1\n\n'))
  framer.end()
  t.same(frames, [])
  t.end()
})

void t.test('sixteen MiB in small chunks take linear time', (t) => {
  const { framer, frames } = framerOf()
  const chunk = Buffer.alloc(16 * 1024, 'x')
  const start = process.cpuUsage()
  framer.write(Buffer.from('data: "'))
  for (let i = 0; i < 1023; i += 1) framer.write(chunk)
  framer.write(Buffer.from('"\n\n'))
  const { user, system } = process.cpuUsage(start)
  t.equal(frames.length, 1)
  // One copy per chunk would copy eight gigabytes.
  t.ok(user + system < 1_500_000, `${(user + system) / 1000} ms`)
  t.end()
})

void t.test('in byte mode each frame has its raw text, and other bytes are unframed', (t) => {
  const { framer, frames } = framerOf({ bytes: true })
  framer.write(Buffer.from(': a\n\ndata: 1\n\n: b\n'))
  t.same(frames.splice(0), ['|1|: a\n\ndata: 1\n\n'])
  t.equal(framer.takeUnframed(), ': b\n', 'a comment can be sent before the next frame')
  t.equal(framer.takeUnframed(), '', 'once')
  t.equal(framer.raw, '', 'the raw text is available only while a frame is delivered')
  framer.write(Buffer.from('event: e\n: c\nda'))
  t.equal(framer.takeUnframed(), '', 'a partial event is held')
  framer.write(Buffer.from('ta: "é"\r\n\r'))
  t.same(frames, [])
  framer.write(Buffer.from('\n: d\n\nevent: nothing\n\n: e'))
  t.same(frames.splice(0), ['e|"Ã©"|event: e\n: c\ndata: "Ã©"\r\n\r\n'])
  t.equal(framer.takeUnframed(), ': d\n\nevent: nothing\n\n')
  framer.end()
  t.equal(framer.takeUnframed(), ': e')
  t.notOk(framer.truncatedTail)
  t.end()
})

void t.test('a byte order mark at the start is not passed on, in any chunks', (t) => {
  const mark = Buffer.from('\uFEFF')
  for (const rest of ['data: 1\n\n', ': c\n\ndata: 1\n\n', 'data: \uFEFF1\n\n']) {
    const bytes = Buffer.concat([mark, Buffer.from(rest)])
    for (const size of [1, 2, 3, bytes.length]) {
      const { framer, frames } = framerOf({ bytes: true })
      for (let at = 0; at < bytes.length; at += size) framer.write(bytes.subarray(at, at + size))
      const passed = frames.map((frame) => frame.slice(frame.indexOf('|', 1) + 1)).join('')
      t.equal(Buffer.from(passed, 'latin1').toString(), rest, `${size}`)
    }
  }
  const { framer } = framerOf({ bytes: true })
  framer.write(mark.subarray(0, 2))
  t.notOk(framer.isBetweenEvents)
  framer.end()
  t.equal(framer.takeUnframed(), mark.subarray(0, 2).toString('latin1'), 'a part of a mark is passed on')
  t.end()
})

void t.test('in byte mode a truncated tail is reported and left to the caller', (t) => {
  const { framer, frames } = framerOf({ bytes: true })
  framer.write(Buffer.from('data: 1\n\nevent: e\ndata: {"a"'))
  framer.end()
  t.equal(frames.length, 1)
  t.ok(framer.truncatedTail)
  t.equal(framer.takeUnframed(), 'event: e\ndata: {"a"')
  t.end()
})

void t.test('the end distinguishes a complete tail from a truncated one', (t) => {
  const cases: [string, string[], boolean][] = [
    ['', [], false],
    ['data: {"a":1}\n\n', ['|{"a":1}|'], false],
    ['data: {"a":1}', ['|{"a":1}|'], false],
    ['event: e\ndata: [DONE]', ['e|[DONE]|'], false],
    ['data: {"a":1}\n: comment', ['|{"a":1}|'], false],
    ['data: {"a":', [], true],
    ['data: {"a":1}\ndata: {', [], true],
    ['event: e\n', [], true],
    ['da', [], true],
    ['data: ', [], true],
    [': comm', [], false],
  ]
  for (const [text, expected, truncated] of cases) {
    const { framer, frames } = framerOf()
    framer.write(Buffer.from(text))
    framer.end()
    t.same(frames, expected, JSON.stringify(text))
    t.equal(framer.truncatedTail, truncated, `${JSON.stringify(text)} truncated`)
  }
  t.end()
})

void t.test('an error body that is not an event is recognized in any layout', (t) => {
  const error = { error: { code: 503, message: 'data: over\n\n', status: 'UNAVAILABLE' } }
  const other = { detail: 'out of memory' }
  const first = 'data: {"a":1}\n\n'
  for (const text of [error, other].flatMap((each) => [
    JSON.stringify(each),
    JSON.stringify(each, null, 2),
  ])) {
    for (const end of ['', '\n', '\n\n', '\r\n\r\n']) {
      for (const before of ['', first]) {
        const { framer, frames } = framerOf()
        for (const char of before + text + end) framer.write(Buffer.from(char))
        framer.end()
        const last = frames.at(-1)?.slice(1, -1) ?? ''
        t.same(JSON.parse(last), JSON.parse(text), JSON.stringify(before + text + end))
        t.equal(frames.length, before === '' ? 1 : 2)
        t.notOk(framer.truncatedTail)
      }
    }
  }
  for (const text of ['{"text":"no error"}', '{"error":', 'x\n{"error":1', '[{"error":1}]']) {
    const { framer, frames } = framerOf()
    framer.write(Buffer.from(`${first}${text}`))
    framer.end()
    t.equal(frames.length, 1, text)
    t.ok(framer.truncatedTail, text)
  }
  t.end()
})

void t.test(
  'an error that ends with one line feed, or in the field `error`, is an event before the next',
  (t) => {
    const error = '{"error":{"message":"over"}}'
    for (const [text, name] of [
      [`${error}\n`, ''],
      [`${error}\r\n`, ''],
      [`error: ${error}\n\n`, 'error'],
      [`error:${error}\n\n`, 'error'],
    ] as const) {
      const { framer, frames } = framerOf()
      for (const char of `data: {"a":1}\n\n${text}data: [DONE]\n\n`) framer.write(Buffer.from(char))
      framer.end()
      const found = frames.map((frame) => frame.split('|', 2).join('|'))
      t.same(found, ['|{"a":1}', `${name}|${error}`, '|[DONE]'], text)
    }
    t.end()
  },
)

void t.test('a repeated event name is recognized, and similar names are not', (t) => {
  const known = 'event: e\ndata: 1\n\n'.repeat(3)
  for (const [rest, expected] of [
    ['event: e\ndata: 2\n\n', ['e|2']],
    ['event: e\ndata:  2\n\n', ['e| 2']],
    ['event:e\ndata:2\n\n', ['e|2']],
    ['event: e\r\ndata: 2\r\n\r\n', ['e|2']],
    ['event: e\ndata: 2\r\n\n', ['e|2']],
    ['event: e\ndata: 2\r3\n\n', ['e|2']],
    ['event: e\ndata: 2\n\r\n', ['e|2']],
    ['event: e\ndata: 2\ndata: 3\n\n', ['e|2\n3']],
    ['event: e\ndata: 2\nevent: f\n\n', ['f|2']],
    ['event: e\ndata: \n\n', []],
    ['event: e\ndata: 2\n', ['e|2']],
    ['event: e\nevent: e\ndata: 2\n\n', ['e|2']],
    ['event: ee\ndata: 2\n\n', ['ee|2']],
    ['data: 2\n\nevent: e\ndata: 3\n\n', ['|2', 'e|3']],
    ['data: 2\nevent: e\ndata: 3\n\n', ['e|2\n3']],
    ['event: f\ndata: 2\n\nevent: f\ndata: 3\n\nevent: f\ndata: 4\n\n', ['f|2', 'f|3', 'f|4']],
  ] as [string, string[]][]) {
    for (const bytes of [false, true]) {
      const { framer, frames } = framerOf({ bytes })
      framer.write(Buffer.from(known + rest))
      framer.end()
      const without = frames.map((frame) => frame.split('|').slice(0, 2).join('|'))
      t.same(without, ['e|1', 'e|1', 'e|1', ...expected], JSON.stringify(rest))
      const raw = frames.map((frame) => frame.split('|')[2] ?? '').join('') + framer.takeUnframed()
      t.equal(raw, bytes ? known + rest : '', 'no byte is lost')
    }
  }
  t.end()
})
