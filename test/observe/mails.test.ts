/**
 * Goal: the owners of an account get one mail each when a share of a budget is used, also after a failure of
 * the server, and neither a password nor an address reaches the log.
 * Method: a mail server of a few lines, and one that refuses at first.
 */
import t, { type Test } from 'tap'
import { startMailServer } from '../helpers/mail-server.js'
import { Mails, mailsOf } from '../../src/observe/mails.js'
import type { Notification } from '../../src/observe/notification.js'

const NOTIFICATION: Notification = {
  type: 'budget.threshold',
  atMs: 0,
  data: {
    budget: 'account:acc_1',
    period: 'month',
    threshold_percent: 80,
    reason: 'used',
    used_usd: 16.04,
    limit_usd: 20,
    resets_at: '2026-12-01T00:00:00.000Z',
    account: 'research',
    owners: ['ada@example.com', 'bob@example.com'],
  },
}

function open(t: Test, port: number, backOffMs: readonly number[]) {
  const warnings: unknown[] = []
  const log = { warn: (...line: unknown[]) => void warnings.push(line) }
  const url = `smtp://user:hunter%20two@127.0.0.1:${port}`
  const mails = new Mails({ url, from: 'Sluice <sluice@example.com>' }, { log, backOffMs })
  t.teardown(() => mails.close())
  return { mails, warnings }
}

async function until(isDone: () => boolean): Promise<void> {
  for (let tries = 0; tries < 500 && !isDone(); tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

void t.test('each owner gets a mail', async (t) => {
  const server = await startMailServer(t)
  const { mails, warnings } = open(t, server.port, [10])
  server.refuse.add('bob@example.com')
  mails.notify(NOTIFICATION)
  mails.notify({ ...NOTIFICATION, type: 'breaker.changed' })
  mails.notify({ ...NOTIFICATION, data: { ...NOTIFICATION.data, account: null, owners: [] } })
  await until(() => server.received.length >= 2)
  await mails.close()
  t.equal(server.received.length, 2, 'one that failed is sent again')
  const text = server.received.join('\n')
  t.match(text, /To: ada@example.com/)
  t.match(text, /To: bob@example.com/)
  t.match(text, /From: Sluice <sluice@example.com>/)
  t.match(text, /Subject: 80 % of a budget of the account research are used/)
  t.match(text, /\$16.04 of \$20/)
  t.same(warnings, [])
})

void t.test('a server that does not accept mails', async (t) => {
  const server = await startMailServer(t)
  const { mails, warnings } = open(t, server.port, [])
  server.refuse.add('ada@example.com').add('bob@example.com')
  mails.notify(NOTIFICATION)
  await until(() => warnings.length > 0)
  t.match(JSON.stringify(warnings), /mail not delivered.*EENVELOPE 451/)
  t.notMatch(JSON.stringify(warnings), /hunter|ada@|user:/)
})

void t.test('the text of a refusal', (t) => {
  const data = { ...NOTIFICATION.data, threshold_percent: 100, reason: 'refused' }
  const [mail] = mailsOf({ ...NOTIFICATION, data })
  t.match(mail?.text, /requests are refused until it is reset/)
  t.same(mailsOf({ ...NOTIFICATION, type: 'config.refused', data: {} }), [])
  t.end()
})
