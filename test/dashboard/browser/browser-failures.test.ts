/**
 * Goal: the drawer of each of the ten prepared failures names its cause and the side at fault.
 * Method: the failures are produced on a real gateway, and each drawer is opened in Chromium.
 */
import t from 'tap'
import { violations } from './browser.js'
import { sixth } from './sixth.js'
import { eachDrawer } from '../pictures/failure-drawers.js'

t.setTimeout(240_000)

/** The name of the side at fault. */
const SIDES = {
  client: 'Client',
  limits: 'Gateway limits',
  gateway: 'Gateway',
  provider: 'Provider',
} as const

/** Further texts of each drawer, by the name of its picture. */
const FACTS: Readonly<Record<string, readonly RegExp[]>> = {
  'rate-limit': [/Requests per minute of this key/, /Resets\s+\d\d:\d\d:\d\d/, /limit of 1 request /],
  budget: [/Budget per day \(UTC\) of this key/, /Resets\s+[^\n]*00:00:00/],
  'unknown-model': [/no-such-model/, /Models page/],
  'provider-429': [/Upstream status\s+429/, /upstream busy/, /Upstream request id\s+req_/],
  'provider-500': [/Upstream status\s+500/, /The provider behind the upstream "openai"/],
  'truncated-stream': [/Reply\s+streamed/, /Discard the partial reply/, /Status\s+200/],
  timeout: [/first token\s+3\.\d+ s/, /raise the timeout/],
  'bad-credential': [/Upstream status\s+401/, /API key of the upstream/],
  'untranslatable-field': [/messages\[0\]/, /Client format\s+Chat completions/],
  'client-gone': [/Status\s+499/, /The client: its request, or its connection/],
}

void t.test('the drawer explains each of the ten failures', { skip: sixth(1) }, async (t) => {
  const complaints = await eachDrawer(t, async ({ failure, slug, page, drawer }) => {
    const block = await drawer.getByRole('region', { name: 'Failure' }).innerText()
    const { outcome, cause } = failure
    t.ok(block.startsWith(SIDES[cause]), `${slug}: ${SIDES[cause]}`)
    t.match(block, outcome, `${slug}: the kind`)
    t.notMatch(block, 'No message recorded', `${slug}: the message`)
    const details = await drawer.innerText()
    t.strictSame(await violations(page), [], `${slug}: axe`)
    await drawer.getByRole('tab', { name: 'Routing' }).click()
    await drawer.getByRole('heading', { name: 'Route' }).waitFor()
    const text = `${details}\n${await drawer.innerText()}`
    for (const fact of FACTS[slug] ?? [/^$/]) t.match(text, fact, slug)
  })
  t.strictSame(complaints, [])
})
