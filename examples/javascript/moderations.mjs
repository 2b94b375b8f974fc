// Prints whether a text may be harmful. SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an
// API key.
import OpenAI from 'openai'

const { SLUICE_URL = 'http://localhost:8080', SLUICE_KEY: apiKey } = process.env
const client = new OpenAI({ baseURL: `${SLUICE_URL}/v1`, apiKey })

const { results } = await client.moderations.create({ input: 'Name three rivers.' })
console.log(results[0].flagged ? 'flagged' : 'harmless')
