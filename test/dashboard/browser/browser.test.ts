/**
 * Goal: the dashboard works from the first start: set-up, sign-in, creating a key, using it, finding its
 * request, reaching the limit, revoking the key, the playground; and the browser keeps no secret.
 * Method: the real program with two workers in front of an emulator, and a real Chromium; curl sends the
 * requests that the page shows.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Page } from 'playwright-core'
import { prepare, run, until } from '../../process/program.js'
import { fill, LOGIN } from '../fixtures/filled.js'
import { choose, launch, open, type Watched, heading, inOrder } from './browser.js'
import { sixth } from './sixth.js'

t.setTimeout(180_000)

const shell = promisify(execFile)
const ADMIN = { email: 'admin@example.com', password: 'a lock between two rivers' }
const OWNER = { email: 'ada@example.com', password: 'water finds the lowest gate' }
const SECRET = /sk_\w{40,}/

/** Starts a gateway without any account; resolves with the set-up link that it prints. */
async function startNew(t: Test): Promise<string> {
  const { file } = await prepare(t)
  const program = run(t, ['serve', '--config', file])
  const link = (): string => /http:\S+\/dashboard\/setup#\S+/.exec(program.err())?.[0] ?? ''
  await until(() => {
    if (program.child.exitCode !== null) throw new Error(`the gateway exited: ${program.err()}`)
    return link() !== ''
  })
  return link()
}

async function goTo(page: Page, name: string): Promise<void> {
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click()
  await heading(page, name).waitFor()
}

/** Creates a key; resolves with its secret and the curl command that the dialog shows. */
async function createKey(page: Page, name: string): Promise<{ secret: string; curl: string }> {
  await page.getByRole('button', { name: 'Create key' }).click()
  await page.getByLabel('Name').fill(name)
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  await page.getByText('You will not see it again').waitFor()
  const secret = await page.locator('.secret-text').innerText()
  await page.locator('.copy-rows code', { hasText: /^http:\/\/[^/]+\/v1$/ }).waitFor()
  await page.getByRole('tab', { name: 'Claude Code' }).waitFor()
  const curl = await page.getByRole('tabpanel').locator('code').innerText()
  return { secret, curl }
}

async function saved(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'I have saved it' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
}

async function statusOf(curl: string): Promise<string> {
  const command = curl.replace(/^curl/, 'curl -s -o /dev/null -w "%{http_code}"')
  return (await shell('sh', ['-c', command])).stdout
}

/** Creates the first administrator; ends at the overview. */
async function setUp(t: Test, watched: Watched, link: string): Promise<void> {
  const { page } = watched
  await page.goto(link)
  await heading(page, 'Set up Sluice').waitFor()
  t.equal(new URL(page.url()).hash, '', 'the token has left the address bar')
  await page.getByLabel('E-mail').fill(ADMIN.email)
  await page.getByLabel('New password').fill(ADMIN.password)
  await inOrder(t, watched, 'set-up')
  await page.getByRole('button', { name: 'Create administrator' }).click()
  await heading(page, 'Overview').waitFor()
}

/** The administrator creates an account; resolves with the link for its owner. */
async function createAccount(t: Test, watched: Watched): Promise<string> {
  const { page } = watched
  await goTo(page, 'Accounts')
  await page.getByRole('button', { name: 'Create account' }).click()
  await page.getByRole('dialog').getByLabel('Name').fill('search')
  await page.getByRole('dialog').getByLabel('E-mail').fill(OWNER.email)
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  await page.getByText('You will not see the link again').waitFor()
  const link = await page.locator('.secret-text').innerText()
  await inOrder(t, watched, 'the link')
  await saved(page)
  await page.getByRole('link', { name: 'search', exact: true }).waitFor()
  return link
}

/** Sets the password by the link, signs out, enters a wrong password once, and signs in. */
async function signIn(page: Page, link: string): Promise<void> {
  await page.goto(link)
  await page.getByLabel('New password').fill(OWNER.password)
  await page.getByRole('button', { name: 'Set password' }).click()
  await heading(page, 'Overview').waitFor()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await heading(page, 'Sign in').waitFor()
  await page.getByLabel('E-mail').fill(OWNER.email)
  await page.getByLabel('Password').fill('not this one')
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('alert').waitFor()
  await page.getByLabel('Password').fill(OWNER.password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await heading(page, 'Overview').waitFor()
}

/** Finds the request that curl has sent in the list, in its drawer and in the charts. */
async function seeIt(t: Test, watched: Watched): Promise<void> {
  const { page } = watched
  await goTo(page, 'Requests')
  const row = page.getByRole('table', { name: 'Requests, newest first' }).getByRole('row').nth(1)
  t.match(await row.innerText(), /200[\s\S]*openai[\s\S]*laptop/)
  await row.click()
  const drawer = page.getByRole('dialog', { name: 'Request' })
  await drawer.getByText('first token').waitFor()
  t.match(await drawer.innerText(), /ours [\d.]+ ms\s*·\s*provider/)
  await page.keyboard.press('Escape')
  await goTo(page, 'Usage')
  await page.locator('.uplot canvas').first().waitFor()
  const sums = page.getByRole('table', { name: 'Usage by key' }).getByRole('row').nth(1)
  t.match(await sums.innerText(), /laptop[\s\S]*new\s+100 %\s+1\s/, 'one request')
  await inOrder(t, watched, 'usage')
  await goTo(page, 'Keys')
}

/** Creates as many keys as the plan allows, and one more. */
async function reachKeyLimit(t: Test, watched: Watched): Promise<void> {
  const { page } = watched
  for (const name of ['two', 'three', 'four', 'five']) {
    await createKey(page, name)
    await saved(page)
  }
  await page.getByRole('link', { name: 'Starter · 5 of 5 keys' }).waitFor()
  await page.getByRole('button', { name: 'Create key' }).click()
  await page.getByLabel('Name').fill('six')
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  const refusal = page.getByRole('dialog').getByRole('alert')
  await refusal.waitFor()
  t.match(await refusal.innerText(), /[Rr]evoke|larger plan/, 'the refusal has advice')
  await inOrder(t, watched, 'the limit')
  await page.keyboard.press('Escape')
}

async function revoke(t: Test, watched: Watched, curl: string): Promise<void> {
  const { page } = watched
  await page.getByRole('button', { name: 'Actions for laptop' }).click()
  await page.getByRole('menuitem', { name: 'Revoke' }).click()
  const question = page.getByRole('alertdialog', { name: 'Revoke laptop?' })
  t.match(await question.innerText(), /fail within 1 second/)
  await inOrder(t, watched, 'the question')
  await question.getByRole('button', { name: 'Revoke' }).click()
  await page.getByText(/^Revoked\. laptop stopped working at/).waitFor()
  const tookMs = await until(async () => (await statusOf(curl)) === '401')
  t.ok(tookMs < 1_000, `401 after ${Math.round(tookMs)} ms`)
  await page.getByRole('link', { name: 'Starter · 4 of 5 keys' }).waitFor()
}

const FORMATS = [
  ['Chat completions', '/v1/chat/completions'],
  ['Responses', '/v1/responses'],
  ['Messages', '/v1/messages'],
  ['Gemini', ':generateContent'],
] as const

/** A reply in each client format, its cost, and the same request as code. */
async function playground(t: Test, watched: Watched): Promise<void> {
  const { page } = watched
  await goTo(page, 'Playground')
  await page.getByLabel('Message', { exact: true }).fill('Name three rivers.')
  await page.keyboard.press('Enter')
  const first = page.getByRole('article', { name: 'Turn 1' })
  await first.getByRole('button', { name: 'Copy reply' }).waitFor()
  const reply = await first.locator('.turn-text').last().innerText()
  t.ok(reply.length > 3, 'there is a reply')
  await first.getByRole('button', { name: 'Timing' }).click()
  await page.locator('.bill').getByText('first token').first().waitFor()
  t.match(await page.locator('.bill').innerText(), /\d+ in · \d+ out/, 'and what it took')
  for (const [at, [name]] of FORMATS.slice(1).entries()) {
    await choose(page, 'Client format', name)
    await page.getByLabel('Message', { exact: true }).fill('Name three lakes.')
    await page.keyboard.press('Enter')
    const turn = page.getByRole('article', { name: `Turn ${at + 2}` })
    await turn.getByRole('button', { name: 'Copy reply' }).waitFor()
    t.match(await turn.innerText(), name)
    t.ok((await turn.locator('.turn-text').last().innerText()).length > 3, `${name} replies`)
  }
  await page.getByRole('button', { name: 'Copy as code' }).click()
  const dialog = page.getByRole('dialog', { name: 'Copy as code' })
  for (const [name, path] of FORMATS) {
    await choose(dialog, 'Client format', name)
    for (const language of ['curl', 'Python', 'JavaScript']) {
      await dialog.getByRole('tab', { name: language }).click()
      // By name: the previous panel is still visible while it closes.
      const panel = dialog.getByRole('tabpanel', { name: language, exact: true })
      const code = await panel.locator('code').innerText()
      t.match(code, path)
      t.match(code, 'Name three lakes.', 'the code sends the same message')
    }
  }
  await page.keyboard.press('Escape')
}

void t.test('from the first start to a revoked key', { skip: sixth(4) }, async (t) => {
  const link = await startNew(t)
  const browser = await launch(t)
  const admin = await open(browser)
  await setUp(t, admin, link)
  const invitation = await createAccount(t, admin)

  const watched = await open(browser)
  const { page } = watched
  await signIn(page, invitation)
  t.equal(await page.getByRole('link', { name: 'Accounts' }).count(), 0, 'no administrator')
  await goTo(page, 'Keys')
  const { secret, curl } = await createKey(page, 'laptop')
  t.match(secret, SECRET)
  t.match(curl, secret, 'the line to paste has the key')
  await page.getByRole('tab', { name: '.env' }).click()
  const env = await page.getByRole('tabpanel', { name: '.env', exact: true }).locator('code').innerText()
  const variables = env.split('\n').map((line) => line.split('='))
  t.same(
    variables.filter(([name = '']) => name.endsWith('_API_KEY')),
    ['OPENAI', 'ANTHROPIC', 'GEMINI'].map((vendor) => [`${vendor}_API_KEY`, secret]),
  )
  t.match(env, /^OPENAI_BASE_URL=http:.*\/v1$/m)
  await page.keyboard.press('Escape')
  t.ok(await page.getByText('You will not see it again').isVisible(), 'one way out alone')
  await inOrder(t, watched, 'the secret')
  await page.getByRole('button', { name: 'Copy key' }).click()
  t.equal(await page.evaluate('navigator.clipboard.readText()'), secret)
  await saved(page)
  await assertNoSecretStored(t, page, secret)
  t.equal(await statusOf(curl), '200', 'the line works without changes')
  await seeIt(t, watched)

  await reachKeyLimit(t, watched)
  await revoke(t, watched, curl)
  await playground(t, watched)
  await inOrder(t, watched, 'the end')
})

/** Starts a gateway with a month of use. */
async function startFilled(t: Test): Promise<string> {
  const { file, folder } = await prepare(t)
  await fill(join(folder, 'data'), Date.now(), 40)
  const program = run(t, ['serve', '--config', file])
  const port = (): unknown => program.lines().find(({ msg }) => msg === 'sluice serves')?.['port']
  await until(() => {
    if (program.child.exitCode !== null) throw new Error(`the gateway exited: ${program.err()}`)
    return port() !== undefined
  })
  return `http://127.0.0.1:${String(port())}/dashboard`
}

void t.test('charts, tables and requests of a month of use', { skip: sixth(2) }, async (t) => {
  const address = await startFilled(t)
  const watched = await open(await launch(t))
  const { page } = watched
  await page.goto(`${address}/usage?range=30d`)
  await page.getByLabel('E-mail').fill(LOGIN.email)
  await page.getByLabel('Password').fill(LOGIN.password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await heading(page, 'Usage').waitFor()
  await page.locator('.uplot canvas').first().waitFor()
  t.equal(await page.locator('.uplot canvas').count(), 1, 'one large chart')
  await choose(page, 'Group by', 'by key')
  await page.getByRole('table', { name: 'Usage by key' }).getByText('ci-runner').waitFor()
  await choose(page, 'Group by', 'by model')
  const sums = page.getByRole('table', { name: 'Usage by model' })
  await sums.getByText('gpt-5.4-mini').waitFor()
  t.match(await sums.innerText(), /claude-sonnet-5-5[\s\S]*gpt-5\.4-mini/)
  await inOrder(t, watched, 'usage')

  for (const name of [/^Requests/, /^Tokens/, /^Failed/, /^First token/]) {
    await page.getByRole('list', { name: 'Figures' }).getByRole('button', { name }).click()
    await page.locator('.uplot canvas').waitFor()
  }
  t.match(page.url(), /group=model&figure=first-token/, 'the view is in the address')

  await goTo(page, 'Requests')
  const rows = page.getByRole('table', { name: 'Requests, newest first' }).getByRole('row')
  await rows.nth(50).waitFor()
  await page.getByRole('button', { name: 'Next' }).click()
  await page.getByRole('navigation', { name: 'Pages of requests' }).getByText('page 2').waitFor()
  await page.getByRole('button', { name: 'Failed', exact: true }).click()
  const failed = rows.filter({ hasText: 'upstream failed' }).first()
  await failed.waitFor()
  await page.getByText(/^200$/).first().waitFor({ state: 'detached' })
  t.equal(await page.getByText(/^200$/).count(), 0, 'failures alone')
  await failed.click()
  const drawer = page.getByRole('dialog', { name: 'Request' })
  await drawer.getByText('first token').waitFor()
  t.match(await drawer.innerText(), /ours 0\.60 ms\s*·\s*provider/)
  await inOrder(t, watched, 'the drawer')
  await page.keyboard.press('Escape')
  const download = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Save CSV' }).click()
  t.match((await download).suggestedFilename(), /^requests-[\d-]{10}\.csv$/)
  await inOrder(t, watched, 'the end')
})

/** After its dialog is closed, the browser contains the secret nowhere. */
async function assertNoSecretStored(t: Test, page: Page, secret: string): Promise<void> {
  const places: unknown = await page.evaluate(
    `[document.documentElement.outerHTML, document.title, location.href, JSON.stringify(history.state),
      JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie].join('\\n')`,
  )
  t.notMatch(String(places), secret, 'the secret is gone with its dialog')
}
