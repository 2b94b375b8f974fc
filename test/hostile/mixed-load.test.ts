/**
 * Goal: simultaneous hostile requests of every class do not affect ordinary requests, crash no worker and
 * leak no memory.
 * Method: the real program with two workers before two emulators; `npm run bench -- hostile` is the long
 * form, with latencies. Bounds are generous: a busy machine must not fail this test.
 */
import t from 'tap'
import { Children } from '../../bench/processes/children.js'
import { CLASSES } from '../../bench/hostile/hostile-requests.js'
import { runPlan } from '../../bench/hostile/run.js'
import { thisTree } from '../../bench/processes/builds.js'
import { anotherDay } from '../helpers/long-suite.js'

const SECONDS = 5
/**
 * Maximum growth of all processes after the run; a leak of one 31 MB body per request of its class would
 * exceed it.
 */
const MAX_LEFT_MEGABYTES = 300

void t.test('serves ordinary requests beside hostile ones', { skip: anotherDay(0, 6) }, async (t) => {
  const children = new Children()
  t.teardown(() => children.close())
  const result = await runPlan(children, {
    tree: thisTree(),
    classes: [...CLASSES.keys()],
    quietSeconds: 2,
    soloSeconds: 0,
    mixedSeconds: SECONDS,
    connections: CLASSES.size,
    ordinaryPerSecond: 40,
    recoverySeconds: 15,
  })
  const { quiet, mixed } = result
  t.ok(mixed.ordinary.sent > SECONDS * 20, `${mixed.ordinary.sent} ordinary requests`)
  t.strictSame(mixed.ordinary.failures, [], 'no ordinary request fails')
  t.strictSame(result.workersAfter, result.workersBefore, 'no worker ends')
  const growthMegabytes = result.afterMegabytes - quiet.residentMegabytes
  t.ok(growthMegabytes < MAX_LEFT_MEGABYTES, `${Math.round(growthMegabytes)} MB more than before`)
  for (const { name, shots, words } of mixed.classes) {
    t.ok(shots > 0, `${name} was sent`)
    const holes = Object.keys(words).filter((word) => word.startsWith('!') || word === 'no answer')
    t.strictSame(holes, [], `${name} finds no hole`)
  }
})
