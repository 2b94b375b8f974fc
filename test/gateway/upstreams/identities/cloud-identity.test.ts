/**
 * Goal: credentials are refreshed once for each expiry, before they expire, in the background; a failing,
 * hanging or wrong token endpoint does not take valid ones away, and gets requests with a back-off.
 * Method: a source and a clock of the test; time passes only in `pass`.
 */
import t from 'tap'
import type { Issued } from '../../../../src/gateway/upstreams/identities/credential-sources.js'
import {
  CloudIdentity,
  type IdentityClock,
} from '../../../../src/gateway/upstreams/identities/cloud-identity.js'

/** Time passes only in `pass` and `sleep`. */
class ManualClock implements IdentityClock {
  private nowMs = 1_000_000
  private timers: { atMs: number; due: () => void }[] = []

  now(): number {
    return this.nowMs
  }

  random(): number {
    return 0.5
  }

  after(ms: number, due: () => void): () => void {
    const timer = { atMs: this.nowMs + ms, due }
    this.timers.push(timer)
    return () => {
      this.timers = this.timers.filter((other) => other !== timer)
    }
  }

  /** The machine sleeps: time passes and no timer runs. */
  sleep(ms: number): void {
    this.nowMs += ms
  }

  async pass(ms: number): Promise<void> {
    const endMs = this.nowMs + ms
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve))
      const next = this.timers.toSorted((one, other) => one.atMs - other.atMs)[0]
      if (next === undefined || next.atMs > endMs) break
      this.nowMs = Math.max(this.nowMs, next.atMs)
      this.timers = this.timers.filter((other) => other !== next)
      next.due()
    }
    this.nowMs = endMs
    await new Promise((resolve) => setImmediate(resolve))
  }
}

type Answer = 'ok' | 'fail' | 'hang' | 'lie' | 'empty' | 'broken' | 'cached'

function scene(lifeMs = 3_600_000) {
  const clock = new ManualClock()
  const found = { requests: 0, answer: 'ok' as Answer, reasons: [] as string[], refreshed: 0 }
  let last: Issued | null = null
  const source = (): Promise<Issued> => {
    found.requests += 1
    const token = `token-${found.requests}`
    const expiresAtMs = clock.now() + (found.answer === 'lie' ? -1 : lifeMs)
    const issued = (text: string): Issued => ({
      credentials: { token: text, quotaProject: null },
      expiresAtMs,
    })
    if (found.answer === 'fail') {
      return Promise.reject(new Error('AADSTS7000215: Invalid client secret for app 1234'))
    }
    if (found.answer === 'hang') return new Promise(() => undefined)
    if (found.answer === 'empty') return Promise.resolve(issued(''))
    if (found.answer === 'broken') return Promise.resolve(issued('a\nb'))
    last = found.answer === 'cached' && last !== null ? last : issued(token)
    return Promise.resolve(last)
  }
  const identity = new CloudIdentity({ cloud: 'azure', upstream: 'azure' }, source, clock)
  const watch = {
    refreshed: () => void (found.refreshed += 1),
    failed: (_identity: CloudIdentity, reason: string) => void found.reasons.push(reason),
  }
  const token = async (): Promise<string> => {
    const credentials = await identity.get(2_000)
    return 'token' in credentials ? credentials.token : ''
  }
  return { clock, found, identity, watch, token }
}

void t.test('1,000 requests that wait make one request for a token', async (t) => {
  const { clock, found, token } = scene()
  const tokens = await Promise.all(Array.from({ length: 1_000 }, token))
  t.same(new Set(tokens), new Set(['token-1']))
  t.equal(found.requests, 1)
  clock.sleep(86_400_000)
  const later = await Promise.all(Array.from({ length: 1_000 }, token))
  t.same(new Set(later), new Set(['token-2']), 'after the machine slept past the expiry')
  t.equal(found.requests, 2)
})

void t.test('valid credentials are returned without a promise', async (t) => {
  const { identity, watch, clock } = scene()
  identity.start(watch)
  await clock.pass(0)
  t.notOk(identity.get(2_000) instanceof Promise)
})

void t.test('24 hours of expiries: one refresh for each, and no request fails', async (t) => {
  for (const lifeMs of [3_600_000, 900_000, 60_000]) {
    const { identity, watch, clock, found, token } = scene(lifeMs)
    identity.start(watch)
    await clock.pass(0)
    let waits = 0
    for (let minute = 0; minute < 24 * 60; minute += 1) {
      await clock.pass(60_000)
      if (identity.get(2_000) instanceof Promise) waits += 1
      t.match(await token(), /^token-/)
    }
    t.equal(waits, 0, `${lifeMs}: no request waits`)
    const perRefreshMs = lifeMs - Math.min(300_000, lifeMs * 0.2) * 1.1
    const expected = Math.ceil(86_400_000 / perRefreshMs)
    t.ok(Math.abs(found.requests - expected) <= 2, `${lifeMs}: ${found.requests} of ${expected}`)
    identity.close()
  }
})

void t.test('a failed refresh keeps valid credentials, and retries with a back-off', async (t) => {
  const { identity, watch, clock, found, token } = scene()
  identity.start(watch)
  await clock.pass(0)
  found.answer = 'fail'
  await clock.pass(3_300_000)
  t.equal(await token(), 'token-1')
  t.match(identity.state, /^refresh fails, valid for \d+ s$/)
  t.same(new Set(found.reasons), new Set(['AADSTS7000215']), 'ids of a tenant are not logged')
  const before = found.requests
  await clock.pass(60_000)
  t.ok(found.requests - before <= 3, 'at most one request in 30 s')
  await clock.pass(300_000)
  await t.rejects(token(), { code: 'NO_CREDENTIAL' })
  t.equal(identity.state, 'refresh fails, no valid credentials')
  const failing = found.requests
  await Promise.allSettled(Array.from({ length: 100 }, token))
  t.equal(found.requests, failing, 'requests do not ask during the back-off')
  found.answer = 'ok'
  await clock.pass(30_000)
  t.match(await token(), /^token-/)
  t.equal(identity.state, 'ok')
})

void t.test('no reply and a reply without a usable token are failures, not loops', async (t) => {
  for (const answer of ['hang', 'lie', 'empty', 'broken'] as const) {
    const { identity, watch, clock, found, token } = scene()
    found.answer = answer
    identity.start(watch)
    const waiting = t.rejects(token(), { code: 'NO_CREDENTIAL' }, answer)
    await clock.pass(2_000)
    await waiting
    await clock.pass(60_000)
    t.ok(found.requests <= 8, `${answer}: ${found.requests} requests in a minute`)
    t.notOk(identity.isValid)
    identity.close()
  }
})

void t.test('a cached token of a metadata server is not requested in a loop', async (t) => {
  const { identity, watch, clock, found } = scene()
  identity.start(watch)
  await clock.pass(0)
  found.answer = 'cached'
  await clock.pass(3_350_000)
  t.ok(found.requests > 1 && found.requests < 10, `${found.requests} requests`)
  found.answer = 'ok'
  await clock.pass(200_000)
  t.notOk(identity.get(2_000) instanceof Promise)
})

void t.test('credentials that the platform refuses are replaced once a minute', async (t) => {
  const { identity, watch, clock, found } = scene()
  identity.start(watch)
  await clock.pass(100)
  const sentAtMs = clock.now()
  await clock.pass(100)
  const renewed = await Promise.all(Array.from({ length: 50 }, () => identity.renew(sentAtMs, 2_000)))
  t.same(new Set(renewed), new Set([true]))
  t.equal(found.requests, 2)
  t.equal(await identity.renew(clock.now() + 1, 2_000), false)
  t.equal(found.requests, 2)
  await clock.pass(61_000)
  t.equal(await identity.renew(clock.now(), 2_000), true)
  t.equal(found.requests, 3)
})

void t.test('a closed identity requests nothing more', async (t) => {
  const { identity, watch, clock, found } = scene()
  identity.start(watch)
  await clock.pass(0)
  identity.close()
  await clock.pass(7_200_000)
  t.equal(found.requests, 1)
})
