/**
 * Concepts of Google's generateContent: one fragment of a request per concept. Data for
 * `docs/reference/dialects.md`.
 */
import type { JsonObject } from '../../../src/base/json.js'
import type { ClientConcepts } from './client-concepts.js'

const PARAMETERS: JsonObject = {
  type: 'OBJECT',
  properties: { bay: { type: 'STRING', nullable: true } },
}
const FUNCTIONS: JsonObject = {
  tools: [{ functionDeclarations: [{ name: 'get_tide', parameters: PARAMETERS }, { name: 'wait' }] }],
}
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const PDF = 'JVBERi0xLjQKJeLjz9MKdHJhaWxlcjw8Pj4KJSVFT0YK'

const config = (generationConfig: JsonObject): JsonObject => ({ generationConfig })
const calling = (functionCallingConfig: JsonObject): JsonObject => ({
  toolConfig: { functionCallingConfig },
})
const userContent = (...parts: JsonObject[]): JsonObject => ({
  contents: [{ role: 'user', parts: [{ text: 'Look.' }, ...parts] }],
})
const afterReply = (...parts: JsonObject[]): JsonObject => ({
  contents: [
    { role: 'user', parts: [{ text: 'Look.' }] },
    { role: 'model', parts },
    { role: 'user', parts: [{ text: 'And now?' }] },
  ],
})
const result = (response: JsonObject, more: JsonObject = {}): JsonObject => ({
  ...FUNCTIONS,
  contents: [
    { role: 'user', parts: [{ text: 'Look.' }] },
    { role: 'model', parts: [{ functionCall: { name: 'get_tide', args: {} } }] },
    { role: 'user', parts: [{ functionResponse: { name: 'get_tide', response, ...more } }] },
  ],
})
const inlineData = (mimeType: string, data: string): JsonObject => ({
  inlineData: { mimeType, data },
})
const fileData = (mimeType: string, fileUri: string): JsonObject => ({
  fileData: { mimeType, fileUri },
})
const JSON_TYPE = 'application/json'

/** Google's generateContent. */
export const GEMINI: ClientConcepts = {
  title: 'Gemini (`POST /v1beta/models/{model}:generateContent`)',
  path: '/v1beta/models/m:generateContent',
  plain: userContent(),
  concepts: [
    { name: '`generationConfig.maxOutputTokens`', members: config({ maxOutputTokens: 500 }) },
    { name: '`temperature`', members: config({ temperature: 0.5 }) },
    { name: '`topP`', members: config({ topP: 0.5 }) },
    { name: '`topK`', members: config({ topK: 5 }) },
    { name: '`stopSequences`', members: config({ stopSequences: ['END'] }) },
    { name: '`seed`', members: config({ seed: 5 }) },
    { name: '`presencePenalty`', members: config({ presencePenalty: 0.5 }) },
    { name: '`frequencyPenalty`', members: config({ frequencyPenalty: 0.5 }) },
    { name: '`candidateCount`', members: config({ candidateCount: 2 }) },
    {
      name: '`responseLogprobs`, `logprobs`',
      members: config({ responseLogprobs: true, logprobs: 2 }),
    },
    {
      name: '`responseSchema`, `responseJsonSchema`',
      members: config({
        responseMimeType: JSON_TYPE,
        responseSchema: { type: 'OBJECT', properties: { colour: { type: 'STRING' } } },
      }),
    },
    { name: '`responseMimeType`: any JSON', members: config({ responseMimeType: JSON_TYPE }) },
    {
      name: '`responseMimeType`: an enumeration',
      members: config({
        responseMimeType: 'text/x.enum',
        responseSchema: { type: 'STRING', enum: ['a', 'b'] },
      }),
    },
    {
      name: '`thinkingConfig.thinkingLevel`',
      members: config({ thinkingConfig: { thinkingLevel: 'HIGH' } }),
    },
    {
      name: '`thinkingConfig.thinkingBudget`',
      members: config({ thinkingConfig: { thinkingBudget: 2_000 } }),
    },
    { name: '`responseModalities`: an image', members: config({ responseModalities: ['IMAGE'] }) },
    {
      name: '`mediaResolution`',
      members: {
        ...userContent(inlineData('image/png', PNG)),
        ...config({ mediaResolution: 'MEDIA_RESOLUTION_LOW' }),
      },
      base: userContent(inlineData('image/png', PNG)),
    },
    { name: '`speechConfig`', members: config({ speechConfig: { languageCode: 'en' } }) },
    {
      name: '`systemInstruction`',
      members: { systemInstruction: { parts: [{ text: 'Be brief.' }] } },
    },
    { name: 'a picture, as `inlineData`', members: userContent(inlineData('image/png', PNG)) },
    { name: 'a PDF, as `inlineData`', members: userContent(inlineData('application/pdf', PDF)) },
    { name: 'sound, as `inlineData`', members: userContent(inlineData('audio/wav', 'UklGRg==')) },
    {
      name: 'a picture by URL, as `fileData`',
      members: userContent(fileData('image/png', 'https://example.com/a.png')),
    },
    {
      name: 'a PDF by URL, as `fileData`',
      members: userContent(fileData('application/pdf', 'https://example.com/a.pdf')),
    },
    {
      name: 'a file in a bucket of Google',
      members: userContent(fileData('application/pdf', 'gs://bucket/a.pdf')),
    },
    { name: '`functionDeclarations`', members: FUNCTIONS },
    {
      name: 'a `functionResponse`',
      members: result({ output: 'high' }),
      base: result({ output: '' }),
    },
    {
      name: 'a `functionResponse` with an error',
      members: result({ error: 'closed' }),
      base: result({ output: 'closed' }),
    },
    {
      name: 'a picture in a `functionResponse`',
      members: result({ output: 'high' }, { parts: [inlineData('image/png', PNG)] }),
      base: result({ output: 'high' }),
    },
    { name: '`functionCallingConfig`: AUTO', members: calling({ mode: 'AUTO' }), base: FUNCTIONS },
    { name: '`functionCallingConfig`: ANY', members: calling({ mode: 'ANY' }), base: FUNCTIONS },
    { name: '`functionCallingConfig`: NONE', members: calling({ mode: 'NONE' }), base: FUNCTIONS },
    {
      name: '`allowedFunctionNames`',
      members: calling({ mode: 'ANY', allowedFunctionNames: ['get_tide', 'wait'] }),
      base: FUNCTIONS,
    },
    {
      name: '`googleSearch` and other tools that Google runs',
      members: { tools: [{ googleSearch: {} }] },
    },
    {
      name: "a thought of Google's, sent back",
      members: afterReply({ text: 'Hm.', thought: true, thoughtSignature: 'AAAA' }, { text: 'Yes.' }),
      base: afterReply({ text: 'Yes.' }),
    },
    {
      name: '`executableCode`, sent back',
      members: afterReply({ executableCode: { language: 'PYTHON', code: '1' } }, { text: 'Yes.' }),
      base: afterReply({ text: 'Yes.' }),
    },
    {
      name: '`safetySettings`',
      members: {
        safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_LOW_AND_ABOVE' }],
      },
    },
    { name: '`cachedContent`', members: { cachedContent: 'cachedContents/a' } },
    { name: '`labels`', members: { labels: { team: 'a' } } },
    { name: '`serviceTier`: flex', members: { serviceTier: 'FLEX' } },
  ],
}
