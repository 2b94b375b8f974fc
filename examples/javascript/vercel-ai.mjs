// Prints what a model replied. SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API key.
import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import { generateText } from 'ai'

const { SLUICE_URL = 'http://localhost:8080', SLUICE_KEY: apiKey } = process.env
const openai = createOpenAI({ baseURL: `${SLUICE_URL}/v1`, apiKey })
const anthropic = createAnthropic({ baseURL: `${SLUICE_URL}/v1`, apiKey })
const google = createGoogleGenerativeAI({ baseURL: `${SLUICE_URL}/v1beta`, apiKey })

// Each provider package uses its own format, and each format reaches every model.
for (const model of [openai('claude-sonnet-5-5'), anthropic('gemini-3.5-flash'), google('gpt-5.4')]) {
  const { text } = await generateText({ model, prompt: 'Name three rivers.' })
  console.log(text)
}
