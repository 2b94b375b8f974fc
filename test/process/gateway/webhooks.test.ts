/**
 * Goal: the running gateway reports budgets once for all its processes, breakers, and configurations that it
 * refuses.
 * Method: `sluice serve` with two workers, or one process, and a real receiver; secrets are looked for
 * everywhere.
 */
import { readFileSync } from 'node:fs'
import { startMailServer } from '../../helpers/mail-server.js'
import t from 'tap'
import { ALONE, CANARY, makeKey, startServe, until, type Served } from '../program.js'
import { SECRETS, startReceiver, type WebhookReceiver } from '../../observe/webhooks/receiver.js'
import { ofToday } from '../../helpers/long-suite.js'

function notify(receiver: WebhookReceiver, events = ''): string {
  return `notify: [{ url: '${receiver.url}', secret: '${SECRETS.encoded}'${events} }]`
}

function storeOf({ file }: Served): string {
  return `sqlite:${file.replace(/gateway\.yaml$/, 'data/sluice.db')}`
}

/** Checks that no output of the program contains a secret of its webhooks. */
async function checkSecrets(
  t: { notMatch: (text: string, what: RegExp) => unknown },
  served: Served,
): Promise<void> {
  const texts = [served.program.out(), served.program.err(), (await served.ops('/config')).text]
  for (const text of texts) t.notMatch(text, /whsec_|canary-path|Y2FuYXJ5LXNlY3JldC1vZi0/)
}

const BUDGETS = [
  [1, 'day', 'nanoUsdPerDay'],
  [2, 'week', 'nanoUsdPerWeek'],
] as const

for (const [workers, period, limit] of ofToday(BUDGETS, BUDGETS.length)) {
  void t.test(
    `a budget of a ${period} is reported once at 50 %, at 80 % and at 100 %, workers: ${workers}`,
    async (t) => {
      const receiver = await startReceiver(t)
      const mails = await startMailServer(t)
      const server = `workers: ${workers}, drain_ms: 5000`
      const smtp = `smtp: { url: 'smtp://127.0.0.1:${mails.port}', from: sluice@example.com }\n`
      const served = await startServe(t, { server, more: `${notify(receiver)}\n${smtp}` })
      const secret = await makeKey(storeOf(served), { [limit]: 1_000_000 })
      const ask = async (): Promise<number> => {
        const body = {
          model: 'gpt-4o',
          max_tokens: 20,
          messages: [{ role: 'user', content: '[[words: 10]] Hi.' }],
        }
        const reply = await served.chat(body, secret)
        await reply.text()
        return reply.status
      }
      await until(async () => (await ask()) === 402)
      for (let more = 0; more < 4 * workers; more += 1) t.equal(await ask(), 402)
      const reports = await receiver.of('budget.threshold', 3)
      served.program.child.kill('SIGTERM')
      t.equal(await served.program.ended, 0)
      t.equal(receiver.tries.length, 3, 'each event once, from any process')
      t.ok(receiver.tries.every(({ isSigned }) => isSigned))
      const [first, second, last] = reports.sort(
        (a, b) => Number(a.data['threshold_percent']) - Number(b.data['threshold_percent']),
      )
      t.match(first?.data, {
        threshold_percent: 50,
        period,
        limit_usd: 0.001,
        budget: /^key:key_/,
      })
      t.match(first?.data, { account: 'test', owners: [/@/] })
      t.match(second?.data, { threshold_percent: 80 })
      t.match(last?.data, { threshold_percent: 100 })
      const subjects = mails.received.map((mail) => /^Subject: (\d+) %/m.exec(mail)?.[1])
      t.same(subjects.sort(), ['100', '50', '80'], 'and each as one mail to the owner')
    },
  )
}

void t.test('a breaker is reported when it opens, half-opens and closes', async (t) => {
  const receiver = await startReceiver(t)
  const more = notify(receiver, ', events: [breaker]')
  const served = await startServe(t, { server: 'workers: 1, drain_ms: 5000', more })
  const text = readFileSync(served.file, 'utf8')
  const breaker = 'breaker: { failures: 2, open_seconds: 1 }'
  served.write(text.replace('{ dialect: openai,', `{ ${breaker}, dialect: openai,`))
  await until(() => served.program.lines().some(({ msg }) => msg === 'configuration in force'))
  served.emulator.script({ times: 2, fault: { kind: 'status', code: 500 } })
  for (let failed = 0; failed < 2; failed += 1) await (await served.chat()).text()
  await receiver.of('breaker.changed', 1)
  // The first request after `open_seconds`, plus a jitter of at most a tenth, tests the upstream.
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  await (await served.chat()).text()
  const changes = await receiver.of('breaker.changed', 3)
  const inOrder = [...changes].sort((a, b) => a.timestamp.localeCompare(b.timestamp))
  t.match(inOrder[0]?.data, { upstream: 'openai', state: 'open', process_id: served.program.pid })
  t.same(changes.map(({ data }) => data['state']).sort(), ['closed', 'half_open', 'open'])
  const isLogged = (state: string): boolean =>
    served.program.lines().some(({ msg }) => msg === `circuit breaker ${state}`)
  for (const state of ['open', 'half-open', 'closed']) await until(() => isLogged(state))
})

void t.test('a configuration that is refused is reported', async (t) => {
  const receiver = await startReceiver(t)
  const served = await startServe(t, { ...ALONE, more: notify(receiver) })
  served.write('upstreams: [')
  const [report] = await receiver.of('config.refused', 1)
  t.match(report?.data, { generation_in_force: 1, problems: 1, first_problem: /gateway\.yaml:1/ })
  await checkSecrets(t, served)
})

void t.test('webhooks start when a reload configures them', async (t) => {
  const receiver = await startReceiver(t)
  const served = await startServe(t, ALONE)
  const text = readFileSync(served.file, 'utf8')
  served.write(`${text}${notify(receiver)}\n`)
  await until(() => served.program.lines().some(({ msg }) => msg === 'configuration in force'))
  served.write('upstreams: [')
  await receiver.of('config.refused', 1)
  await checkSecrets(t, served)
})

void t.test('a high error rate is reported once for all workers, and that it ended', async (t) => {
  const receiver = await startReceiver(t)
  const more = notify(receiver, ', events: [error_rate]')
  const served = await startServe(t, { server: 'workers: 2, drain_ms: 5000', more })
  for (let good = 0; good < 20; good += 1) await (await served.chat()).text()
  const restore = served.emulator.script({ fault: { kind: 'status', code: 500 } })
  for (let failed = 0; failed < 20; failed += 1) t.ok((await served.chat()).status >= 500)
  restore()
  const [high] = await receiver.of('error_rate.changed', 1)
  t.match(high?.data, { state: 'high', window_seconds: 60, upstream: 'openai' })
  t.ok(Number(high?.data['percent']) >= 5)
  // It is reported from ten failures on, which may be before the last one.
  const failed = Number(high?.data['failed'])
  t.ok(failed >= 10 && failed <= 20, `${failed} failed`)
  t.equal(receiver.tries.length, 1)
})

for (const workers of ofToday([2, 1], 2)) {
  void t.test(`a refused credential is reported once, workers: ${workers}`, async (t) => {
    const receiver = await startReceiver(t)
    const more = notify(receiver, ', events: [credential]')
    const served = await startServe(t, { server: `workers: ${workers}, drain_ms: 5000`, more })
    served.emulator.script({ fault: { kind: 'status', code: 401 } })
    for (let failed = 0; failed < 8; failed += 1) t.equal((await served.chat()).status, 502)
    const [report] = await receiver.of('credential.refused', 1)
    t.match(report?.data, { upstream: 'openai', api_key: 1, status: 401 })
    await until(() => {
      return served.program.lines().some(({ msg }) => msg === 'upstream refuses a credential')
    })
    await new Promise((resolve) => setTimeout(resolve, 300))
    t.equal(receiver.tries.length, 1)
    await checkSecrets(t, served)
    t.notMatch(JSON.stringify(report), CANARY)
  })
}
