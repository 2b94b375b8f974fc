/**
 * Goal: a block has the whole text of its fragments, few or many.
 * Method: streams with few and many fragments of text and of arguments through `Fold`, finished and cut.
 */
import t from 'tap'
import type { ChatEvent } from '../../../src/formats/chat/event.js'
import { Fold } from '../../../src/formats/chat/fold.js'

const COUNTS = [0, 1, 2, 63, 64, 65, 127, 128, 129, 1_000]

/** A fragment that no other place has. */
function fragment(at: number): string {
  return ` ${at}é`
}

function foldOf(count: number): Fold {
  const fragments = Array.from({ length: count }, (_, at) => fragment(at))
  const events: ChatEvent[] = [
    { type: 'start', id: 'r', model: 'm' },
    { type: 'text-start', index: 0 },
    ...fragments.map((text): ChatEvent => ({ type: 'text-delta', index: 0, text })),
    { type: 'text-end', index: 0 },
    { type: 'tool-start', index: 1, id: 'call_1', name: 'look' },
    ...fragments.map((json): ChatEvent => ({ type: 'tool-delta', index: 1, json })),
  ]
  const fold = new Fold()
  for (const event of events) fold.event(event)
  return fold
}

void t.test('a block has the text of all fragments', (t) => {
  for (const count of COUNTS) {
    const whole = Array.from({ length: count }, (_, at) => fragment(at)).join('')
    const blocks = [
      { type: 'text', text: whole, citations: [] },
      { type: 'tool', id: 'call_1', name: 'look', json: whole },
    ]
    const cut = foldOf(count)
    t.same(cut.partialBlocks(), blocks, `${count} fragments, cut`)
    t.equal(cut.reply(), null)
    const finished = foldOf(count)
    finished.event({ type: 'tool-end', index: 1 })
    finished.event({ type: 'finish', reason: 'tool-use', raw: null })
    t.same(finished.reply()?.blocks, blocks, `${count} fragments, finished`)
  }
  t.end()
})
