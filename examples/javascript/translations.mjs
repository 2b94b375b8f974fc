// Makes speech of a German text, and prints it in English. SLUICE_URL is the gateway's address without a path;
// SLUICE_KEY is an API key.
import { Buffer } from 'node:buffer'
import OpenAI, { toFile } from 'openai'

const { SLUICE_URL = 'http://localhost:8080', SLUICE_KEY: apiKey } = process.env
const client = new OpenAI({ baseURL: `${SLUICE_URL}/v1`, apiKey })

const speech = await client.audio.speech.create({ model: 'tts-1', voice: 'alloy', input: 'Guten Morgen.' })
const file = await toFile(Buffer.from(await speech.arrayBuffer()), 'morgen.mp3', { type: 'audio/mpeg' })
const { text } = await client.audio.translations.create({ model: 'whisper-1', file })
console.log(text)
