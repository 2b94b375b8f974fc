// Uploads a text to Anthropic, and sends Claude a question about it. SLUICE_URL is the gateway's address without a path; SLUICE_KEY
// is an API key. The gateway's configuration must have `files`.
import { Buffer } from 'node:buffer'
import Anthropic, { toFile } from '@anthropic-ai/sdk'

const { SLUICE_URL = 'http://localhost:8080', SLUICE_KEY: apiKey } = process.env
const client = new Anthropic({ baseURL: SLUICE_URL, apiKey })

const file = await client.files.upload({
  file: await toFile(Buffer.from('Po, Tiber, Arno'), 'rivers.txt', { type: 'text/plain' }),
})
const document = { type: 'document', source: { type: 'file', file_id: file.id } }
const message = await client.messages.create({
  model: 'claude-sonnet-4-6',
  max_tokens: 500,
  messages: [{ role: 'user', content: [document, { type: 'text', text: 'How many rivers are these?' }] }],
})
console.log(message.content[0].text)
await client.files.delete(file.id)
