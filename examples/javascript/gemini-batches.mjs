// Runs a batch in Google's form and prints its replies. SLUICE_URL is the gateway's address without a path; SLUICE_KEY
// is an API key. The gateway's configuration must have `files`.
import { setTimeout as pause } from 'node:timers/promises'
import { GoogleGenAI } from '@google/genai'

const { SLUICE_URL: baseUrl = 'http://localhost:8080', SLUICE_KEY: apiKey } = process.env
const { batches } = new GoogleGenAI({ apiKey, httpOptions: { baseUrl } })

const src = ['Name three rivers.', 'Name three lakes.'].map((text) => ({
  contents: [{ role: 'user', parts: [{ text }] }],
}))
let batch = await batches.create({ model: 'gemini-3.5-flash', src })
while (['JOB_STATE_PENDING', 'JOB_STATE_RUNNING'].includes(batch.state)) {
  await pause(1000)
  batch = await batches.get({ name: batch.name })
}
for (const { response, error } of batch.dest.inlinedResponses)
  console.log(error ?? response.candidates[0].content)
