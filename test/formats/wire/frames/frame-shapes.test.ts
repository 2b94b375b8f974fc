/**
 * Goal: a frame with the shape of an earlier one is recognized and read to the same value as by `JSON.parse`;
 * any other frame is not. Method: frames of several vendors, unchanged and with seeded changes of bytes,
 * compared with `JSON.parse`.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { isObject } from '../../../../src/base/json.js'
import { packageFile } from '../../../../src/config/package-file.js'
import { FrameShapes } from '../../../../src/formats/wire/frames/frame-shapes.js'
import { seededRoll } from '../../../properties/transcript-streams.js'

const SLOT = /"(?:(?:content|text|id)"\s*:\s*"|\w+"\s*:\s*(?=[-\d]))/g

function frame(content: string, at: number | string = 1, id = 'a'): string {
  const choice = `{"index":0,"delta":{"content":${JSON.stringify(content)}},"finish_reason":null}`
  return `{"id":"${id}","created":1,"n":${at},"choices":[${choice}],"usage":null}`
}

/** Shapes of frames whose content and `n` differ. */
function knownShapes(): FrameShapes<string> {
  const shapes = new FrameShapes<string>(SLOT)
  shapes.add(frame('Hi', 1), 'note')
  shapes.add(frame(' all', 2), 'note')
  return shapes
}

void t.test('a frame is recognized with any values in its variable parts', (t) => {
  const shapes = knownShapes()
  const numbers = [0, -0.5, 12, '1e5', '-0', '12345678901234567890', '0.10']
  const texts = ['', 'Hi', '"\\\n\u2028', '{"usage":{}}', '"n":5', '\u{1F600}', '\uD83D', '12 345']
  for (const [at, content] of texts.entries()) {
    const data = frame(content, numbers[at] ?? 7)
    t.equal(shapes.find(data), 'note', `text ${at}`)
    t.same(shapes.read(data), JSON.parse(data), `text ${at}`)
  }
  const good = frame('Hi')
  for (const other of [
    good.replace('null}', '"stop"}'),
    good.replace('"usage":null', '"usage":{}'),
    good.replace('"index":0', '"index":1'),
    good.replace('"created":1', '"created":2'),
    good.replace('"id":"a"', '"id":"b"'),
    good.slice(0, -1),
    `${good} `,
    good.replace('"Hi"', '"Hi'),
    good.replace('"Hi"', '"\\x"'),
    good.replace('"Hi"', '"\\u12"'),
    good.replace('"Hi"', '"\n"'),
    good.replace('"Hi"', 'null'),
    ...['', '-', '01', '1.', '.5', '1e', '+1', 'null', '"1"', '1 2', '0x1'].map((n) => frame('Hi', n)),
    '',
  ]) {
    t.equal(shapes.find(other), null, JSON.stringify(other))
    t.equal(shapes.read(other), null)
  }
  t.end()
})

void t.test('a value that never differed is part of the shape until it differs', (t) => {
  const shapes = knownShapes()
  t.equal(shapes.find(frame('x', 1, 'b')), null)
  shapes.add(frame('x', 1, 'b'), 'note')
  const data = frame('y', 3, 'c')
  t.equal(shapes.find(data), 'note')
  t.same(shapes.read(data), JSON.parse(data))
  t.end()
})

void t.test('the number of shapes is limited, also for an upstream that never repeats one', (t) => {
  const shapes = new FrameShapes<string>(SLOT)
  const other = (at: number): string => frame('x').replace('"usage"', `"usage${at}"`)
  for (let at = 0; at < 5; at += 1) shapes.add(other(at), '')
  t.equal(shapes.find(other(0)), null, 'the oldest shape is evicted')
  t.equal(shapes.find(other(1)), '')
  for (let at = 5; at < 30; at += 1) shapes.add(other(at), '')
  t.equal(shapes.find(other(29)), null)
  t.end()
})

void t.test('a long frame is not added', (t) => {
  const shapes = new FrameShapes<string>(SLOT)
  const long = frame('x'.repeat(8_192))
  shapes.add(long, '')
  t.equal(shapes.find(long), null)
  t.end()
})

void t.test('a frame with a duplicate member is left to the parser', (t) => {
  const shapes = new FrameShapes<string>(SLOT)
  const withDuplicate = (text: string): string => `{"text":"a${text}","text":"${text}"}`
  shapes.add(withDuplicate('one'), '')
  shapes.add(withDuplicate('two'), '')
  t.equal(shapes.find(withDuplicate('three')), '')
  t.equal(shapes.read(withDuplicate('three')), null)
  t.end()
})

void t.test('a name of Object.prototype is an ordinary name', (t) => {
  const shapes = new FrameShapes<string>(SLOT)
  const odd = (n: number): string => `{"__proto__":${n},"constructor":${n}}`
  for (const n of [1, 2]) shapes.add(odd(n), '')
  t.equal(shapes.find(odd(3)), '')
  t.equal(JSON.stringify(shapes.read(odd(3))), odd(3))
  t.end()
})

void t.test('recognized frames are read like by the parser, with any byte changed', (t) => {
  const roll = seededRoll(11)
  let read = 0
  for (const name of [
    'gemini/text',
    'gemini/thinking',
    'openai-chat/plain-text',
    'openai-chat/tool-single',
  ]) {
    const text = readFileSync(packageFile(`test/transcripts/${name}.stream.sse`), 'utf8')
    const frames = [...text.matchAll(/^data: (\{.*\})\s*$/gm)].map((match) => match[1] ?? '')
    const shapes = new FrameShapes<string>(SLOT)
    for (let round = 0; round < 800; round += 1) {
      const good = frames[roll(frames.length)] ?? ''
      const at = roll(good.length)
      const bad = good.slice(0, at) + String.fromCharCode(roll(128)) + good.slice(at + roll(3))
      for (const data of [good, bad]) {
        const value = parsed(data)
        if (shapes.find(data) !== null) {
          const known = shapes.read(data)
          if (known === null) continue
          read += 1
          if (JSON.stringify(known) !== JSON.stringify(value)) t.same(known, value, data)
        } else if (isObject(value)) shapes.add(data, '')
      }
    }
  }
  t.ok(read > 500, `${read} were read`)
  t.end()
})

function parsed(data: string): unknown {
  try {
    return JSON.parse(data)
  } catch {
    return null
  }
}
