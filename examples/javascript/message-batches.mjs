// Runs a batch in Anthropic's form, with a model of OpenAI, and prints its results. SLUICE_URL is the gateway's
// address without a path; SLUICE_KEY is an API key. The gateway's configuration must have `files`.
import { setTimeout as pause } from 'node:timers/promises'
import Anthropic from '@anthropic-ai/sdk'

const { SLUICE_URL = 'http://localhost:8080', SLUICE_KEY: apiKey } = process.env
const { batches } = new Anthropic({ baseURL: SLUICE_URL, apiKey }).messages

const requests = ['Name three rivers.', 'Name three lakes.'].map((content, at) => ({
  custom_id: `line-${at}`,
  params: { model: 'gpt-5.4', max_tokens: 500, messages: [{ role: 'user', content }] },
}))
const { id } = await batches.create({ requests })
while ((await batches.retrieve(id)).processing_status !== 'ended') await pause(1000)
for await (const { custom_id, result } of await batches.results(id)) console.log(custom_id, result.type)
