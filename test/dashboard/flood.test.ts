/**
 * Goal: of a flood of sign-ins a few are looked at, the rest is told to come back, and every request of the
 * API is answered.
 * Method: the program as it is served, a steady load on the API, and as many people at once as
 * `SLUICE_SIGN_INS` says (200) with wrong passwords. Says what it did to the API's p99 (`docs/dashboard.md`).
 */
import { spawn } from 'node:child_process'
import { loadavg } from 'node:os'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { Load, percentile } from '../outage/load.js'
import { EMAIL, PASSWORD, startServe, until } from '../process/program.js'
import { Browser } from './stage.js'

const FLOODER = fileURLToPath(new URL('./flooder.js', import.meta.url))
const SIGN_INS = Number(process.env['SLUICE_SIGN_INS'] ?? '200')
const IS_LONG = SIGN_INS >= 1_000
const BEFORE_MS = IS_LONG ? 20_000 : 1_000
const PER_SECOND = IS_LONG ? 100 : 30
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
  // From a process of its own: whoever asks so much is late itself.
  const flooder = spawn(process.execPath, [FLOODER, origin, String(SIGN_INS)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => flooder.kill('SIGKILL'))
  const answers = JSON.parse(await text(flooder.stdout)) as number[]
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
  const { status } = await new Browser(origin).signIn(EMAIL, PASSWORD)
  t.ok(status === 200 || status === 429, 'who knows the password gets in, or is told when')
})
