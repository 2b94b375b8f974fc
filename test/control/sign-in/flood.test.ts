/**
 * Goal: a flood of sign-ins does not affect the API: a few sign-ins are processed, the others get 429, and
 * every API request gets a reply.
 * Method: the built program, a steady load on the API over connections that are kept and over new
 * ones, and `SLUICE_SIGN_INS` (200) concurrent sign-ins with wrong passwords. Prints the effect on
 * the API's p99 (`bench/README.md`), and asserts no time.
 */
import { spawn } from 'node:child_process'
import { loadavg } from 'node:os'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { Load, percentile } from '../../outage/load.js'
import { EMAIL, PASSWORD, startServe, until } from '../../process/program.js'
import { Browser } from '../../dashboard/fixtures/stage.js'
import { anotherDay } from '../../helpers/long-suite.js'

const FLOODER = fileURLToPath(new URL('./flooder.js', import.meta.url))
const SIGN_INS = Number(process.env['SLUICE_SIGN_INS'] ?? '200')
const IS_LONG = SIGN_INS >= 1_000
const BEFORE_MS = IS_LONG ? 20_000 : 1_000
const PER_SECOND = IS_LONG ? 50 : 30
t.setTimeout(180_000)

void t.test(`K-178: ${SIGN_INS} sign-ins at once`, { skip: anotherDay(0, 3) }, async (t) => {
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
  // In a separate process, since this number of requests would delay this one.
  const flooder = spawn(process.execPath, [FLOODER, origin, String(SIGN_INS)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => flooder.kill('SIGKILL'))
  const answers = JSON.parse(await text(flooder.stdout)) as number[]
  const endMs = performance.now()
  await load.stop()

  const count = (status: number): number => answers.filter((each) => each === status).length
  t.equal(count(401) + count(429), SIGN_INS, 'each gets 401 or 429')
  t.ok(count(429) > 0, `${count(429)} get 429`)
  t.same(
    load.answers.filter(({ status }) => status !== 200),
    [],
    'other requests succeed',
  )
  const p99 = (fromMs: number, toMs: number, client: string): string => {
    const times = load.between(fromMs, toMs, client).map(({ ms }) => ms)
    return `${percentile(times, 0.99).toFixed(1)} ms of ${times.length}`
  }
  const p99s = ['kept', 'new'].map(
    (name) => `${name}: ${p99(beganMs, floodMs, name)} → ${p99(floodMs, endMs, name)}`,
  )
  t.comment(
    `FIGURES ${SIGN_INS} sign-ins in ${(endMs - floodMs).toFixed()} ms: ${count(401)} processed, ${count(429)} asked to ` +
      `come back; p99 of the API by connection, ${p99s.join(', ')} (load ${loadavg()[0]?.toFixed(1)})`,
  )
  const { status } = await new Browser(origin).signIn(EMAIL, PASSWORD)
  t.ok(status === 200 || status === 429, 'the right password signs in, or gets 429')
})
