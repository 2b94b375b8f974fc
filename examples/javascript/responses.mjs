// Prints what a model replied. SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API key.
import OpenAI from 'openai'

const { SLUICE_URL = 'http://localhost:8080', SLUICE_KEY: apiKey } = process.env
const client = new OpenAI({ baseURL: `${SLUICE_URL}/v1`, apiKey })

const first = await client.responses.create({
  model: 'gemini-3.5-flash',
  input: 'Name three rivers.',
})
console.log(first.output_text)

// The gateway keeps the conversation, so the next turn may go to another provider.
const second = await client.responses.create({
  model: 'claude-sonnet-5-5',
  input: 'And three lakes.',
  previous_response_id: first.id,
})
console.log(second.output_text)
