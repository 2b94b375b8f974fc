// Makes speech of a text and prints its size. SLUICE_URL is the gateway's address without a path;
// SLUICE_KEY is an API key.
import OpenAI from 'openai'

const { SLUICE_URL = 'http://localhost:8080', SLUICE_KEY: apiKey } = process.env
const client = new OpenAI({ baseURL: `${SLUICE_URL}/v1`, apiKey })

const sound = await client.audio.speech.create({ model: 'tts-1', voice: 'alloy', input: 'Good morning.' })
console.log(`${(await sound.arrayBuffer()).byteLength} bytes of ${sound.headers.get('content-type')}`)
