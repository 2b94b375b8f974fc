/**
 * Goal: request ids are unique version 7 UUIDs that sort by time.
 * Method: 50,000 ids, with many refills of the pool of random bytes.
 */
import t from 'tap'
import { newRequestId } from '../../src/http/request-id.js'

const UUID7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

void t.test('50,000 ids of one millisecond are different and well-formed', (t) => {
  const ids = new Set<string>()
  const variants = new Set<string>()
  for (let i = 0; i < 50_000; i += 1) {
    const id = newRequestId(1_700_000_000_000)
    if (!UUID7.test(id)) t.fail(id)
    ids.add(id)
    variants.add(id.charAt(19))
  }
  t.equal(ids.size, 50_000)
  t.same([...variants].sort(), ['8', '9', 'a', 'b'])
  t.end()
})

void t.test('ids start with the time and sort by it', (t) => {
  const times = [0, 1, 1_700_000_000_000, 1_700_000_000_001, 2 ** 48 - 1]
  const ids = times.map((time) => newRequestId(time))
  t.same(ids, [...ids].sort())
  for (const [at, id] of ids.entries()) {
    t.equal(parseInt(id.replaceAll('-', '').slice(0, 12), 16), times[at])
  }
  t.end()
})
