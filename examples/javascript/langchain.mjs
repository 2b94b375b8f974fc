// Prints what a model replied. SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API key.
import { ChatOpenAI } from '@langchain/openai'

const { SLUICE_URL = 'http://localhost:8080', SLUICE_KEY: apiKey } = process.env
const configuration = { baseURL: `${SLUICE_URL}/v1` }
const model = new ChatOpenAI({ model: 'claude-sonnet-5-5', apiKey, configuration })

const reply = await model.invoke('Name three rivers.')
console.log(reply.content)
