/**
 * What clients of Google's format may ask for: one fragment of a request per concept. Data for `docs/reference/dialects.md`;
 * what becomes of each is found by sending it.
 */
import type { JsonObject } from '../../chat/json.js'
import type { ClientConcepts } from './client-concept.js'

const PARAMETERS: JsonObject = {
  type: 'OBJECT',
  properties: { bay: { type: 'STRING', nullable: true } },
}
const FUNCTIONS: JsonObject = {
  tools: [
    { functionDeclarations: [{ name: 'get_tide', parameters: PARAMETERS }, { name: 'wait' }] },
  ],
}
const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const PDF = 'JVBERi0xLjQKJeLjz9MKdHJhaWxlcjw8Pj4KJSVFT0YK'

const config = (generationConfig: JsonObject): JsonObject => ({ generationConfig })
const calling = (functionCallingConfig: JsonObject): JsonObject => ({
  toolConfig: { functionCallingConfig },
})
const said = (...parts: JsonObject[]): JsonObject => ({
  contents: [{ role: 'user', parts: [{ text: 'Look.' }, ...parts] }],
})
const answered = (...parts: JsonObject[]): JsonObject => ({
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
  plain: said(),
  concepts: [
    { name: '`generationConfig.maxOutputTokens`', ask: config({ maxOutputTokens: 500 }) },
    { name: '`temperature`', ask: config({ temperature: 0.5 }) },
    { name: '`topP`', ask: config({ topP: 0.5 }) },
    { name: '`topK`', ask: config({ topK: 5 }) },
    { name: '`stopSequences`', ask: config({ stopSequences: ['END'] }) },
    { name: '`seed`', ask: config({ seed: 5 }) },
    { name: '`presencePenalty`', ask: config({ presencePenalty: 0.5 }) },
    { name: '`frequencyPenalty`', ask: config({ frequencyPenalty: 0.5 }) },
    { name: '`candidateCount`', ask: config({ candidateCount: 2 }) },
    {
      name: '`responseLogprobs`, `logprobs`',
      ask: config({ responseLogprobs: true, logprobs: 2 }),
    },
    {
      name: '`responseSchema`, `responseJsonSchema`',
      ask: config({
        responseMimeType: JSON_TYPE,
        responseSchema: { type: 'OBJECT', properties: { colour: { type: 'STRING' } } },
      }),
    },
    { name: '`responseMimeType`: any JSON', ask: config({ responseMimeType: JSON_TYPE }) },
    {
      name: '`responseMimeType`: an enumeration',
      ask: config({
        responseMimeType: 'text/x.enum',
        responseSchema: { type: 'STRING', enum: ['a', 'b'] },
      }),
    },
    {
      name: '`thinkingConfig.thinkingLevel`',
      ask: config({ thinkingConfig: { thinkingLevel: 'HIGH' } }),
    },
    {
      name: '`thinkingConfig.thinkingBudget`',
      ask: config({ thinkingConfig: { thinkingBudget: 2_000 } }),
    },
    { name: '`responseModalities`: an image', ask: config({ responseModalities: ['IMAGE'] }) },
    {
      name: '`mediaResolution`',
      ask: {
        ...said(inlineData('image/png', PNG)),
        ...config({ mediaResolution: 'MEDIA_RESOLUTION_LOW' }),
      },
      base: said(inlineData('image/png', PNG)),
    },
    { name: '`speechConfig`', ask: config({ speechConfig: { languageCode: 'en' } }) },
    { name: '`systemInstruction`', ask: { systemInstruction: { parts: [{ text: 'Be brief.' }] } } },
    { name: 'a picture, as `inlineData`', ask: said(inlineData('image/png', PNG)) },
    { name: 'a PDF, as `inlineData`', ask: said(inlineData('application/pdf', PDF)) },
    { name: 'sound, as `inlineData`', ask: said(inlineData('audio/wav', 'UklGRg==')) },
    {
      name: 'a picture by URL, as `fileData`',
      ask: said(fileData('image/png', 'https://example.com/a.png')),
    },
    {
      name: 'a file in a store of Google’s',
      ask: said(fileData('application/pdf', 'gs://bucket/a.pdf')),
    },
    { name: '`functionDeclarations`', ask: FUNCTIONS },
    { name: 'a `functionResponse`', ask: result({ output: 'high' }), base: result({ output: '' }) },
    {
      name: 'a `functionResponse` with an error',
      ask: result({ error: 'closed' }),
      base: result({ output: 'closed' }),
    },
    {
      name: 'a picture in a `functionResponse`',
      ask: result({ output: 'high' }, { parts: [inlineData('image/png', PNG)] }),
      base: result({ output: 'high' }),
    },
    { name: '`functionCallingConfig`: AUTO', ask: calling({ mode: 'AUTO' }), base: FUNCTIONS },
    { name: '`functionCallingConfig`: ANY', ask: calling({ mode: 'ANY' }), base: FUNCTIONS },
    { name: '`functionCallingConfig`: NONE', ask: calling({ mode: 'NONE' }), base: FUNCTIONS },
    {
      name: '`allowedFunctionNames`',
      ask: calling({ mode: 'ANY', allowedFunctionNames: ['get_tide', 'wait'] }),
      base: FUNCTIONS,
    },
    {
      name: '`googleSearch` and other tools that Google runs',
      ask: { tools: [{ googleSearch: {} }] },
    },
    {
      name: 'a thought of Google’s, sent back',
      ask: answered({ text: 'Hm.', thought: true, thoughtSignature: 'AAAA' }, { text: 'Yes.' }),
      base: answered({ text: 'Yes.' }),
    },
    {
      name: '`executableCode`, sent back',
      ask: answered({ executableCode: { language: 'PYTHON', code: '1' } }, { text: 'Yes.' }),
      base: answered({ text: 'Yes.' }),
    },
    {
      name: '`safetySettings` that block',
      ask: {
        safetySettings: [
          { category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_LOW_AND_ABOVE' },
        ],
      },
    },
    { name: '`cachedContent`', ask: { cachedContent: 'cachedContents/a' } },
    { name: '`labels`', ask: { labels: { team: 'a' } } },
    { name: '`serviceTier`: flex', ask: { serviceTier: 'FLEX' } },
  ],
}
