// Prints what a model replied. SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API key.
import OpenAI from 'openai'

const { SLUICE_URL = 'http://localhost:8080', SLUICE_KEY: apiKey } = process.env
const client = new OpenAI({ baseURL: `${SLUICE_URL}/v1`, apiKey })

// The model selects the provider: gpt-…, claude-…, gemini-….
const stream = await client.chat.completions.create({
  model: 'claude-sonnet-5-5',
  messages: [{ role: 'user', content: 'Name three rivers.' }],
  stream: true,
})
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? '')
console.log()
