/**
 * Goal: an account creates keys at a bounded rate, and a list of many keys is read in pages.
 * Method: the page's own requests; a store with more keys than one page has.
 */
import { endKey, putAccount, putKey } from '../../../helpers/store-changes.js'
import t from 'tap'
import { accountsReply, keysReply } from '../../../../src/control/dashboard/schema/schema.js'
import { aKey, anAccount } from '../../../store/contract/sample-records.js'
import { startStage, type Browser } from '../../../dashboard/fixtures/stage.js'

void t.test('keys are created at a bounded rate per account', async (t) => {
  const stage = await startStage(t)
  const browser = await stage.signedIn('ada@example.com', 'max')
  const other = await stage.signedIn('bob@example.com', 'max')
  const make = (of: Browser, at: number) => of.ask('POST', '/keys', { body: { name: `k ${at}` } })
  const answers = await Promise.all(Array.from({ length: 80 }, (_, at) => make(browser, at)))
  const made = answers.filter(({ status }) => status === 201).length
  t.ok(made >= 60 && made <= 62, `${made} of 80 at once are made`)
  const refused = answers.filter(({ status }) => status !== 201)
  for (const { status, error, headers } of refused) {
    t.match([status, error['kind']], [429, 'rate_limited'])
    const seconds = Number(headers.get('retry-after'))
    t.ok(seconds >= 1 && seconds <= 10, `retry-after: ${seconds}`)
  }
  const [first] = keysReply.parse((await browser.get('/keys')).json).keys
  const turned = await browser.ask('POST', `/keys/${first?.id ?? ''}/rotate`, { body: {} })
  t.equal(turned.status, 429, 'a replacement is a new key')
  t.equal((await browser.ask('DELETE', `/keys/${first?.id ?? ''}`)).status, 200, 'revoking is free')
  t.equal((await make(other, 0)).status, 201, 'another account is not held up')
})

void t.test('one reply searches a long list', async (t) => {
  const stage = await startStage(t)
  const browser = await stage.signedIn('ada@example.com', 'max')
  const admin = await stage.signedIn('root@example.com', 'max', 'admin')
  const ada = await stage.store.accountByEmail('ada@example.com')
  const accountId = ada?.id ?? ''
  const count = 1_200
  const keys = Array.from({ length: count }, (_, at) => aKey(accountId, { name: `service ${at}` }))
  for (let from = 0; from < count; from += 100) {
    await Promise.all(keys.slice(from, from + 100).map((key) => putKey(stage.store, key, null)))
  }
  await endKey(stage.store, { accountId, id: keys[count - 1]?.id ?? '' }, 1)

  const walk = async (query: string) => {
    const names: string[] = []
    let replies = 0
    for (let after = ''; ; replies += 1) {
      const answer = await browser.get(`/keys?${query}${after === '' ? '' : `&after=${after}`}`)
      const page = keysReply.parse(answer.json)
      names.push(...page.keys.map(({ name }) => name))
      if (page.next === null) return { names, replies: replies + 1 }
      after = page.next
    }
  }
  const live = await walk('limit=100')
  t.equal(live.names.length, count - 1, 'all of them, page by page')
  t.equal(new Set(live.names).size, count - 1, 'each once')
  t.equal((await walk('limit=500&state=all')).names.length, count)
  const rare = await walk('limit=20&search=service+77')
  t.same(new Set(rare.names), new Set(live.names.filter((name) => name.includes('service 77'))))
  t.equal(rare.replies, 1, 'one reply searches the whole list')
  t.equal((await browser.get('/keys?after=none%20such')).status, 400)
  t.match((await browser.get('/keys?after=none-such')).json, { keys: [], next: null })

  for (let at = 0; at < 120; at += 1) {
    await putAccount(stage.store, anAccount({ email: `team-${at}@example.com` }))
  }
  const emails: string[] = []
  for (let after = '', replies = 0; replies < 20; replies += 1) {
    const answer = await admin.get(`/accounts?search=team-7${after === '' ? '' : `&after=${after}`}`)
    const page = accountsReply.parse(answer.json)
    emails.push(...page.accounts.map(({ email }) => email))
    if (page.next === null) break
    after = page.next
  }
  t.equal(emails.length, 11, 'team-7 and team-70 to team-79')
})
