/**
 * Goal: the playground sends tools, files and schemas in every client format, compares two models, shows
 * Markdown without loading anything, shows the cost of a stopped reply, and survives a reload without keys.
 * Method: a real browser, a real gateway, and the emulator as all providers.
 */
import type { Page } from 'playwright-core'
import file, { type Test } from 'tap'
import { PASSWORD, startStage, type Stage } from '../fixtures/stage.js'
import { until } from '../../helpers/upstream.js'
import { choose, launch, open, violations } from './browser.js'
import { sixth } from './sixth.js'
import { looks } from './looks.js'

file.setTimeout(300_000)

const EMAIL = 'owner@example.com'
const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const TOOLS = JSON.stringify([
  {
    name: 'weather',
    description: 'The weather of a city.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
])
const SCHEMA = JSON.stringify({
  type: 'object',
  properties: { river: { type: 'string' }, km: { type: 'integer' } },
  required: ['river', 'km'],
  additionalProperties: false,
})
const FORMATS = ['Chat completions', 'Responses', 'Messages', 'Gemini']

interface Table {
  readonly page: Page
  readonly complaints: readonly string[]
  readonly stage: Stage
}

async function sitDown(t: Test, query = ''): Promise<Table> {
  const stage = await startStage(t)
  await stage.account(EMAIL)
  const { page, complaints } = await open(await launch(t), {
    viewport: { width: 1440, height: 900 },
  })
  await page.goto(`${stage.origin}/dashboard/playground${query}`)
  await page.getByLabel('E-mail').fill(EMAIL)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Playground', level: 1 }).waitFor()
  return { page, complaints, stage }
}

async function ask(page: Page, text: string): Promise<void> {
  await page.getByLabel('Message', { exact: true }).fill(text)
  await page.keyboard.press('Enter')
}

function turnOf(page: Page, number: number) {
  return page.getByRole('article', { name: `Turn ${number}`, exact: true })
}

void file.test('tools are called, and the user answers, in every format', { skip: sixth(1) }, async (t) => {
  const { page, stage, complaints } = await sitDown(t)
  await page.getByLabel('Tools').fill('[{ "name": "weather"')
  await page.getByText('This is not JSON').waitFor()
  await page.getByLabel('Message', { exact: true }).fill('Hello')
  t.ok(await page.getByRole('button', { name: 'Send' }).isDisabled(), 'wrong JSON is not sent')
  await page.getByLabel('Tools').fill(TOOLS)
  for (const [at, format] of FORMATS.entries()) {
    await choose(page, 'Client format', format)
    await ask(page, 'Use the weather tool for Basel.')
    const call = turnOf(page, 2 * at + 1)
    await call.getByText('Calls weather').waitFor()
    t.match(await call.locator('pre').innerText(), '"city"', `${format}: the arguments`)
    await call.getByLabel('Result of weather').fill('12 degrees, rain')
    await call.getByRole('button', { name: 'Send the result' }).click()
    const next = turnOf(page, 2 * at + 2)
    await next.getByRole('button', { name: 'Copy reply' }).waitFor()
    t.match(await next.innerText(), '12 degrees, rain', `${format}: the result is shown`)
    t.equal(await call.getByLabel('Result of weather').count(), 0, 'and asked for once')
  }
  const sent = stage.gateway.emulator.ledger.map(({ body }) => JSON.stringify(body))
  t.ok(sent.filter((body) => body.includes('12 degrees, rain')).length >= FORMATS.length)
  t.strictSame(await violations(page), [])
  t.strictSame(complaints, [])
})

void file.test('files are sent with the message, in every format', { skip: sixth(2) }, async (t) => {
  const { page, stage, complaints } = await sitDown(t)
  for (const [at, format] of FORMATS.entries()) {
    await choose(page, 'Client format', format)
    await page.getByLabel('Files', { exact: true }).setInputFiles([
      { name: 'pixel.png', mimeType: 'image/png', buffer: PIXEL },
      { name: 'note.txt', mimeType: 'text/plain', buffer: Buffer.from('A note about rivers.') },
    ])
    await page.getByRole('button', { name: 'Remove note.txt' }).waitFor()
    await ask(page, 'What is this?')
    const turn = turnOf(page, at + 1)
    await turn.getByRole('button', { name: 'Copy reply' }).waitFor()
    t.match(await turn.innerText(), 'pixel.png', `${format}: the file is listed`)
    const body = JSON.stringify(stage.gateway.emulator.ledger.at(-1)?.body)
    t.match(body, 'A note about rivers.', `${format}: the text`)
    t.match(body, PIXEL.toString('base64').slice(0, 24), `${format}: the picture`)
  }
  await page
    .getByLabel('Files', { exact: true })
    .setInputFiles([{ name: 'film.mp4', mimeType: 'video/mp4', buffer: PIXEL }])
  await page.getByText('film.mp4: only pictures').waitFor()
  const large = { name: 'large.png', mimeType: 'image/png', buffer: Buffer.alloc(5_000_000) }
  await page.getByLabel('Files', { exact: true }).setInputFiles([large])
  await page.getByText('large.png: a file may have 4 MB').waitFor()
  t.strictSame(await violations(page), [])
  t.strictSame(complaints, [])
})

void file.test('a schema gives JSON, in every format, from two models', { skip: sixth(3) }, async (t) => {
  const { page, complaints } = await sitDown(t, '?model=gpt-5.4-mini&with=claude-sonnet-5-5')
  await page.getByLabel('JSON schema of the reply').fill(SCHEMA)
  for (const [at, format] of FORMATS.entries()) {
    await choose(page, 'Client format', format)
    await ask(page, 'Name a river.')
    for (const model of ['gpt-5.4-mini', 'claude-sonnet-5-5']) {
      const reply = turnOf(page, at + 1).getByRole('group', { name: `Reply of ${model}` })
      await reply.locator('.bill').waitFor()
      const json = JSON.parse(await reply.locator('pre').innerText()) as object
      t.same(Object.keys(json), ['river', 'km'], `${format}: ${model}`)
    }
  }
  await looks(t, page, 'two replies with a schema')
  t.strictSame(complaints, [])
})

void file.test('a reply is Markdown that loads nothing', { skip: sixth(4) }, async (t) => {
  const { page, stage, complaints } = await sitDown(t)
  const text = [
    '## Rivers',
    '| river | km |\n| --- | --- |\n| Rhine | 1233 |',
    '<b>raw</b> and ![a map](https://example.com/map.png) and [a page](https://example.com/)',
    '[bad](javascript:alert(1))',
  ].join('\n\n')
  stage.gateway.emulator.replay({
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      candidates: [{ content: { role: 'model', parts: [{ text }] }, finishReason: 'STOP' }],
    }),
  })
  await choose(page, 'Model', 'gemini-3.5-flash')
  await choose(page, 'Client format', 'Gemini')
  await ask(page, 'Name a river.')
  const reply = turnOf(page, 1)
  await reply.getByRole('heading', { name: 'Rivers' }).waitFor()
  await reply.getByRole('cell', { name: 'Rhine' }).waitFor()
  t.equal(await reply.locator('img').count(), 0)
  t.equal(await reply.getByRole('link', { name: 'a map' }).getAttribute('rel'), 'noopener noreferrer')
  t.match(await reply.innerText(), '<b>raw</b>', 'HTML is text')
  t.notMatch(await reply.locator('.markdown').innerHTML(), 'javascript:')
  t.strictSame(await violations(page), [])
  t.strictSame(complaints, [])
})

void file.test('stopped, failed, reloaded', { skip: sixth(5) }, async (t) => {
  const { page, stage, complaints } = await sitDown(t)
  await ask(page, '[[words: 400]] [[pace: 30]] Name rivers.')
  await turnOf(page, 1).locator('.growing').filter({ hasText: /\w/ }).waitFor()
  await page.getByRole('button', { name: 'Stop' }).click()
  await turnOf(page, 1).getByText('Stopped. The reply is not complete.').waitFor()
  await turnOf(page, 1).locator('.bill').waitFor()
  t.match(await turnOf(page, 1).locator('.bill').innerText(), /\$0\.\d+/, 'its cost is known')

  await t.test('a reply that is stopped before it begins has a cost, too', async (t) => {
    await ask(page, '[[fault: delay ms=4000 mode=headers]] Name rivers.')
    await page.getByRole('button', { name: 'Stop' }).waitFor()
    await until(() => stage.gateway.emulator.open() > 0)
    await page.getByRole('button', { name: 'Stop' }).click()
    await turnOf(page, 2).locator('.bill').waitFor()
    t.match(await turnOf(page, 2).locator('.bill').innerText(), 'tokens')
  })

  await t.test('a failure links to its request', async (t) => {
    await ask(page, '[[fault: status code=500]] Name rivers.')
    const failed = turnOf(page, 3)
    await failed.getByRole('alert').waitFor()
    await failed.getByRole('link', { name: 'Request' }).click()
    await page.getByRole('dialog', { name: 'Request' }).waitFor()
    t.match(page.url(), /\/requests\?request=/)
    await page.goBack()
    await turnOf(page, 3).getByRole('alert').waitFor()
  })

  await t.test('the conversation and the draft survive a reload, keys do not', async (t) => {
    const secret = 'sk_WaKgqun3ng04T33cu0Lk2tk7tmPWaUMi4aiI8h3TRIUY'
    await page.getByLabel('System message').fill('Be brief.')
    await page.getByLabel('Message', { exact: true }).fill(`A draft with ${secret}.`)
    await page.reload()
    await turnOf(page, 3).getByRole('alert').waitFor()
    t.match(await turnOf(page, 1).innerText(), 'Stopped.')
    t.equal(await page.getByLabel('System message').inputValue(), 'Be brief.')
    t.equal(await page.getByLabel('Message', { exact: true }).inputValue(), 'A draft with sk_….')
    const stored = await page.evaluate('JSON.stringify(sessionStorage)')
    t.match(stored, 'Be brief.')
    t.notMatch(stored, secret)
    await page.getByRole('button', { name: 'Clear' }).click()
    t.equal(await page.getByRole('article').count(), 0)
  })

  await t.test('nothing is left after signing out', async (t) => {
    const browser = stage.browser()
    await browser.signIn(EMAIL)
    await browser.ask('DELETE', '/sessions')
    await page.reload()
    await page.getByLabel('E-mail').waitFor()
    t.equal(await page.evaluate('sessionStorage.length'), 0)
  })
  t.strictSame(complaints, [])
})
