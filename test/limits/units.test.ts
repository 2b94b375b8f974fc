/**
 * Goal: limits of units other than tokens admit exactly their number under concurrency, count the units of
 * replies, and tell the client; the ledger has the units; in every store. Budgets of such requests race on
 * two gateways as those of chats do.
 * Method: a gateway in this process with a vendor of pictures, sound and ranks that can be held back.
 */
import { createServer, type ServerResponse } from 'node:http'
import { readFileSync, writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'
import { startRedis } from '../helpers/redis.js'
import { ofToday } from '../helpers/long-suite.js'
import { listen } from '../helpers/listen.js'

const PRICES =
  'p: { per_image: 0.04 }, w: { per_second_audio: 0.0001 }, v: { per_character: 0.00001 }, r: { per_search: 0.002 }'
const LIMITS = [
  '{ scope: key, prefix: p, units_per_minute: { image: 10 } }',
  '{ scope: key, prefix: w, units_per_minute: { audio_second: 5 } }',
  '{ scope: account, prefix: v, units_per_minute: { character: 20 } }',
  '{ scope: key, prefix: r, units_per_minute: { document: 3, search: 100 } }',
]

/** Replies that wait while `hold` is set. */
const waiting: (() => void)[] = []
let hold = false
let pictures = 1
/** Replies end after their first bytes. */
let cut = false

function answer(path: string, res: ServerResponse): void {
  if (cut) {
    res.writeHead(200, { 'content-type': path.endsWith('/speech') ? 'audio/mpeg' : 'application/json' })
    res.write('{"')
    setTimeout(() => res.destroy(), 10)
    return
  }
  if (path.endsWith('/speech')) {
    res.writeHead(200, { 'content-type': 'audio/mpeg' })
    res.end('sound')
    return
  }
  const replies: Readonly<Record<string, unknown>> = {
    generations: { created: 7, data: Array.from({ length: pictures }, () => ({ b64_json: 'AAAA' })) },
    transcriptions: { text: 'Hi.', usage: { type: 'duration', seconds: 2.5 } },
    edits: { created: 7, data: [{ b64_json: 'AAAA' }] },
    translations: { text: 'Hi.', usage: { type: 'duration', seconds: 2.5 } },
    rerank: { results: [{ index: 0, relevance_score: 1 }], meta: { billed_units: { search_units: 1 } } },
    completions: {
      id: 'c',
      object: 'chat.completion',
      created: 1,
      model: 'p',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hi.' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 2, completion_tokens: 1, total_tokens: 3 },
    },
  }
  res.writeHead(200, { 'content-type': 'application/json' })
  res.end(JSON.stringify(replies[path.split('/').at(-1) ?? '']))
}

/** Of two gateways, whose budgets are for ten requests. */
const RACED = {
  bp: { price: 'per_image: 0.04', usd: 0.4, ask: (gateway: TestGateway) => draw(gateway, 1, 'bp') },
  bw: {
    price: 'per_second_audio: 0.0001',
    usd: 0.0025,
    ask: (gateway: TestGateway) => transcribe(gateway, 2.5, 'bw'),
  },
  bv: {
    price: 'per_character: 0.00001',
    usd: 0.001,
    ask: (gateway: TestGateway) =>
      post(gateway, '/v1/audio/speech', { model: 'bv', voice: 'alloy', input: 'ten chars.' }),
  },
  be: {
    price: 'per_image: 0.04',
    usd: 0.4,
    ask: (gateway: TestGateway) => {
      const form = new FormData()
      form.set('image', new File(['picture'], 'a.png', { type: 'image/png' }))
      form.set('prompt', 'a hat')
      form.set('model', 'be')
      return post(gateway, '/v1/images/edits', form)
    },
  },
  bt: {
    price: 'per_second_audio: 0.0001',
    usd: 0.0025,
    ask: (gateway: TestGateway) => transcribe(gateway, 2.5, 'bt', 'translations'),
  },
  br: {
    price: 'per_search: 0.002',
    usd: 0.02,
    ask: (gateway: TestGateway) => post(gateway, '/v2/rerank', { model: 'br', query: 'q', documents: ['a'] }),
  },
} as const

async function start(t: Test, store: string | undefined, hasAccount = false): Promise<TestGateway> {
  const server = createServer((req, res) => {
    req.resume()
    req.on('end', () => {
      const go = (): void => answer(req.url ?? '', res)
      if (hold) waiting.push(go)
      else go()
    })
  })
  const base = `http://127.0.0.1:${await listen(t, server)}/v1`
  const budgets = Object.entries(RACED).map(([model, { usd }]) => {
    return `{ scope: key, prefix: ${model}, usd_per_day: ${usd} }`
  })
  const gateway = await startGateway(t, {
    ...(store === undefined ? {} : { store }),
    hasAccount,
    more: `limits:\n${[...LIMITS, ...budgets].map((limit) => `  - ${limit}\n`).join('')}`,
  })
  const text = readFileSync(gateway.configFile, 'utf8')
  const priced = { ...RACED, ...BY_TOKENS }
  const raced = Object.entries(priced).map(([model, { price }]) => `${model}: { ${price} }`)
  const vendor = `  vendor: { dialect: openai-chat, base_url: "${base}", api_key: k, operations: { rerank: cohere }, prices: { ${PRICES}, ${raced.join(', ')} } }\n`
  const routes = ['p', 'w', 'v', 'r', ...Object.keys(priced)]
    .map((model) => `  - { model: ${model}, upstream: vendor }\n`)
    .join('')
  writeFileSync(gateway.configFile, text.replace('routes:\n', `${vendor}routes:\n${routes}`))
  gateway.reload()
  return gateway
}

/** Adds a limit to the running gateway. */
function limit(gateway: TestGateway, rule: Readonly<Record<string, string | number>>): void {
  const text = readFileSync(gateway.configFile, 'utf8')
  writeFileSync(gateway.configFile, text.replace('limits:\n', `limits:\n  - ${JSON.stringify(rule)}\n`))
  gateway.reload()
}

interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly message: string
}

async function post(gateway: TestGateway, path: string, body: object | FormData): Promise<Reply> {
  const isForm = body instanceof FormData
  const reply = await fetch(`${gateway.origin}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.secret}`,
      ...(isForm ? {} : { 'content-type': 'application/json' }),
    },
    body: isForm ? body : JSON.stringify(body),
  })
  // Sound that is cut off has a status of 200.
  const text = await reply.text().catch(() => null)
  if (text === null) return { status: 0, headers: reply.headers, message: '' }
  const [, message = ''] = /"message":"((?:[^"\\]|\\.)*)"/.exec(text) ?? []
  return { status: reply.status, headers: reply.headers, message }
}

function draw(gateway: TestGateway, n = 1, model = 'p'): Promise<Reply> {
  return post(gateway, '/v1/images/generations', { model, prompt: 'a cat', n })
}

/** A WAV file of this length: 100 samples a second of one byte. */
function wav(seconds: number): File {
  const data = Math.round(seconds * 100)
  const head = Buffer.alloc(44)
  head.write('RIFF', 0)
  head.writeUInt32LE(36 + data, 4)
  head.write('WAVEfmt ', 8)
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(100, 24)
  head.writeUInt32LE(100, 28)
  head.writeUInt16LE(1, 32)
  head.writeUInt16LE(8, 34)
  head.write('data', 36)
  head.writeUInt32LE(data, 40)
  return new File([head, Buffer.alloc(data)], 'a.wav', { type: 'audio/wav' })
}

function transcribe(
  gateway: TestGateway,
  seconds: number,
  model = 'w',
  endpoint = 'transcriptions',
): Promise<Reply> {
  const form = new FormData()
  form.set('file', wav(seconds))
  form.set('model', model)
  return post(gateway, `/v1/audio/${endpoint}`, form)
}

for (const engine of ofToday(['sqlite', 'redis'] as const, 2)) {
  void t.test(engine, async (t) => {
    const gateway = await start(t, engine === 'redis' ? (await startRedis(t)).url() : undefined)

    hold = true
    const beganMs = performance.now()
    const racing = Promise.all(Array.from({ length: 40 }, () => draw(gateway)))
    const first: Reply[] = []
    while (first.length + waiting.length < 40) {
      await new Promise((resolve) => setTimeout(resolve, 20))
      first.length = 0
      // The refused ones have been answered; the admitted ones wait at the vendor.
      const rows = await rowsOf(gateway)
      for (const { status } of rows)
        if (status === 429) first.push({ status, headers: new Headers(), message: '' })
    }
    hold = false
    for (const go of waiting.splice(0)) go()
    const raced = await racing
    const refilled = Math.floor(((performance.now() - beganMs) * 10) / 60_000)
    const admitted = raced.filter(({ status }) => status === 200).length
    t.ok(admitted >= 10 && admitted <= 10 + refilled, `${admitted} of 40 requests ran`)
    const refused = raced.find(({ status }) => status === 429)
    t.match(
      refused?.message,
      /^The limit of 10 pictures a minute for this key leaves 0, and this request may need up to 1 picture; try again in \d+ s\.$/,
    )
    t.match(refused?.headers.get('retry-after'), /^[1-9]\d*$/)

    const never = await transcribe(gateway, 5.5)
    t.equal(never.status, 429)
    t.match(
      never.message,
      /^The limit is 5 seconds of sound a minute for this key, and this request may need up to 5.5 seconds of sound at once; no waiting helps/,
    )
    t.equal(never.headers.get('retry-after'), null)
    t.equal(never.headers.get('x-should-retry'), 'false')

    const chat = { model: 'p', messages: [{ role: 'user', content: 'Hi' }] }
    t.equal((await post(gateway, '/v1/chat/completions', chat)).status, 200, 'no unit of a chat is limited')

    t.equal((await transcribe(gateway, 5)).status, 200, 'the sound is as long as the limit')
    t.equal((await transcribe(gateway, 2)).status, 200, 'the reply counts less sound than the file has')
    const sound = await transcribe(gateway, 3)
    t.equal(sound.status, 429)
    t.match(sound.message, /5 seconds of sound a minute/)

    const voice = (input: string) => post(gateway, '/v1/audio/speech', { model: 'v', voice: 'alloy', input })
    t.equal((await voice('fifteen letters')).status, 200)
    t.match(await voice('six 🙂6'), { status: 429, message: /20 characters a minute for this account/ })

    const rank = (documents: string[]) => post(gateway, '/v2/rerank', { model: 'r', query: 'q', documents })
    t.equal((await rank(['a', 'b'])).status, 200)
    t.match(await rank(['a', 'b']), {
      status: 429,
      message: /leaves 1, and this request may need up to 2 documents/,
    })

    const rows = await rowsOf(gateway)
    const ok = rows.filter(({ status }) => status === 200)
    const unitsOf = (model: string) =>
      ok.filter(({ modelAsked }) => modelAsked === model).map(({ units }) => units)
    t.same(new Set(unitsOf('p')), new Set(['image=1', null]), 'a chat has none')
    t.same(unitsOf('w'), ['audio_second=2.5', 'audio_second=2.5'])
    t.same(unitsOf('v'), ['character=15'])
    t.same(unitsOf('r'), ['document=2 search=1'])
    t.match(rows.find(({ status }) => status === 429)?.limit, /^key:\S+ units_per_minute image$/)
    const { metrics } = gateway
    const text = await metrics.text()
    t.match(text, /sluice_units_total\{upstream="vendor",unit="audio_second"\} 5\n/)
    t.match(text, /sluice_limit_rejections_total\{kind="units_image"\}/)
    t.match(
      gateway.lines.find(({ units }) => units === 'character=15'),
      { path: '/v1/audio/speech' },
    )
  })

  void t.test(`${engine}: what did not come is given back`, async (t) => {
    const gateway = await start(t, engine === 'redis' ? (await startRedis(t)).url() : undefined)
    pictures = 2
    t.teardown(() => (pictures = 1))
    t.equal((await draw(gateway, 10)).status, 200, 'a reply with two of ten pictures')
    t.equal((await draw(gateway, 8)).status, 200)
    t.equal((await draw(gateway, 7)).status, 429)
  })
}

/** Priced by tokens, whose number before the reply is a bound. */
const BY_TOKENS = {
  tm: {
    price: 'input: 1',
    ask: (gateway: TestGateway) => post(gateway, '/v1/moderations', { model: 'tm', input: 'A text.' }),
  },
  tw: {
    price: 'input: 2.5, input_audio: 2.5, output: 10',
    ask: (gateway: TestGateway) => transcribe(gateway, 2.5, 'tw'),
  },
  tt: {
    price: 'input: 2.5, input_audio: 2.5, output: 10',
    ask: (gateway: TestGateway) => transcribe(gateway, 2.5, 'tt', 'translations'),
  },
  tv: {
    price: 'input: 0.6, output_audio: 12',
    ask: (gateway: TestGateway) =>
      post(gateway, '/v1/audio/speech', { model: 'tv', voice: 'alloy', input: 'ten chars.' }),
  },
  tp: { price: 'input: 5, output_image: 30', ask: (gateway: TestGateway) => draw(gateway, 1, 'tp') },
  tr: {
    price: 'input: 0.05',
    ask: (gateway: TestGateway) => post(gateway, '/v2/rerank', { model: 'tr', query: 'q', documents: ['a'] }),
  },
  te: {
    price: 'input: 0.02, output: 0',
    ask: (gateway: TestGateway) => post(gateway, '/v1/embeddings', { model: 'te', input: 'A text.' }),
  },
} as const

for (const engine of ofToday(['redis', 'sqlite'] as const, 2)) {
  void t.test(`${engine}: budgets of tokens race, and cut replies cost what was reserved`, async (t) => {
    const redis = engine === 'redis' ? (await startRedis(t)).url() : undefined
    const gateway = await start(t, redis)
    const other = redis === undefined ? gateway : { ...(await start(t, redis, true)), secret: gateway.secret }
    for (const [model, { ask }] of Object.entries(BY_TOKENS)) {
      cut = true
      t.not((await ask(gateway)).status, 200, `${model}: the first one is cut`)
      const [first] = (await rowsOf(gateway)).filter(({ modelAsked }) => modelAsked === model)
      const bound = first?.costNanoUsd ?? 0
      t.match(first, { source: 'assumed' }, `${model}: costs what was reserved`)
      t.ok(bound > 0, `${model}: ${bound} nano-dollars`)
      // A new budget counts from its first request: three of them, and less than a fourth.
      const budget = { scope: 'key', prefix: model, usd_per_day: (bound * 3.5) / 1e9 }
      limit(gateway, budget)
      if (other !== gateway) limit(other, budget)
      hold = true
      let refused = 0
      const racing = Promise.all(
        Array.from({ length: 20 }, async (_, at) => {
          const reply = await ask(at % 2 === 0 ? gateway : other)
          if (reply.status === 402) refused += 1
          return reply
        }),
      )
      while (refused + waiting.length < 20) await new Promise((resolve) => setTimeout(resolve, 20))
      t.equal(waiting.length, 3, `${model}: three of 20 were sent`)
      hold = false
      for (const go of waiting.splice(0)) go()
      await racing
      cut = false
      const rows = (await rowsOf(gateway)).filter(({ modelAsked }) => modelAsked === model)
      const spent = rows.reduce((sum, { costNanoUsd }) => sum + (costNanoUsd ?? 0), 0)
      t.equal(spent, bound * 4, `${model}: each cut reply costs what was reserved`)
      t.equal((await ask(other)).status, 402, `${model}: and nothing after it`)
    }
  })
}

void t.test('budgets race on two gateways', async (t) => {
  const redis = (await startRedis(t)).url()
  const first = await start(t, redis)
  const second = { ...(await start(t, redis, true)), secret: first.secret }
  for (const [model, { usd, ask }] of Object.entries(RACED)) {
    hold = true
    let refused = 0
    const racing = Promise.all(
      Array.from({ length: 40 }, async (_, at) => {
        const reply = await ask(at % 2 === 0 ? first : second)
        if (reply.status === 402) refused += 1
        return reply
      }),
    )
    while (refused + waiting.length < 40) await new Promise((resolve) => setTimeout(resolve, 20))
    hold = false
    for (const go of waiting.splice(0)) go()
    const statuses = (await racing).map(({ status }) => status)
    t.equal(statuses.filter((status) => status === 200).length, 10, `${model}: ten of 40 ran`)
    t.equal(statuses.filter((status) => status === 402).length, 30, `${model}: the others were refused`)
    const rows = (await rowsOf(first)).filter(({ modelAsked }) => modelAsked === model)
    const spent = rows.reduce((sum, { costNanoUsd }) => sum + (costNanoUsd ?? 0), 0)
    t.equal(spent, Math.round(usd * 1e9), `${model}: the budget is spent to the nano-dollar, not over`)
    t.equal((await ask(second)).status, 402, `${model}: and nothing after it`)
  }
})
