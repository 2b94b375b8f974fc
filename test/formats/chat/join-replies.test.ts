/**
 * Goal: the parts of a paused reply are joined to one reply.
 * Method: events of two or more parts through `JoinedReply`, `Grammar` and `Fold`.
 */
import t from 'tap'
import type { ChatEvent } from '../../../src/formats/chat/event.js'
import { Fold } from '../../../src/formats/chat/fold.js'
import { Grammar } from '../../../src/formats/chat/grammar.js'
import { JoinedReply } from '../../../src/formats/chat/join-replies.js'
import { addUsage, type Usage } from '../../../src/formats/chat/usage.js'

interface Output {
  readonly events: ChatEvent[]
  readonly fold: Fold
  readonly grammar: Grammar
  readonly joined: JoinedReply
}

function joinParts(maxOutput?: number): Output {
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

/** A part with one text block and one call. `paused`: another part follows. */
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

function emit(output: Output, events: readonly ChatEvent[]): void {
  for (const event of events) output.joined.event(event)
}

void t.test('joined parts have one start, consecutive block indexes, summed usage and one finish', (t) => {
  const output = joinParts()
  emit(output, part('one', { input: 10, output: 5, cacheRead: 4 }, true))
  t.same(output.joined.resume, { at: 'one' })
  t.equal(output.grammar.ended, false, 'a pause is not the end')
  output.joined.startNextPart()
  t.equal(output.joined.resume, null)
  emit(output, part('two', { input: 20, output: 7, reasoning: 2 }, false))
  t.equal(output.grammar.breach, null)
  const reply = output.fold.reply()
  t.equal(reply?.id, 'id-one')
  t.equal(reply?.reason, 'tool-use')
  t.same(reply?.usage, { input: 30, output: 12, cacheRead: 4, reasoning: 2 })
  t.same(
    reply?.blocks.map((block) => (block.type === 'text' ? block.text : block.type)),
    ['one', 'tool', 'two', 'tool'],
  )
  t.equal(output.events.filter(({ type }) => type === 'start').length, 1)
  t.equal(output.events.filter(({ type }) => type === 'finish').length, 1)
  t.end()
})

void t.test('calls of different parts have different ids', (t) => {
  const output = joinParts()
  emit(output, part('one', {}, true))
  output.joined.startNextPart()
  emit(output, part('two', {}, false))
  const ids = output.events.flatMap((event) => (event.type === 'tool-start' ? [event.id] : []))
  t.same(ids, ['call_0', 'call_0_p2'])
  t.end()
})

void t.test('at most six parts are joined; the reason is that of the last one', (t) => {
  const output = joinParts()
  let continued = 0
  for (let at = 0; at < 20 && !output.grammar.ended; at += 1) {
    if (at > 0) output.joined.startNextPart()
    emit(output, part(`${at}`, { output: 1 }, true))
    if (output.joined.resume !== null) continued += 1
  }
  t.equal(continued, 5)
  t.equal(output.fold.reply()?.reason, 'pause')
  t.equal(output.fold.reply()?.usage.output, 6)
  t.end()
})

void t.test("the client's token limit applies to all parts together", (t) => {
  const output = joinParts(10)
  emit(output, part('one', { output: 6 }, true))
  t.not(output.joined.resume, null)
  output.joined.startNextPart()
  emit(output, part('two', { output: 4 }, true))
  t.equal(output.joined.resume, null)
  t.equal(output.fold.reply()?.reason, 'length')
  t.end()
})

void t.test('an error in a later part ends the reply with the usage so far', (t) => {
  const output = joinParts()
  emit(output, part('one', { input: 3, output: 6 }, true))
  output.joined.startNextPart()
  const error = { kind: 'upstream_truncated', message: 'cut' } as const
  emit(output, [{ type: 'error', error }])
  t.equal(output.fold.error?.kind, 'upstream_truncated')
  t.same(output.fold.partialUsage(), { input: 3, output: 6 })
  t.end()
})

void t.test('counts that no part reported are absent in the sum', (t) => {
  t.same(addUsage({ input: 1 }, { output: 2, cacheWrite: 3 }), {
    input: 1,
    output: 2,
    cacheWrite: 3,
  })
  t.same(addUsage({}, {}), {})
  t.end()
})
