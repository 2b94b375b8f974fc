/**
 * Goal: clients of Google draw with OpenAI's models by `generateContent`: pictures come inline, whole and
 * streamed, are charged as OpenAI's own requests for pictures, and what cannot be expressed is refused with
 * words or reported.
 * Method: Google's SDK on a running gateway, with the emulator's endpoints for pictures.
 */
import { ApiError, GoogleGenAI, Modality } from '@google/genai'
import t from 'tap'
import { startGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'

const CAT = { model: 'gpt-image-2', contents: 'A cat.' }
const PIXEL = Buffer.from('not really a picture').toString('base64')

void t.test("Google's clients at OpenAI's pictures", async (t) => {
  const gateway = await startGateway(t)
  const client = new GoogleGenAI({ apiKey: gateway.secret, httpOptions: { baseUrl: gateway.origin } })
  const config = { responseModalities: [Modality.IMAGE], imageConfig: { aspectRatio: '3:2' } }

  const drawn = await client.models.generateContent({ ...CAT, config })
  t.match(drawn.candidates?.[0], { finishReason: 'STOP', content: { role: 'model' } })
  const [part] = drawn.candidates?.[0]?.content?.parts ?? []
  t.equal(part?.inlineData?.mimeType, 'image/png')
  t.match(Buffer.from(part?.inlineData?.data ?? '', 'base64').toString('latin1'), 'PNG')
  t.match(drawn.usageMetadata?.candidatesTokensDetails, [{ modality: 'IMAGE', tokenCount: 1056 }])
  t.ok((drawn.usageMetadata?.promptTokenCount ?? 0) > 0)
  const [asked] = gateway.emulator.ledger.slice(-1)
  t.match(asked, {
    path: '/images/generations',
    body: { model: 'gpt-image-2', prompt: 'A cat.', size: '1536x1024' },
  })
  const row = (await rowsOf(gateway)).at(-1)
  t.match(row, { ingress: 'gemini', outcome: 'ok', source: 'reported', units: 'image=1' })
  t.same(row?.losses, [])
  t.equal(row?.costNanoUsd, (row?.usage.input ?? 0) * 5000 + 1056 * 30_000)

  const plain = await client.models.generateContent(CAT)
  t.ok(plain.candidates?.[0]?.content?.parts?.[0]?.inlineData, 'a model that only draws needs no modality')

  const chunks = []
  for await (const chunk of await client.models.generateContentStream({ ...CAT, config })) chunks.push(chunk)
  const pictures = chunks.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? [])
  t.equal(pictures.filter(({ inlineData }) => inlineData !== undefined).length, 1)
  t.equal(chunks.at(-1)?.candidates?.[0]?.finishReason, 'STOP')

  const picture = { inlineData: { mimeType: 'image/png', data: PIXEL } }
  const edited = await client.models.generateContent({
    model: 'gpt-image-2',
    contents: [{ role: 'user', parts: [picture, { text: 'Make it red.' }] }],
    config: { ...config, imageConfig: { aspectRatio: '16:9' }, temperature: 0.5 },
  })
  t.ok(edited.candidates?.[0]?.content?.parts?.[0]?.inlineData)
  t.match(gateway.emulator.ledger.at(-1), { path: '/images/edits' })
  const edit = (await rowsOf(gateway)).at(-1)
  t.same(edit?.losses.toSorted(), ['generationConfig.imageConfig', 'generationConfig.temperature'])

  const refused = async (request: Parameters<typeof client.models.generateContent>[0]): Promise<string> => {
    const error: unknown = await client.models.generateContent(request).catch((cause: unknown) => cause)
    t.match(error, { status: 400 })
    return error instanceof ApiError ? error.message : ''
  }
  const system = { ...config, systemInstruction: 'Draw well.' }
  t.match(await refused({ ...CAT, config: system }), /one user turn/)
  const tools = [{ functionDeclarations: [{ name: 'find', parametersJsonSchema: { type: 'object' } }] }]
  t.match(await refused({ ...CAT, config: { ...config, tools } }), /calls no tools/)
  const turns = ['user', 'model', 'user'].map((role) => ({ role, parts: [{ text: 'A cat.' }] }))
  t.match(await refused({ ...CAT, contents: turns, config }), /one user turn/)

  const chat = await client.models.generateContent({ model: 'gpt-5.6-sol', contents: 'A cat.', config })
  t.ok(chat.text, 'a chat model of OpenAI still answers in words')
  t.same((await rowsOf(gateway)).at(-1)?.losses.toSorted(), [
    'generationConfig.imageConfig',
    'generationConfig.responseModalities',
  ])
})

void t.test('a budget reserves the picture before it is drawn', async (t) => {
  const gateway = await startGateway(t, { more: 'limits: [{ scope: key, usd_per_day: 0.0001 }]' })
  const client = new GoogleGenAI({ apiKey: gateway.secret, httpOptions: { baseUrl: gateway.origin } })
  const refused: unknown = await client.models.generateContent(CAT).catch((cause: unknown) => cause)
  t.match(refused, { status: 402 })
  t.equal(gateway.emulator.ledger.length, 0)
})
