/**
 * Goal: the parts of a paused answer reach the client as one answer.
 * Method: events of two or more parts through `Joined`, `Grammar` and `Fold`.
 */
import t from 'tap'
import type { ChatEvent } from '../../src/chat/event.js'
import { Fold } from '../../src/chat/reply/fold.js'
import { Grammar } from '../../src/chat/grammar.js'
import { JoinedReply } from '../../src/chat/reply/join-replies.js'
import { addUsage, type Usage } from '../../src/chat/usage.js'

interface Heard {
  readonly events: ChatEvent[]
  readonly fold: Fold
  readonly grammar: Grammar
  readonly joined: JoinedReply
}

function listen(maxOutput?: number): Heard {
  const events: ChatEvent[] = []
  const fold = new Fold()
  const grammar = new Grammar({
    event(event) {
      events.push(event)
      fold.event(event)
    },
  })
  return { events, fold, grammar, joined: new JoinedReply(grammar, maxOutput) }
}

/** A part of one text block and one call; `paused` where another is to follow. */
function part(text: string, usage: Usage, paused: boolean): ChatEvent[] {
  const end: ChatEvent = {
    type: 'finish',
    reason: 'pause',
    raw: 'pause_turn',
    resume: { at: text },
  }
  return [
    { type: 'start', id: `id-${text}`, model: 'm' },
    { type: 'usage', usage: { input: usage.input ?? 0 } },
    { type: 'text-start', index: 0 },
    { type: 'text-delta', index: 0, text },
    { type: 'text-end', index: 0 },
    { type: 'tool-start', index: 1, id: 'call_0', name: 'f' },
    { type: 'tool-delta', index: 1, json: '{}' },
    { type: 'tool-end', index: 1 },
    { type: 'usage', usage },
    paused ? end : { type: 'finish', reason: 'tool-use', raw: 'tool_use' },
  ]
}

function say(heard: Heard, events: readonly ChatEvent[]): void {
  for (const event of events) heard.joined.event(event)
}

void t.test('one start, blocks counted on, usage added, one finish', (t) => {
  const heard = listen()
  say(heard, part('one', { input: 10, output: 5, cacheRead: 4 }, true))
  t.same(heard.joined.resume, { at: 'one' })
  t.equal(heard.grammar.ended, false, 'a pause is no end')
  heard.joined.startNextPart()
  t.equal(heard.joined.resume, null)
  say(heard, part('two', { input: 20, output: 7, reasoning: 2 }, false))
  t.equal(heard.grammar.breach, null)
  const reply = heard.fold.reply()
  t.equal(reply?.id, 'id-one')
  t.equal(reply?.reason, 'tool-use')
  t.same(reply?.usage, { input: 30, output: 12, cacheRead: 4, reasoning: 2 })
  t.same(
    reply?.blocks.map((block) => (block.type === 'text' ? block.text : block.type)),
    ['one', 'tool', 'two', 'tool'],
  )
  t.equal(heard.events.filter(({ type }) => type === 'start').length, 1)
  t.equal(heard.events.filter(({ type }) => type === 'finish').length, 1)
  t.end()
})

void t.test('calls of two parts never share an id', (t) => {
  const heard = listen()
  say(heard, part('one', {}, true))
  heard.joined.startNextPart()
  say(heard, part('two', {}, false))
  const ids = heard.events.flatMap((event) => (event.type === 'tool-start' ? [event.id] : []))
  t.same(ids, ['call_0', 'call_0_p2'])
  t.end()
})

void t.test('six parts at the most; the last one’s reason is the answer’s', (t) => {
  const heard = listen()
  let asked = 0
  for (let at = 0; at < 20 && !heard.grammar.ended; at += 1) {
    if (at > 0) heard.joined.startNextPart()
    say(heard, part(`${at}`, { output: 1 }, true))
    if (heard.joined.resume !== null) asked += 1
  }
  t.equal(asked, 5)
  t.equal(heard.fold.reply()?.reason, 'pause')
  t.equal(heard.fold.reply()?.usage.output, 6)
  t.end()
})

void t.test('the client’s own limit holds for all parts together', (t) => {
  const heard = listen(10)
  say(heard, part('one', { output: 6 }, true))
  t.not(heard.joined.resume, null)
  heard.joined.startNextPart()
  say(heard, part('two', { output: 4 }, true))
  t.equal(heard.joined.resume, null)
  t.equal(heard.fold.reply()?.reason, 'length')
  t.end()
})

void t.test('an error in a later part ends the answer with what was reported', (t) => {
  const heard = listen()
  say(heard, part('one', { input: 3, output: 6 }, true))
  heard.joined.startNextPart()
  const error = { kind: 'upstream_truncated', message: 'cut' } as const
  say(heard, [{ type: 'error', error }])
  t.equal(heard.fold.error?.kind, 'upstream_truncated')
  t.same(heard.fold.partialUsage(), { input: 3, output: 6 })
  t.end()
})

void t.test('counts that nobody reported stay absent in a sum', (t) => {
  t.same(addUsage({ input: 1 }, { output: 2, cacheWrite: 3 }), {
    input: 1,
    output: 2,
    cacheWrite: 3,
  })
  t.same(addUsage({}, {}), {})
  t.end()
})
