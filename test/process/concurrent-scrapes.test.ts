/**
 * Goal: all concurrent scrapes get a complete reply without delay.
 * Method: ten requests for `/metrics` at the same time, on the real program with two workers.
 */
import t from 'tap'
import { stopwatch } from '../helpers/stopwatch.js'
import { startServe } from './program.js'

const AT_ONCE = 10
/** The primary waits a second for the metrics of a worker; no scrape may take that long. */
const GIVEN_UP_MS = 1000

void t.test('ten concurrent scrapes share one collection', async (t) => {
  const served = await startServe(t)
  for (let count = 0; count < 4; count += 1) t.equal((await served.chat()).status, 200)
  await served.ops('/metrics')
  for (let round = 0; round < 3; round += 1) {
    const scrapes = Array.from({ length: AT_ONCE }, async () => {
      const watch = stopwatch()
      const { status, text } = await served.ops('/metrics')
      return { status, text, ms: watch() }
    })
    for (const { status, text, ms } of await Promise.all(scrapes)) {
      t.equal(status, 200)
      t.match(
        text,
        /^sluice_requests_total\{[^\n]*outcome="ok"\} 4$/m,
        'the metrics of both workers are included',
      )
      t.ok(ms < GIVEN_UP_MS, `${ms.toFixed()} ms`)
    }
  }
})
