// Prints what a model replied. SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API key.
import { GoogleGenAI } from '@google/genai'

const { SLUICE_URL: baseUrl = 'http://localhost:8080', SLUICE_KEY: apiKey } = process.env
const client = new GoogleGenAI({ apiKey, httpOptions: { baseUrl } })

const reply = await client.models.generateContent({
  model: 'gpt-5.4',
  contents: 'Name three rivers.',
})
console.log(reply.text)
