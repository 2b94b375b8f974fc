// Prints what a model replied. SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API key.
import Anthropic from '@anthropic-ai/sdk'

const { SLUICE_URL: baseURL = 'http://localhost:8080', SLUICE_KEY: apiKey } = process.env
const client = new Anthropic({ baseURL, apiKey })

const stream = client.messages.stream({
  model: 'gpt-5.4',
  max_tokens: 500,
  messages: [{ role: 'user', content: 'Name three rivers.' }],
})
stream.on('text', (text) => process.stdout.write(text))
const { usage } = await stream.finalMessage()
console.log(`\n${usage.input_tokens} tokens in, ${usage.output_tokens} out`)
