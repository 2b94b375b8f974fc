// Runs a batch of two lines and prints its results. SLUICE_URL is the gateway's address without a path;
// SLUICE_KEY is an API key. The gateway's configuration must have `files`.
import { Buffer } from 'node:buffer'
import { setTimeout } from 'node:timers/promises'
import OpenAI, { toFile } from 'openai'

const { SLUICE_URL: url = 'http://localhost:8080', SLUICE_KEY: apiKey } = process.env
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey })

const prompts = ['Name three rivers.', 'Name three lakes.']
const lines = prompts.map((content, at) => ({
  custom_id: `line-${at}`,
  method: 'POST',
  url: '/v1/chat/completions',
  body: { model: 'gpt-5.4', messages: [{ role: 'user', content }], max_completion_tokens: 500 },
}))
const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
const file = await toFile(Buffer.from(text), 'lines.jsonl')
const { id } = await client.files.create({ file, purpose: 'batch' })
let batch = await client.batches.create({
  input_file_id: id,
  endpoint: '/v1/chat/completions',
  completion_window: '24h',
})
while (!['completed', 'failed', 'expired', 'cancelled'].includes(batch.status)) {
  await setTimeout(1000)
  batch = await client.batches.retrieve(batch.id)
}
const results = await client.files.content(batch.output_file_id)
for (const line of (await results.text()).trimEnd().split('\n')) {
  const { custom_id: name, response } = JSON.parse(line)
  console.log(`${name}: ${response.body.choices[0].message.content}`)
}
