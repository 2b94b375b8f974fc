// Prints how alike two texts are. SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API
// key.
import OpenAI from 'openai'

const { SLUICE_URL = 'http://localhost:8080', SLUICE_KEY: apiKey } = process.env
const client = new OpenAI({ baseURL: `${SLUICE_URL}/v1`, apiKey })

const { data } = await client.embeddings.create({
  model: 'gemini-embedding-001',
  input: ['a river', 'a stream'],
})
const [one, other] = data.map(({ embedding }) => embedding)
const product = (a, b) => a.reduce((sum, value, index) => sum + value * b[index], 0)
const cosine = product(one, other) / Math.sqrt(product(one, one) * product(other, other))
console.log(`cosine similarity ${cosine.toFixed(3)} over ${one.length} dimensions`)
