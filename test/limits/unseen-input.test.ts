/**
 * Goal: a request with input that the gateway cannot see reserves the context window of its model under a
 * budget, or is refused; other keys are not affected.
 * Method: a gateway over an upstream that sends prepared replies; budgets just below and above the price of
 * the context window, in all client formats.
 */
import t from 'tap'
import {
  BUDGET,
  chat,
  document,
  file,
  gemini,
  messages,
  responses,
  setUp,
  user,
  type Asked,
} from './hosted-upstream.js'

const PDF = 'https://example.com/a.pdf'

/** Requests with input that the gateway cannot see, and the path of that input. */
const UNSEEN: readonly (readonly [path: string, asked: Asked])[] = [
  ['prompt', responses({ prompt: { id: 'pmpt_1' } })],
  ['messages[0]', responses({ input: [user({ type: 'input_file', file_id: 'file-1' })] })],
  ['messages[0]', responses({ input: [user({ type: 'input_file', file_url: PDF })] })],
  ['messages[0]', responses({ input: [user({ type: 'input_image', file_id: 'file-1' })] })],
  ['input[0]', responses({ input: [{ type: 'reasoning', id: 'rs_1', summary: [] }, user()] })],
  ['tools[0]', responses({ tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] })],
  ['messages[0]', chat({ messages: [user({ type: 'file', file: { file_id: 'file-1' } })] })],
  ['web_search_options', chat({ web_search_options: {} })],
  ['messages[0]', messages({ messages: [document({ type: 'file', file_id: 'file_1' })] })],
  ['messages[0]', messages({ messages: [document({ type: 'url', url: PDF })] })],
  ['messages[0].content[0]', messages({ messages: [user({ type: 'container_upload', file_id: 'file_1' })] })],
  ['container', messages({ container: 'container_1' })],
  ['cachedContent', gemini({ cachedContent: 'cachedContents/1' })],
  ['fileData.fileUri', gemini({ contents: [file('https://youtu.be/a', 'video/mp4')] })],
  ['fileData.fileUri', gemini({ contents: [file('https://youtu.be/a', 'image/png')] })],
  ['tools[0].urlContext', gemini({ tools: [{ urlContext: {} }] })],
  // Translated.
  [
    'messages[0]',
    chat({
      model: 'claude-sonnet-4-6',
      messages: [user({ type: 'file', file: { file_data: PDF } })],
    }),
  ],
]

/** The cost of the whole context window, at the highest rate of prompt tokens, in dollars. */
const WINDOW_USD: Readonly<Record<string, number>> = {
  'gpt-5.4-mini': 0.3,
  'claude-sonnet-4-6': 6,
  'gemini-3.5-flash': 1.57,
}

void t.test('unseen input reserves the context window', async (t) => {
  const { key, ask } = await setUp(t)
  for (const [path, asked] of UNSEEN) {
    const window = WINDOW_USD[modelOf(asked)] ?? NaN
    const small = await key({ limits: { nanoUsdPerDay: nano(window - 0.01) }, allowTools: ['*'] })
    const refused = await ask(small, asked)
    t.equal(refused.status, 402, `${path} ${refused.text.slice(0, 200)}`)
    const large = await key({ limits: { nanoUsdPerDay: nano(window + 1) }, allowTools: ['*'] })
    const served = await ask(large, asked)
    t.equal(served.status, 200, `${path} ${served.text.slice(0, 200)}`)
    const tokens = await key({ limits: { tokensPerMinute: 5_000 } })
    t.equal((await ask(tokens, asked)).status, 200, `${path}: no window without a budget`)
  }
})

function nano(usd: number): number {
  return Math.round(usd * 1e9)
}

function modelOf({ path, body }: Asked): string {
  return 'model' in body ? String(body.model) : (/models\/([^:]+)/.exec(path)?.[1] ?? '')
}

void t.test('unseen input is refused under a budget if configured', async (t) => {
  const { key, ask } = await setUp(t, { more: 'limiting: { unseen_input: refuse }' })
  const budgeted = await key({ ...BUDGET, allowTools: ['*'] })
  const free = await key()
  for (const [path, asked] of UNSEEN) {
    const refused = await ask(budgeted, asked)
    t.match(refused, { status: 403, text: /limiting\.unseen_input/ }, path)
    t.ok(refused.text.includes(path), `${path} is named: ${refused.text}`)
    t.equal((await ask(free, asked)).status, 200, `${path}: as before without a budget`)
  }
  t.equal((await ask(budgeted, chat({}))).status, 200)
  const inline = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } }
  t.equal((await ask(budgeted, chat({ messages: [user(inline)] }))).status, 200, 'a known maximum')
})

void t.test('an image by URL for a model of unknown rules counts as unseen', async (t) => {
  const { key, ask, gateway } = await setUp(t, {
    routes: '  - { prefix: llama, upstream: openai }',
    upstreamOptions: 'models: [{ id: llama-9, family: meta, price: { input: 1, output: 1 } }]',
    more: 'limiting: { unseen_input: reserve }',
  })
  const secret = await key(BUDGET)
  const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } }
  const refused = await ask(secret, chat({ model: 'llama-9', messages: [user(image)] }))
  t.match(refused, { status: 403, text: /context window of 'llama-9' is not known/ })
  t.equal((await ask(secret, chat({ model: 'llama-9' }))).status, 200)
  t.ok(gateway.lines.every(({ level }) => level !== 'error'))
})
