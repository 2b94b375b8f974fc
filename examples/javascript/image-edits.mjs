// Changes a picture and prints the size of the new one. SLUICE_URL is the gateway's address without a path;
// SLUICE_KEY is an API key.
import { Buffer } from 'node:buffer'
import OpenAI, { toFile } from 'openai'

const { SLUICE_URL = 'http://localhost:8080', SLUICE_KEY: apiKey } = process.env
const client = new OpenAI({ baseURL: `${SLUICE_URL}/v1`, apiKey })

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mPQq50FAAIiAUaVTK0EAAAAAElFTkSuQmCC'
const { data } = await client.images.edit({
  model: 'gpt-image-2',
  image: await toFile(Buffer.from(pixel, 'base64'), 'pixel.png', { type: 'image/png' }),
  prompt: 'Add a river.',
})
console.log(`${Buffer.from(data[0].b64_json, 'base64').length} bytes`)
