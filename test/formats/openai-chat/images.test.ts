/**
 * Goal: images that a model generates are sent beside the content, in whole replies and streams.
 * Method: events are encoded to wire text, and wire text of OpenRouter is decoded to events.
 */
import t from 'tap'
import { arrayOf, objectOf } from '../../../src/base/json.js'
import { Fold } from '../../../src/formats/chat/fold.js'
import type { ChatEvent } from '../../../src/formats/chat/event.js'
import {
  decodeBody,
  decodeFrames,
  encodeEvents,
  framesOf,
  clientCodec,
  expectObject,
  request,
  SEED,
} from './driver.js'

const ONE = 'data:image/png;base64,AAAA'
const TWO = 'https://pictures.example/2.webp'
const EVENTS: ChatEvent[] = [
  { type: 'start', id: 'up', model: 'up' },
  { type: 'text-start', index: 0 },
  { type: 'text-delta', index: 0, text: 'Two pictures:' },
  { type: 'text-end', index: 0 },
  { type: 'image', index: 1, url: ONE },
  { type: 'image', index: 2, url: TWO },
  { type: 'finish', reason: 'stop', raw: 'stop' },
]
const SHOWN = [
  { type: 'image_url', index: 0, image_url: { url: ONE } },
  { type: 'image_url', index: 1, image_url: { url: TWO } },
]

void t.test('a stream has one numbered delta per image; a whole reply has a list', (t) => {
  const chatRequest = request({ stream: true })
  const frames = framesOf(encodeEvents(EVENTS, chatRequest)).filter((data) => data !== '[DONE]')
  const shown = frames
    .flatMap((data) => arrayOf(expectObject(JSON.parse(data))['choices']))
    .flatMap((choice) => arrayOf(objectOf(objectOf(choice)['delta'])['images']))
  t.same(shown, SHOWN)

  const fold = new Fold()
  for (const event of EVENTS) fold.event(event)
  const reply = fold.reply()
  if (reply === null) throw new Error('unfinished')
  const body = expectObject(JSON.parse(clientCodec.encodeReply(reply, request(), SEED).text))
  const message = objectOf(objectOf(arrayOf(body['choices'])[0])['message'])
  t.same(message['images'], SHOWN)
  t.equal(message['content'], 'Two pictures:')
  t.end()
})

void t.test('encoded images are decoded in order', (t) => {
  const read = decodeFrames(framesOf(encodeEvents(EVENTS, request({ stream: true }))))
  t.equal(read.breach, null)
  t.same(
    read.events.flatMap((event) => (event.type === 'image' ? [event.url] : [])),
    [ONE, TWO],
  )
  const whole = decodeBody({
    choices: [
      {
        index: 0,
        finish_reason: 'stop',
        message: { role: 'assistant', content: 'A', images: [...SHOWN, { type: 'image_url' }, 7] },
      },
    ],
  })
  t.equal(whole.breach, null)
  t.same(
    whole.reply?.blocks.map((block) => (block.type === 'image' ? block.url : block.type)),
    ['text', ONE, TWO],
    'an image without a URL is ignored',
  )
  t.end()
})

void t.test('an image counts as content, after which no retry happens', (t) => {
  const read = decodeFrames([
    JSON.stringify({ choices: [{ index: 0, delta: { images: [SHOWN[0]] } }] }),
    JSON.stringify({ choices: [{ index: 0, delta: { content: 'after' }, finish_reason: 'stop' }] }),
  ])
  t.same(
    read.events.map(({ type }) => type),
    ['start', 'image', 'text-start', 'text-delta', 'text-end', 'finish'],
  )
  t.end()
})
