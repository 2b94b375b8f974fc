/**
 * Goal: every client format works over every upstream dialect: text, tools, parallel tools, images,
 * structured output, stop and length, errors before and inside a stream, cancellation, whole and streamed,
 * with the same reply for all.
 * Method: the vendors' SDKs against a whole gateway and emulated providers; each behaviour once per pair, a
 * third of the pairs each day, and all in the long suite.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { objectOf } from '../../../src/base/json.js'
import { startGateway } from '../../helpers/gateway.js'
import { rowsOf } from '../../helpers/ledger.js'
import { isToday } from '../../helpers/long-suite.js'
import { until } from '../../helpers/upstream.js'
import { clientsOf, type PairClient, type PairReply } from './pair-clients.js'
import { ROWS } from '../upstream-cases.js'
import { failing, LONG, thrownBy } from '../client-scenarios.js'

const gateway = await startGateway(t)
const { emulator, configFile } = gateway
// The gateway's own choice would be Responses for clients of that format.
const text = readFileSync(configFile, 'utf8')
const chat = `{ dialect: openai-chat, base_url: ${emulator.baseUrls.openai}, api_key: emulated }`
writeFileSync(
  configFile,
  text
    .replace('upstreams:\n', `upstreams:\n  chat: ${chat}\n`)
    .replace('routes:\n', 'routes:\n  - { model: gpt-4o, upstream: chat }\n'),
)
gateway.reload()
const clients = clientsOf(gateway)

const WAYS = ['whole', 'streamed'] as const
const SCHEMA = {
  type: 'object',
  properties: { name: { type: 'string' }, size: { type: 'integer' } },
  required: ['name', 'size'],
  additionalProperties: false,
}

/** Each client and each dialect each day, and each pair on one of three days. */
function isOfToday(clientAt: number, rowAt: number): boolean {
  return isToday(clientAt + rowAt, 3)
}

function statusOf(error: unknown): unknown {
  return error instanceof Error && 'status' in error ? error.status : null
}

for (const [clientAt, client] of clients.entries()) {
  for (const [rowAt, row] of ROWS.entries()) {
    if (!isOfToday(clientAt, rowAt)) continue
    void t.test(`${client.format} over ${row.dialect}`, async (t) => {
      const { model } = row
      for (const way of WAYS) {
        const ask = (rest: object, prompt = 'Grüße an Ωmega 🐋'): Promise<PairReply> =>
          client[way]({ model, prompt, ...rest })
        const plain = await ask({})
        t.match(plain.text, 'Grüße an Ωmega 🐋', `${way}: text`)
        t.equal(plain.end, 'stop')
        t.ok(plain.input > 0 && plain.output > 0, `${way}: usage`)

        const one = await ask({ tools: true }, 'What is the weather in Paris? Use get_weather')
        t.same(
          one.calls.map(({ name }) => name),
          ['get_weather'],
          `${way}: a tool`,
        )
        t.equal(typeof one.calls[0]?.args['city'], 'string')
        t.equal(one.end, 'tools')

        const two = await ask({ tools: true }, 'Call get_weather and get_time in parallel')
        t.same(
          two.calls.map(({ name }) => name),
          ['get_weather', 'get_time'],
          `${way}: parallel tools`,
        )

        t.match((await ask({ image: true })).text, /1 image \(image\/png\)/, `${way}: an image`)

        const shaped = await ask({ schema: SCHEMA })
        const value = objectOf(JSON.parse(shaped.text))
        t.same(Object.keys(value).sort(), ['name', 'size'], `${way}: structured output`)

        // Responses has a minimum limit of 16.
        const maxTokens = client.format === 'responses' ? 16 : row.leastTokens
        const cut = await ask({ maxTokens }, 'A long tale [[words: 400]]')
        t.equal(cut.end, 'length', `${way}: length`)
      }
    })

    void t.test(`${client.format} over ${row.dialect}: errors and cancellation`, async (t) => {
      const { model } = row
      for (const way of WAYS) {
        const refused = await failing(emulator, { kind: 'status', code: 400 }, () =>
          thrownBy(() => client[way]({ model, prompt: 'hi' })),
        )
        t.equal(statusOf(refused), 400, `${way}: an error before the reply`)
      }
      const broken = await thrownBy(() =>
        client.streamed({ model, prompt: '[[words: 60]] [[fault: cut event=8]]' }),
      )
      t.ok(broken instanceof Error, 'an error inside the stream is never a complete reply')
      await leaves(t, client, model)
    })
  }
}

/** A client that cancels a stream makes the gateway close the upstream connection. */
async function leaves(t: Tap, client: PairClient, model: string): Promise<void> {
  const leaving = new AbortController()
  const asked = client.streamed({ model, prompt: LONG, signal: leaving.signal }).catch(() => null)
  await until(() => emulator.open() > 0)
  setTimeout(() => leaving.abort(), 100)
  t.equal(await asked, null)
  await until(() => emulator.open() === 0)
  t.equal(emulator.ledger.at(-1)?.outcome, 'client_closed', 'the upstream was left')
}

type Tap = Pick<typeof t, 'equal'>

void t.test('every pair of this run is in the ledger with its formats', async (t) => {
  const rows = await rowsOf(gateway)
  const pairs = new Set(rows.map(({ ingress, dialect }) => `${ingress ?? ''} ${dialect ?? ''}`))
  for (const [clientAt, { format }] of clients.entries()) {
    for (const [rowAt, { dialect }] of ROWS.entries())
      if (isOfToday(clientAt, rowAt)) t.ok(pairs.has(`${format} ${dialect}`), `${format} ${dialect}`)
  }
})
