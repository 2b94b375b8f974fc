/**
 * Goal: guessing is slow, the owner is never locked out, and the memory for it is bounded.
 * Method: a clock that is set by hand.
 */
import t from 'tap'
import { Throttle } from '../../src/dashboard/throttle.js'
import { GatewayError } from '../../src/errors.js'

function bench() {
  const clock = { ms: 1_000_000 }
  const throttle = new Throttle(() => clock.ms)
  /** Seconds to wait; 0 where the attempt counts. */
  const wait = (name: string, address: string, device: string | null = null): number => {
    try {
      throttle.attempt(name, address, device)
      return 0
    } catch (error) {
      if (error instanceof GatewayError && error.kind === 'rate_limited') {
        return error.wire.retryAfterSeconds ?? -1
      }
      throw error
    }
  }
  return { clock, throttle, wait }
}

void t.test('five guesses at an account from a network, then one in ten seconds', (t) => {
  const { clock, wait } = bench()
  for (let at = 0; at < 5; at += 1) t.equal(wait('ada', `10.1.1.${at}`), 0)
  t.equal(wait('ada', '10.1.1.9'), 10)
  t.equal(wait('ada', '::ffff:10.1.1.9'), 10, 'however the address is written')
  clock.ms += 9_999
  t.equal(wait('ada', '10.1.1.9'), 1, 'a refused attempt costs nothing')
  clock.ms += 1
  t.equal(wait('ada', '10.1.1.9'), 0)
  t.equal(wait('ada', '10.1.1.9'), 10)
  t.equal(wait('bob', '10.1.1.9'), 0, 'another account')
  t.end()
})

void t.test('nobody is locked out by somebody else’s guesses', (t) => {
  const { throttle, wait } = bench()
  for (let at = 0; at < 9; at += 1) wait('ada', '10.1.1.1')
  t.equal(wait('ada', '10.1.2.1'), 0, 'from another network')
  t.equal(wait('ada', '10.1.1.2', 'known device'), 0, 'from a device that signed in before')
  throttle.forgive('ada', '10.1.1.1', null)
  t.equal(wait('ada', '10.1.1.1'), 0, 'and a right password forgives')
  t.end()
})

void t.test('many accounts from one address, and all together', (t) => {
  const { clock, throttle, wait } = bench()
  let first = -1
  for (let at = 0; first === -1 && at < 100; at += 1) if (wait(`a${at}`, '10.0.0.1') > 0) first = at
  t.equal(first, 50)
  t.throws(() => throttle.step('10.0.0.1'), { message: /Too many attempts/ })
  const six = '2001:db8:1:2'
  for (let at = 0; at < 50; at += 1) wait(`b${at}`, `${six}::${at}`)
  t.ok(wait('b', `${six}:9:9:9:9`) > 0, 'a /64 is one customer')
  t.equal(wait('b', '2001:db8:1:3::1'), 0)
  clock.ms += 60_000
  let passed = 0
  for (let at = 0; at < 500; at += 1)
    if (wait(`c${at}`, `10.${at >> 8}.${at & 255}.1`) === 0) passed += 1
  t.equal(passed, 200)
  t.end()
})

void t.test('what is remembered is bounded', (t) => {
  const { clock, throttle, wait } = bench()
  let refused = 0
  for (let at = 0; at < 15_000; at += 1) {
    clock.ms += 25
    refused += wait(`x${at}`, `11.${at >> 16}.${(at >> 8) & 255}.${at & 255}`)
  }
  t.equal(refused, 0)
  t.equal(throttle.size, 20_000)
  t.end()
})
