/**
 * Goal: while the gateway reads a large reply, it holds at most four times the bytes of the reply.
 * Method: the memory is measured in each turn of the event loop. If it is the most so far, the garbage is
 * collected and it is measured again: collecting in each turn takes a minute of CPU time. Each second day has
 * one of the replies, the long suite all.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { anotherDay, isToday } from '../helpers/long-suite.js'
import { openReplyStage } from './reply-stage.js'

const MOST = 4
t.setTimeout(170_000)

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Smaller differences are not measured. */
const STEP_BYTES = 1024 * 1024

function usedBytes(): number {
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

function heldBytes(): number {
  collect()
  return usedBytes()
}

void t.test('the memory of large replies', { skip: anotherDay(0, 2) }, async (t) => {
  const { reply } = await openReplyStage(t)
  await reply('an event of 15 MiB of numbers, another format')
  const replies = [
    '60 MiB of nested lists, the same format',
    '30 MiB of empty lists, another format',
    'an image of 12 MB, another format',
    '24 MiB of embeddings',
    'an event of 15 MiB of escaped quotes, the same format',
  ]
  for (const [index, name] of replies.entries()) {
    if (!isToday(2 * index, 2 * replies.length)) continue
    for (let round = 0; round < 3; round += 1) collect()
    const before = heldBytes()
    let mostBytes = 0
    const measure = (): void => {
      if (usedBytes() > mostBytes + STEP_BYTES) mostBytes = Math.max(mostBytes, heldBytes())
    }
    const timer = setInterval(measure, 10)
    const { sourceBytes, status, head } = await reply(name)
    clearInterval(timer)
    const times = (mostBytes - before) / sourceBytes
    t.ok(status === 200 || head.includes('too complex'), `${name}: ${head.slice(0, 200)}`)
    t.ok(times <= MOST, `${name}: ${times.toFixed(2)} times the body`)
  }
})
