/**
 * Goal: a flood of sign-ins costs no request its speed: a few are looked at, the rest is told to come back,
 * and requests of the API go on as before.
 * Method: the program as it is served, a steady load on the API, and as many people at once as
 * `SLUICE_SIGN_INS` says (200) with wrong passwords. With 1,000 on a quiet machine the API's p99 is held
 * to twice what it was.
 */
import { cpus, loadavg } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { Load, percentile } from '../outage/load.js'
import { EMAIL, PASSWORD, startServe, until } from '../process/program.js'
import { Browser } from './stage.js'

const SIGN_INS = Number(process.env['SLUICE_SIGN_INS'] ?? '200')
const IS_LONG = SIGN_INS >= 1_000
const BEFORE_MS = IS_LONG ? 20_000 : 1_000
const PER_SECOND = IS_LONG ? 100 : 30
const SLACK_MS = 20
t.setTimeout(180_000)

void t.test(`K-178: ${SIGN_INS} sign-ins at once`, async (t) => {
  const served = await startServe(t, { server: 'workers: 2' })
  const load = new Load(served.port, [
    { name: 'app', secret: () => served.secret, perSecond: PER_SECOND },
  ])
  t.teardown(() => load.stop())
  await until(() => load.answers.some(({ status }) => status === 200))
  const beganMs = performance.now()
  await delay(BEFORE_MS)
  const floodMs = performance.now()
  const origin = `http://127.0.0.1:${served.port}`
  const answers = await Promise.all(
    Array.from({ length: SIGN_INS }, async (_unused, at) => {
      const { status } = await new Browser(origin).signIn(
        `somebody-${at}@example.com`,
        'guessed it',
      )
      return status
    }),
  )
  const endMs = performance.now()
  await load.stop()

  const count = (status: number): number => answers.filter((each) => each === status).length
  t.equal(count(401) + count(429), SIGN_INS, 'each is refused, or told to come back')
  t.ok(count(429) > 0, `${count(429)} are told to come back`)
  const during = load.between(floodMs, endMs, 'app')
  t.same(
    load.answers.filter(({ status }) => status !== 200),
    [],
    'nobody else notices',
  )
  const p99 = (all: readonly { ms: number }[]): number =>
    percentile(
      all.map(({ ms }) => ms),
      0.99,
    )
  const [usual, then] = [p99(load.between(beganMs, floodMs, 'app')), p99(during)]
  t.comment(
    `FIGURES ${SIGN_INS} sign-ins in ${(endMs - floodMs).toFixed()} ms: ${count(401)} looked at, ${count(429)} told to ` +
      `come back; p99 of the API ${usual.toFixed(1)} → ${then.toFixed(1)} ms of ${during.length} requests (load ${loadavg()[0]?.toFixed(1)})`,
  )
  if (IS_LONG && (loadavg()[0] ?? 0) < 2 * cpus().length) {
    t.ok(then <= 2 * usual + SLACK_MS, `${then.toFixed(1)} ms`)
  }
  const { status } = await new Browser(origin).signIn(EMAIL, PASSWORD)
  t.ok(status === 200 || status === 429, 'who knows the password gets in, or is told when')
})
