/**
 * Goal: of a flood of sign-ins a few are looked at, the rest is told to come back, and every request of the
 * API is answered.
 * Method: the program as it is served, a steady load on the API over connections that are kept and over new
 * ones, and as many people at once as `SLUICE_SIGN_INS` says (200) with wrong passwords. Says what it did to
 * the API's p99 (`docs/reference/dashboard.md`), and judges no time.
 */
import { spawn } from 'node:child_process'
import { loadavg } from 'node:os'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { Load, percentile } from '../../outage/load.js'
import { EMAIL, PASSWORD, startServe, until } from '../../process/program.js'
import { Browser } from '../fixtures/stage.js'

const FLOODER = fileURLToPath(new URL('./flooder.js', import.meta.url))
const SIGN_INS = Number(process.env['SLUICE_SIGN_INS'] ?? '200')
const IS_LONG = SIGN_INS >= 1_000
const BEFORE_MS = IS_LONG ? 20_000 : 1_000
const PER_SECOND = IS_LONG ? 50 : 30
t.setTimeout(180_000)

void t.test(`K-178: ${SIGN_INS} sign-ins at once`, async (t) => {
  const served = await startServe(t, { server: 'workers: 2' })
  const secret = (): string => served.secret
  const load = new Load(served.port, [
    { name: 'kept', secret, perSecond: PER_SECOND, keeps: true },
    { name: 'new', secret, perSecond: PER_SECOND },
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
  t.same(
    load.answers.filter(({ status }) => status !== 200),
    [],
    'nobody else notices',
  )
  const p99 = (fromMs: number, toMs: number, client: string): string => {
    const times = load.between(fromMs, toMs, client).map(({ ms }) => ms)
    return `${percentile(times, 0.99).toFixed(1)} ms of ${times.length}`
  }
  const p99s = ['kept', 'new'].map(
    (name) => `${name}: ${p99(beganMs, floodMs, name)} → ${p99(floodMs, endMs, name)}`,
  )
  t.comment(
    `FIGURES ${SIGN_INS} sign-ins in ${(endMs - floodMs).toFixed()} ms: ${count(401)} looked at, ${count(429)} told to ` +
      `come back; p99 of the API by connection, ${p99s.join(', ')} (load ${loadavg()[0]?.toFixed(1)})`,
  )
  const { status } = await new Browser(origin).signIn(EMAIL, PASSWORD)
  t.ok(status === 200 || status === 429, 'who knows the password gets in, or is told when')
})
