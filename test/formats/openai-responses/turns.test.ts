/**
 * Goal: a model's turn is sent back to it unchanged: the same calls and text, and its reasoning with the same
 * encrypted content and id, before the items that followed it.
 * Method: pairs of recordings of one conversation; the reply of the first is decoded and encoded, and
 * compared with the items in the request of the second.
 */
import t from 'tap'
import type { Reply } from '../../../src/formats/chat/fold.js'
import { arrayOf, objectOf, type JsonObject } from '../../../src/base/json.js'
import type { Message } from '../../../src/formats/chat/request.js'
import { fixtures, skipWithoutFixtures, type Recording } from '../../helpers/fixtures.js'
import { encode, framesOf, decodeWhole, decodeStream, expectString } from './driver.js'

const all = fixtures({ provider: 'openai', api: 'responses', status: 200 })

function answerOf({ stream, response_body: body }: Recording): Reply | null {
  if (stream) return decodeStream(framesOf(body)).reply
  return decodeWhole(objectOf(JSON.parse(body))).reply
}

/** The reply as items that a client sends back in full. */
function turnOf({ blocks }: Reply): Message {
  const turn: Extract<Message, { role: 'assistant' }> = {
    role: 'assistant',
    index: 1,
    parts: [],
    toolCalls: [],
  }
  for (const block of blocks) {
    const state = 'signature' in block ? { signature: block.signature ?? '' } : {}
    if (block.type === 'text') turn.parts.push({ type: 'text', text: block.text })
    if (block.type === 'thinking') {
      turn.parts.push({
        type: 'thinking',
        text: block.text,
        ...state,
        origin: 'openai-responses',
      })
    }
    if (block.type === 'tool') {
      turn.toolCalls.push({ id: block.id, name: block.name, arguments: block.json })
    }
  }
  return turn
}

/** The members of an item that must be the same. */
function gist(item: JsonObject): unknown {
  switch (item.type) {
    case 'reasoning':
      return {
        id: item.id,
        sealed: item.encrypted_content,
        summary: arrayOf(item.summary)
          .map((part) => expectString(objectOf(part).text))
          .join('\n\n'),
      }
    case 'function_call':
      // One recorded client serialises the arguments again.
      return {
        id: item.call_id,
        name: item.name,
        json: JSON.parse(expectString(item.arguments)) as unknown,
      }
    default:
      return arrayOf(item.content)
        .map((part) => expectString(objectOf(part).text))
        .join('')
  }
}

function sealOf({ id, encrypted_content: sealed }: JsonObject): string {
  return typeof sealed === 'string' ? `${expectString(id)}:${sealed}` : 'none'
}

/** The items of a request that repeat this reply; empty if the request does not follow it. */
function itemsSentBack(request: JsonObject, reply: Reply): JsonObject[] {
  const ids = new Set(reply.blocks.flatMap((block) => (block.type === 'tool' ? [block.id] : [])))
  const seals = new Set(
    reply.blocks.flatMap((block) => (block.type === 'thinking' ? [block.signature ?? ''] : [])),
  )
  return arrayOf(request.input)
    .map(objectOf)
    .filter((item) =>
      item.type === 'function_call'
        ? ids.has(expectString(item.call_id))
        : item.type === 'reasoning' && seals.has(sealOf(item)),
    )
}

void t.test('every recorded turn with calls is sent back unchanged', skipWithoutFixtures(), (t) => {
  const tally = { turns: 0, calls: 0, sealed: 0 }
  for (const first of all) {
    const [, stem = '', number = ''] = /^(.*)\.(\d+)$/.exec(first.name) ?? []
    const next = all.find(({ name }) => name === `${stem}.${Number(number) + 1}`)
    const reply = answerOf(first)
    if (next === undefined || reply === null) continue
    const expected = itemsSentBack(objectOf(next.request_body), reply)
    if (!expected.some(({ type }) => type === 'function_call')) continue
    const { body } = encode({ messages: [turnOf(reply)] })
    const encoded = arrayOf(body.input).map(objectOf)
    const encodedItems = encoded.filter(({ type }) => type === 'function_call' || type === 'reasoning')
    t.same(encodedItems.map(gist), expected.map(gist), first.name)
    tally.turns += 1
    tally.calls += expected.filter(({ type }) => type === 'function_call').length
    tally.sealed += expected.filter(({ type }) => type === 'reasoning').length
  }
  t.comment(JSON.stringify(tally))
  t.ok(tally.turns >= 40)
  t.end()
})
