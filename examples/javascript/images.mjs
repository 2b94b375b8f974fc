// Draws a picture and prints its size. SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an
// API key.
import { Buffer } from 'node:buffer'
import OpenAI from 'openai'

const { SLUICE_URL = 'http://localhost:8080', SLUICE_KEY: apiKey } = process.env
const client = new OpenAI({ baseURL: `${SLUICE_URL}/v1`, apiKey })

const { data, usage } = await client.images.generate({
  model: 'gpt-image-2',
  prompt: 'three rivers from above',
  size: '1024x1024',
})
const picture = Buffer.from(data[0].b64_json, 'base64')
console.log(`${picture.length} bytes for ${usage.output_tokens} tokens`)
